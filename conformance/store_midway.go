package conformance

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
)

// endingAtLook is a context that ends when somebody looks whether it has, after so many looks at which it had not.
type endingAtLook struct {
	context.Context
	left  atomic.Int64
	ended atomic.Bool
	done  chan struct{}
}

func endsAtLook(parent context.Context, left int) *endingAtLook {
	c := &endingAtLook{Context: parent, done: make(chan struct{})}
	c.left.Store(int64(left))
	return c
}

// Done implements context.Context.
func (c *endingAtLook) Done() <-chan struct{} { return c.done }

// Err implements context.Context.
func (c *endingAtLook) Err() error {
	if c.left.Add(-1) >= 0 {
		return nil
	}
	if !c.ended.Swap(true) {
		close(c.done)
	}
	return context.Canceled
}

// endsMidway appends entries and deletes them with contexts that end wherever a store looks at them: whoever says that they ended has done nothing.
func (r *storeRun) endsMidway() string {
	const most = 40 // looks, of which most stores need few
	id := core.SessionID{Agent: "agent-a", Session: "ends midway"}
	scope := id.Scope()
	there := func(id string) bool {
		_, err := r.store.Get(r.ctx(), scope, []string{id})
		return err == nil
	}
	for n := range most {
		e := plainEntry(r.made, id, int64(n))
		r.made++
		storing, deleting := endsAtLook(r.ctx(), n), endsAtLook(r.ctx(), n)
		switch _, err := r.store.Append(r.watch.calling(storing), cloneEntries([]core.Entry{e})); {
		case err != nil && there(e.ID):
			return fmt.Sprintf("Append with a context that ended on the way, at look %d: error %v, and the entry is stored", n+1, err)
		case err == nil && !there(e.ID):
			return fmt.Sprintf("Append with a context that ended on the way, at look %d: no error, and the entry is not stored", n+1)
		case err != nil:
			if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
				return fmt.Sprintf("Append once more, after its context had ended: error %v, want none", err)
			}
		}
		_, err := r.store.Delete(r.watch.calling(deleting), scope, []string{e.ID})
		if err != nil && !there(e.ID) { // what is deleted without an error is for others to see
			return fmt.Sprintf("Delete with a context that ended on the way, at look %d: error %v, and the entry is gone", n+1, err)
		}
		if err == nil && !storing.ended.Load() && !deleting.ended.Load() {
			break // nobody looks that often
		}
		if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
			return fmt.Sprintf("Delete once more: error %v, want none", err)
		}
	}
	return ""
}

// endsAmongMany appends many entries, of two sessions, with contexts that end wherever a store looks at them: all are stored or none.
func (r *storeRun) endsAmongMany() string {
	const many, agent = 300, "agent-midway"
	if offers[core.Recogniser](r.store) {
		return "" // as in cancel.store
	}
	all := make([]core.Entry, many)
	for i := range all {
		all[i] = plainEntry(30_000+i, core.SessionID{Agent: agent, Session: fmt.Sprint("midway ", i%2)}, int64(i))
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 40, 80} {
		r.watch.beat()
		ctx := endsAtLook(r.ctx(), n)
		_, err := r.store.Append(r.watch.calling(ctx), cloneEntries(all))
		got, text := r.scan(core.ScanQuery{Scope: core.Scope{Agent: agent}, Limit: core.MaxPage})
		if text != "" {
			return text
		}
		if err != nil && len(got) > 0 || err == nil && len(got) < many {
			return fmt.Sprintf("Append of %d entries with a context that ended on the way, at look %d: error %v, and %d of them are stored", many, n+1, err, len(got))
		}
		if err == nil && !ctx.ended.Load() {
			break // nobody looks that often
		}
		if _, err := r.store.Delete(r.ctx(), core.Scope{Agent: agent}, idsOf(got)); err != nil {
			return fmt.Sprintf("Delete: error %v, want none", err)
		}
	}
	return ""
}
