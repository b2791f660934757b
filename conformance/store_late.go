package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

func lateAsked(r *storeRun) string {
	l, _ := core.As[core.LateSearcher](r.store)
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	q := core.SearchQuery{Scope: sessionOf(0).Scope(), Text: "the budget report", Limit: 5}
	r.watch.beat()
	if l.Late(q) || l.Late(core.SearchQuery{}) {
		return "Late of a query that was never searched: true, want false"
	}
	if text := r.lateGoes(l, q); text != "" {
		return text
	}
	s, _ := core.As[core.Searcher](r.store)
	for what, begin := range map[string]func() (context.Context, func()){
		"was cancelled before it": func() (context.Context, func()) {
			ctx, cancel := cancellable(r.ctx())
			cancel()
			return ctx, cancel
		},
		"had a deadline that has passed": func() (context.Context, func()) {
			ctx, cancel := context.WithDeadline(r.ctx(), time.Now().Add(-time.Second))
			return ctx, cancel
		},
		"ended meanwhile": func() (context.Context, func()) {
			ctx := newLookedAt(r.ctx())
			return ctx, ctx.cancel
		},
	} {
		for _, text := range []string{q.Text, "only ever broken off"} {
			q := q
			q.Text = text
			ctx, end := begin()
			_, err := s.Search(r.watch.calling(ctx), q)
			end()
			if unsupported(err) {
				return ""
			}
			if text := r.lateGoes(l, q); text != "" {
				return fmt.Sprintf("after a search whose context %s (error %v): %s", what, err, text)
			}
		}
	}
	return ""
}

// lateGoes searches until nothing is late. One that did not wait for all says so, and is asked again.
func (r *storeRun) lateGoes(l core.LateSearcher, q core.SearchQuery) string {
	s, _ := core.As[core.Searcher](r.store)
	for n := range 20 {
		if _, err := s.Search(r.ctx(), q); err != nil && !errors.Is(err, core.ErrPartial) {
			return fmt.Sprintf("Search(%q in %+v): error %v, want none", q.Text, q.Scope, err)
		} else if err != nil {
			time.Sleep(time.Duration(n) * time.Millisecond)
		}
		other := q
		other.Text = "kestrel bridge invoice"
		if l.Late(other) {
			return "Late of a query that was never searched: true after a search for another, want false"
		}
		if !l.Late(q) {
			return ""
		}
	}
	return "Late stays true however often the same is searched"
}
