package conformance

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

// idSoon is the check whose rule every call is held to whose context has ended.
const idSoon = "patch.soon"

// soonChecks come first: a part that does not look at its context would take minutes for the others, which have little patience once it is known.
func soonChecks() []Check {
	return []Check{
		{ID: idSoon, Promise: 9, Suite: SuiteCompactor, compactor: patchSoon, once: true,
			Rule: "Compact is back within 5 s of its context's end, also where a model fails again and again, a runtime does not answer or texts are long, and wherever in its work that was, then no model is asked any more"},
		{ID: "patch.tries", Promise: 4, Suite: SuiteCompactor, compactor: patchTries, Needs: []Need{NeedOwner}, once: true,
			Rule: "a model that failed is left alone for a while, not for ever: long after, by the task's time and the host's, it is asked again"},
	}
}

const (
	// longestText is as many words as nobody cuts letter by letter in a few seconds.
	longestText = 4000
	// lateness is how long a compactor may take once its context has ended.
	lateness = 5 * time.Second
)

// patchSoon ends contexts while there is something to wait for.
func patchSoon(r *compactorRun) string {
	late := &lateHost{Host: r.host}
	if !r.compactor.OwnsCompaction() {
		ctx, cancel := context.WithCancel(r.ctx())
		defer cancel()
		late.asked = cancel
		c := r.task(true)
		c.Host = late
		_, text, _ := r.back(ctx, c)
		return text
	}
	long := make([]piece, 30)
	for i := range long {
		long[i].Size = longestText
	}
	for _, t := range []struct {
		mood   Mood
		pieces []piece
		time   time.Duration
	}{
		{Failing, enoughPieces(), 200 * time.Millisecond},
		{Empty, enoughPieces(), 200 * time.Millisecond},
		{Lying, enoughPieces(), 200 * time.Millisecond},
		{Hanging, enoughPieces(), 30 * time.Millisecond},
		{Honest, long, 30 * time.Millisecond},
		{Failing, long, 30 * time.Millisecond},
	} {
		r.pieces = t.pieces
		r.set(t.mood)
		for _, task := range []func(bool) core.Compaction{r.task, r.rich} {
			r.published = nil
			ctx, cancel := context.WithTimeout(r.ctx(), t.time)
			_, text, _ := r.back(ctx, task(true))
			cancel()
			if text == "" && !r.model.quiet(asksOn) {
				text = fmt.Sprintf("its context has ended, and %s later a model is still being asked", asksOn)
				r.watch.late.Store(true) // each smaller case would wait as long
			}
			if text != "" {
				return fmt.Sprintf("model is %s, %d messages of %d words: %s", t.mood, len(t.pieces), t.pieces[0].Size, text)
			}
		}
	}
	return r.ends(asksNoMore)
}

// back asks for a compaction and does not wait for one that is not back in time after its context ended.
func (r *compactorRun) back(ctx context.Context, c core.Compaction) (core.Patch, string, error) {
	type outcome struct {
		patch core.Patch
		err   error
		text  string
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		text := guard(func() string {
			o.patch, o.err = r.compactor.Compact(ctx, c)
			return ""
		})
		o.text = text
		done <- o
	}()
	// What the machine itself takes away is not counted: a ticker drops what nobody fetches.
	const tick = 10 * time.Millisecond
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	left := min(lateness, time.Duration(r.watch.limit.Load()))
	waited := left
	r.watch.patient(lateness)
	for left > 0 {
		select {
		case o := <-done:
			return o.patch, o.text, o.err
		case <-ticks.C:
			if ctx.Err() != nil {
				left -= tick
			}
		}
	}
	r.watch.late.Store(true)
	return core.Patch{}, fmt.Sprintf("Compact has not returned %s after its context ended", waited), cmp.Or(ctx.Err(), context.Canceled)
}

// manyFailures in a row are more than anybody waits for.
const manyFailures = 8

// patchTries lets a model fail often, each time a day later, and answer a year later.
func patchTries(r *compactorRun) string {
	r.pieces = enoughPieces()
	if asked, text := r.asks(r.open(r.tb, r.model)); text != "" || !asked {
		return text
	}
	for _, mood := range []Mood{Failing, Empty, Lying} {
		r.set(mood)
		for range manyFailures {
			r.host.advance(24 * time.Hour)
			if _, text := r.asks(r.compactor); text != "" {
				return text
			}
		}
		r.model.Set(Honest)
		r.host.advance(365 * 24 * time.Hour)
		asked, text := r.asks(r.compactor)
		if text != "" {
			return text
		}
		if !asked {
			return fmt.Sprintf("a model was %s %d times, and a year later it is not asked", mood, manyFailures)
		}
	}
	return ""
}

// asks reports whether a compactor asks a model for a patch at the time that the host's clock shows.
func (r *compactorRun) asks(of core.Compactor) (bool, string) {
	c := r.task(true)
	c.Now, c.Target = r.host.Now(), 1
	// Whoever keeps what it made for others than these has to ask for it.
	r.tried++
	for i := range c.Entries {
		e := &c.Entries[i]
		e.ID = fmt.Sprintf("T%d-%s", r.tried, e.ID)
		saidFirst(e, fmt.Sprintf("time %d: ", r.tried))
	}
	calls := r.model.Calls()
	_, text := r.answers(of, c)
	return r.model.Calls() > calls, text
}
