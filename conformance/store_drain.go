package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// drainsLate drains with a context that has ended, right behind appends: what waits is told all the same.
func (r *storeRun) drainsLate(d upkeep.Drainer, tells bool) string {
	id := core.SessionID{Agent: "agent-late", Session: "late"}
	for i := range 60 {
		e := plainEntry(5000+i, id, int64(i))
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		r.remember([]core.Entry{e})
	}
	ctx, cancel := cancellable(r.ctx())
	cancel()
	left, err := d.Drain(r.watch.calling(ctx))
	if unsupported(err) {
		return ""
	}
	if left > 0 && err == nil {
		return fmt.Sprintf("Drain with an ended context: %d left and no error", left)
	}
	waiting, by := 0, ""
	if b, ok := core.As[upkeep.Backlogger](r.store); ok && tells {
		if got, err := b.Backlog(r.ctx()); err == nil {
			waiting, by = got.Waiting, "Backlog"
		}
	} else {
		soon, stop := context.WithTimeout(r.ctx(), time.Millisecond)
		defer stop()
		waiting, err = d.Drain(soon)
		by = fmt.Sprintf("a Drain of a millisecond (error %v)", err)
	}
	if waiting > left {
		return fmt.Sprintf("Drain with an ended context: %d left; then %d by %s, and nothing was written between", left, waiting, by)
	}
	return ""
}

func drainDelivers(r *storeRun) string {
	d, _ := core.As[upkeep.Drainer](r.store)
	b, tells := core.As[upkeep.Backlogger](r.store)
	r.steps = append(r.steps, ordinary(6))
	drained := func(when string) string {
		left, err := d.Drain(r.ctx())
		if unsupported(err) {
			tells = false
			return ""
		}
		if left != 0 || err != nil {
			return fmt.Sprintf("Drain %s: %d left, error %v, want neither", when, left, err)
		}
		if !tells {
			return ""
		}
		got, err := b.Backlog(r.ctx())
		if unsupported(err) {
			tells = false
			return ""
		}
		if err != nil || got.Waiting != 0 || got.Bytes != 0 || !got.Oldest.IsZero() || got.SetAside != 0 || got.Full != "" {
			return fmt.Sprintf("Backlog after a drain %s: %d waiting, %d bytes, oldest %v, %d set aside, full %q, error %v, want nothing", when, got.Waiting, got.Bytes, got.Oldest, got.SetAside, got.Full, err)
		}
		if err := b.CheckRemote(r.ctx()); err != nil {
			return fmt.Sprintf("CheckRemote after a drain: error %v, want none", err)
		}
		return ""
	}
	for _, step := range []struct {
		when string
		do   func() string
	}{
		{"of nothing", func() string { return "" }}, {"after appends", r.fill}, {"after a drain that had no time", func() string { return r.drainsLate(d, tells) }}, {"after changes", r.rework}, {"after deletions", r.eraseSome}, {"once more", func() string { return "" }},
	} {
		if text := step.do(); text != "" {
			return text
		}
		if tells {
			if got, err := b.Backlog(r.ctx()); err != nil && !unsupported(err) || got.Waiting < 0 || got.Bytes < 0 || got.SetAside < 0 {
				return fmt.Sprintf("Backlog before the drain %s: %d waiting, %d bytes, %d set aside, error %v", step.when, got.Waiting, got.Bytes, got.SetAside, err)
			}
		}
		if text := drained(step.when); text != "" {
			return text
		}
		if text := r.readAll(); text != "" {
			return "after a drain " + step.when + ": " + text
		}
	}
	return ""
}

// lookedAt is a context that ends a little after it was first looked at: a call that looks at its beginning alone never knows.
type lookedAt struct {
	context.Context
	cancel func()
	once   sync.Once
	// ended is when it ended, in nanoseconds since 1970; 0 before.
	ended atomic.Int64
}

// looks is how long a lookedAt lasts once it was looked at.
const looks = 10 * time.Millisecond

func newLookedAt(parent context.Context) *lookedAt {
	ctx, cancel := cancellable(parent)
	return &lookedAt{Context: ctx, cancel: cancel}
}

func (c *lookedAt) look() {
	c.once.Do(func() {
		time.AfterFunc(looks, func() {
			c.cancel()
			c.ended.Store(time.Now().UnixNano())
		})
	})
}

// Err implements context.Context.
func (c *lookedAt) Err() error {
	c.look()
	return c.Context.Err()
}

// Done implements context.Context.
func (c *lookedAt) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// since is how long ago it ended; 0 where it did not.
func (c *lookedAt) since() time.Duration {
	at := c.ended.Load()
	if at == 0 {
		return 0
	}
	return time.Since(time.Unix(0, at))
}

// drainEnds breaks a drain off, and then lets it end.
func drainEnds(r *storeRun) string {
	d, _ := core.As[upkeep.Drainer](r.store)
	if _, err := d.Drain(r.ctx()); unsupported(err) {
		return ""
	}
	if text := r.drainsBroken(d); text != "" {
		return text
	}
	if left, err := d.Drain(r.ctx()); left != 0 || err != nil {
		return fmt.Sprintf("Drain after one that was broken off: %d left, error %v, want neither", left, err)
	}
	return r.readAll()
}

// drainsBroken ends a drain of many changes soon after it began. Who delivers all of them none the less, long after that, each time, does not look at the context
// between them. Who has delivered them by then, or all at once, is as good as one who stops.
func (r *storeRun) drainsBroken(d upkeep.Drainer) string {
	const many, batch, tries, soon = 200, 100, 3, 100 * time.Millisecond
	text := ""
	for try := range tries {
		id := core.SessionID{Agent: "agent-broken", Session: fmt.Sprint("broken-", try)}
		all := make([]core.Entry, many)
		for i := range all {
			all[i] = plainEntry(6000+try*many+i, id, int64(i))
		}
		for some := range slices.Chunk(all, batch) {
			if _, err := r.store.Append(r.ctx(), cloneEntries(some)); err != nil {
				return fmt.Sprintf("Append: error %v, want none", err)
			}
		}
		r.remember(all)
		ctx := newLookedAt(r.ctx())
		left, err := d.Drain(ctx)
		late := ctx.since()
		ctx.cancel()
		if left > 0 && err == nil {
			return fmt.Sprintf("Drain whose context ended meanwhile: %d left and no error", left)
		}
		if left > 0 || late < soon {
			return ""
		}
		text = fmt.Sprintf("Drain of %d changes, whose context ended soon after it began: all are delivered, the last of them %v later (error %v), each of %d times", many, late.Round(time.Millisecond), err, tries)
	}
	return text
}
