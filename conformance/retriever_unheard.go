package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// cancelTold tells what became of entries, kind by kind, with contexts that have ended: whoever knows of one kind may read the store once more, and so learn of the others.
func cancelTold(r *retrieverRun) string {
	for k := range kinds {
		if text := r.another().toldWith(r.ctx(), k); text != "" {
			continue // with time enough, too: others say so
		}
		ctx, cancel := cancellable(r.ctx())
		cancel()
		if text := r.another().toldWith(ctx, k); text != "" {
			return fmt.Sprintf("told that some were %s with a context that has ended: %s", k, text)
		}
	}
	return ""
}

// toldWith tells one that has read everything what became of entries, and looks whether it finds what one does that reads it anew.
func (r *retrieverRun) toldWith(ctx context.Context, k kind) string {
	all := r.make(ordinary(18))
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(all), err)
	}
	r.remember(all)
	told, text := r.attached(r.store)
	if text != "" {
		return text
	}
	o, ok := told.(core.Observer)
	if !ok {
		return fmt.Sprintf("one retriever is a core.Observer, the next, a %T, is none", told)
	}
	wide := func(q *core.Query) { roomyLimit(q); q.Scope.Session = "" }
	asked := func(look func(core.Query, []core.Candidate) string) string {
		return r.by(told, func() string {
			return inTurn(func() string { return r.ask(roomyLimit, look) }, func() string { return r.ask(wide, look) })
		})
	}
	if text := asked(nothing); text != "" {
		return text
	}
	changes, text := r.changeAll(all[3:9], k)
	if text != "" {
		return text
	}
	for n, c := range changes {
		for _, word := range c.words(o, n) {
			err := word(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Sprintf("error %v, want none or context.Canceled", err)
			}
			if err != nil {
				if err = word(r.ctx()); err != nil {
					return fmt.Sprintf("told again: error %v, want none", err)
				}
			}
		}
	}
	anew, text := r.attached(r.store)
	if text != "" {
		return text
	}
	if text := r.settled(func() string { return asked(r.asStored) }); text != "" {
		return text
	}
	const what = "that was told so"
	return r.by(anew, func() string {
		return inTurn(func() string { return r.likeMarks(told, what, saidOf(changes)) }, func() string { return r.like(told, what) })
	})
}
