package openbrain

import (
	"errors"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// headerFeed is in the answer to a list of one source where the server can say what changed in it since a mark.
const headerFeed = "OpenBrain-Feed"

// feedStep is how many changes are read at a time: a page that is full ends with one of these steps.
const feedStep = 25

// feedPage is what happened to the thoughts of a source since a mark, oldest first: those that were stored or changed, as they are now, and the ids of those that are gone.
type feedPage struct {
	Thoughts []wireThought `json:"thoughts"`
	Gone     []string      `json:"gone"`
	// Mark is the place behind the page; More says that there is more behind it.
	Mark string `json:"mark"`
	More bool   `json:"more"`
}

// getChanges answers what changed in a source. A mark that is not known any more is 410: the client begins without one.
func (s *Server) getChanges(w http.ResponseWriter, r *http.Request, who *caller) error {
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
	out := feedPage{Thoughts: []wireThought{}, Gone: []string{}, Mark: string(mark)}
	sources, err := s.sources(r.Context(), who, source)
	if err != nil {
		return err
	}
	if len(sources) == 0 && mark == "" {
		return answer(w, http.StatusOK, out)
	}
	if len(sources) == 0 {
		return refuse(http.StatusGone, "The mark is not known")
	}
	size := 0
	for n, step := 0, feedStep; n < limit; {
		page, err := s.feed.Changes(r.Context(), core.ChangeQuery{Agent: source, After: mark, Limit: min(step, limit-n)})
		if errors.Is(err, core.ErrNotFound) {
			return refuse(http.StatusGone, "The mark is not known")
		}
		if err != nil {
			return err
		}
		more := 0
		for _, c := range page.Changes {
			if c.Entry != nil {
				more += len(c.Entry.Message.Text()) + len(c.Entry.Meta[metaMetadata])
			}
		}
		if size+more > s.cfg.MaxPage && n > 0 {
			break
		}
		if size+more > s.cfg.MaxPage && step > 1 {
			step = 1 // one is always taken
			continue
		}
		for _, c := range page.Changes {
			if c.Entry == nil {
				out.Gone = append(out.Gone, c.ID)
			} else if t, ok := thoughtOf(*c.Entry); ok {
				out.Thoughts = append(out.Thoughts, t.wire())
			}
		}
		n, size, mark, out.Mark, out.More = n+min(step, limit-n), size+more, page.Mark, string(page.Mark), page.More
		if !page.More {
			break
		}
	}
	return answer(w, http.StatusOK, out)
}
