package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/contextengine/contextengine/core"
)

const (
	defaultLimit  = 20
	defaultSearch = 10
	maxOffset     = 1 << 30
)

// listQuery is a request for a page of a list.
type listQuery struct {
	sources       []*source
	metadataID    string
	reverse       bool
	limit, offset int
	behind        *place
}

func (s *Server) getRecent(w *recorder, r *http.Request, who *caller) error {
	return s.getList(w, r, who, false)
}

func (s *Server) getThoughts(w *recorder, r *http.Request, who *caller) error {
	return s.getList(w, r, who, true)
}

// getList answers a list; all says that the parameters of the list with filters are read.
func (s *Server) getList(w *recorder, r *http.Request, who *caller, all bool) error {
	q, err := parseQuery(r)
	if err != nil {
		return err
	}
	lq := listQuery{reverse: true}
	if lq.limit, err = number(q, "limit", defaultLimit, 1, s.cfg.MaxLimit); err != nil {
		return err
	}
	if all {
		if err := lq.filters(q); err != nil {
			return err
		}
	}
	if lq.sources, err = s.sources(r.Context(), who, q.Get("source")); err != nil {
		return err
	}
	w.Header().Set(headerBatch, strconv.FormatInt(s.cfg.MaxBody, 10))
	if q.Get("source") != "" && s.feed != nil {
		w.Header().Set(headerFeed, "1")
	}
	if name := q.Get("source"); name != "" && !all {
		count, err := s.changes.of(r.Context(), name) // before anything is read
		if err != nil {
			return err
		}
		w.Header().Set(headerChanges, strconv.FormatUint(count, 10))
	}
	out := newPageWriter(w, s.cfg.MaxPage)
	next, err := s.list(r.Context(), w, lq, func(t thought) (bool, error) { return out.add(t.wire()) })
	switch {
	case !all:
		next = "" // recent takes no cursor
	case next != "" && errors.Is(err, errFull):
		err = nil // a short page
	}
	return out.end(next, err)
}

func (lq *listQuery) filters(q url.Values) (err error) {
	if lq.offset, err = number(q, "offset", 0, 0, maxOffset); err != nil {
		return err
	}
	switch q.Get("order") {
	case "", "desc":
	case "asc":
		lq.reverse = false
	default:
		return unprocessable(queryProblem("enum", "order", "Input should be 'asc' or 'desc'"))
	}
	if text := q.Get("cursor"); text != "" {
		p, ok := parseCursor(text)
		if !ok {
			return unprocessable(queryProblem("value_error", "cursor", "Input should be the next of a list"))
		}
		lq.behind = &p
	}
	lq.metadataID = q.Get("metadata_id")
	return nil
}

// sources returns the sources that a request is about: the one it names, or all that the caller may use.
func (s *Server) sources(ctx context.Context, who *caller, name string) ([]*source, error) {
	if name == "" {
		return s.catalogue.all(ctx, who)
	}
	if !who.may(name) {
		return nil, errSource
	}
	src, err := s.catalogue.named(ctx, name)
	if err != nil || src == nil {
		return nil, err
	}
	return []*source{src}, nil
}

// list hands a page to add, thought by thought, and returns the cursor behind it, with errFull too. It ends where add has no room left.
func (s *Server) list(ctx context.Context, w *recorder, q listQuery, add func(thought) (fits bool, err error)) (string, error) {
	if len(q.sources) == 0 {
		return "", nil
	}
	skip := q.offset
	var m mark
	paged := len(q.sources) == 1 && q.metadataID == "" && q.behind == nil
	if paged {
		src := q.sources[0]
		m = mark{created: src.created.Load(), deleted: src.deleted.Load()}
		if at, newest, err := s.marked(ctx, src, q); err != nil {
			return "", err
		} else if at != nil {
			q.behind, skip, m.newest = at, 0, newest
		}
	}
	walk, err := s.newWalk(ctx, w, q.sources, q.reverse, q.behind, skip+q.limit)
	if err != nil {
		return "", err
	}
	n := 0
	var last [2]place // of the page so far, the newest first
	for first := true; ; first = false {
		t, ok, err := walk.next(ctx)
		if n > 0 && errors.Is(err, errFull) {
			return last[0].cursor(), err
		}
		if err != nil {
			return "", err
		}
		if !ok {
			return "", nil
		}
		if first && m.newest == "" {
			m.newest = t.ID
		}
		if q.metadataID != "" && scalar(t.Metadata, "id") != q.metadataID {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		fits := n < q.limit // the one more only says that there is more
		if fits {
			if fits, err = add(t); err != nil {
				return "", err
			}
		}
		if !fits {
			break
		}
		n++
		last[0], last[1] = placeOf(t), last[0]
	}
	if paged {
		q.remember(last[:min(n, len(last))], n, m)
	}
	return last[0].cursor(), nil
}

// remember marks where the next page will begin: behind this one, or with its last thought, as careful clients ask.
func (lq listQuery) remember(last []place, n int, m mark) {
	for back, at := range last {
		m.behind = at
		lq.sources[0].marks.put(markKey{lq.reverse, lq.offset + n - back}, m)
	}
}

// marked returns the place behind which an offset begins, when it is known and nothing has shifted since.
func (s *Server) marked(ctx context.Context, src *source, q listQuery) (at *place, newest string, err error) {
	if q.offset == 0 {
		return nil, "", nil
	}
	m, ok := src.marks.get(markKey{q.reverse, q.offset})
	if !ok || m.deleted != src.deleted.Load() || (q.reverse && m.created != src.created.Load()) {
		return nil, "", nil
	}
	if q.reverse { // another server may have stored something
		newest, err := core.First(ctx, s.store, core.ScanQuery{Scope: src.scope(), Reverse: true})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return nil, "", fmt.Errorf("openbrain: list: %w", err)
		}
		if err != nil || newest.ID != m.newest {
			return nil, "", nil
		}
	}
	return &m.behind, m.newest, nil
}
