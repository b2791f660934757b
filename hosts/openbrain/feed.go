package openbrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// headerFeed is in the answer to a list of one source where the server can say what changed in it since a mark.
const headerFeed = "OpenBrain-Feed"

// feedStep is how many changes are read at a time, at most: a page that is full ends with one of these steps.
const feedStep = 25

// feedPage is what happened to the thoughts of a source since a mark, oldest first. Those that were stored or changed, as they are now, stand before it in the answer;
// these are the ids of those that are gone.
type feedPage struct {
	Gone []string `json:"gone"`
	// Mark is the place behind the page; More says that there is more behind it.
	Mark core.Mark `json:"mark"`
	More bool      `json:"more"`
}

// getChanges answers what changed in a source. A mark that is not known any more is 410: the client begins without one.
func (s *Server) getChanges(w *recorder, r *http.Request, who *caller) error {
	if s.feed == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	q, err := parseQuery(r)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", defaultLimit, 1, s.cfg.MaxLimit)
	if err != nil {
		return err
	}
	source, mark := q.Get("source"), core.Mark(q.Get("since"))
	if source == "" {
		return unprocessable(queryProblem("missing", "source", "Field required"))
	}
	sources, err := s.sources(r.Context(), who, source)
	if err != nil {
		return err
	}
	if len(sources) == 0 && mark != "" {
		return refuse(http.StatusGone, "The mark is not known")
	}
	f := feedPage{Gone: []string{}, Mark: mark}
	out := newPageWriter(w, math.MaxInt) // what follow reads is bounded
	if len(sources) > 0 {
		err = s.follow(r.Context(), w, source, limit, &f, out)
	}
	last, jerr := json.Marshal(f)
	if jerr != nil {
		return fmt.Errorf("openbrain: encode answer: %w", jerr)
	}
	return out.close(","+string(last[1:len(last)-1]), err)
}

// follow answers what changed behind f.Mark, step by step, and moves the mark.
func (s *Server) follow(ctx context.Context, w *recorder, source string, limit int, f *feedPage, out *pageWriter) error {
	held, size := 0, 0
	for n, step := 0, 1; n < limit; {
		q := core.ChangeQuery{Agent: source, After: f.Mark, Limit: min(step, limit-n)}
		var page core.ChangePage
		more := 0
		err := s.read(ctx, w, func() (_ int, err error) {
			if page, err = s.feed.Changes(ctx, q); errors.Is(err, core.ErrNotFound) {
				return 0, refuse(http.StatusGone, "The mark is not known")
			} else if err != nil {
				return 0, err
			}
			for _, c := range page.Changes {
				if c.Entry != nil {
					more += len(c.Entry.Message.Text()) + 3*len(c.Entry.Meta[metaMetadata])
				}
			}
			before := held
			held = more
			return held - before, nil
		})
		if n > 0 && errors.Is(err, errFull) {
			return nil // a short page
		}
		if err != nil {
			return err
		}
		if size+more > s.cfg.MaxPage && (n > 0 || step > 1) {
			return nil // the first step is one, and is always taken
		}
		for i, c := range page.Changes {
			if c.Entry == nil {
				f.Gone = append(f.Gone, c.ID)
			} else if t, ok := thoughtOf(*c.Entry); ok {
				page.Changes[i].Entry = nil // not held any more when it is answered
				if _, err := out.add(t.wire()); err != nil {
					return err
				}
			}
		}
		n, size, f.Mark, f.More = n+q.Limit, size+more, page.Mark, page.More
		if !page.More {
			return nil
		}
		step = min(2*step, feedStep, 1+maxRead*q.Limit/max(more, 1))
	}
	return nil
}
