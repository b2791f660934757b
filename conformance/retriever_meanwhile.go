package conformance

import (
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

func meanwhileChecks() []Check {
	return []Check{
		{ID: "cancel.told", Promise: 9, Suite: SuiteRetriever, retriever: cancelTold, once: true, Needs: []Need{NeedAttacher, NeedObserver},
			Rule: "word whose context has ended is taken note of, or returns an error that wraps the context's, and is taken note of when it comes again"},
		{ID: "retrieve.meanwhile", Promise: 2, Suite: SuiteRetriever, retriever: retrieveMeanwhile, once: true, Needs: []Need{NeedAttacher, NeedObserver},
			Rule: "word that comes while a retriever reads the store, for the first time or because of earlier word, is not lost, whatever it is of: what was erased or hidden then does not come back, what was changed is as it is now, and what was added is found"},
	}
}

const (
	// hears is how long a page is held for a retriever that takes in no word while it reads, and hearsNothing how long for one that is known to be such.
	hears        = 60 * time.Millisecond
	hearsNothing = 5 * time.Millisecond
)

// heldReading is a reading that is held, and what is told then.
type heldReading struct {
	// before is how many pages come before the one that is held.
	before int
	// wide asks in all of the agent's sessions, and up says that the caller gives up while the page is held.
	wide, up bool
	// first is what was told once the store had been read: where that makes another reading necessary, that one is held. Nothing is for the first reading.
	first []kind
	// of is what is told; few, that it is of the oldest entries alone.
	of  []kind
	few bool
}

func (m heldReading) String() string {
	page, since := fmt.Sprintf("page %d", m.before+1), ""
	if m.before == atEnd {
		page = "the last page"
	}
	if len(m.first) > 0 {
		since = fmt.Sprintf(" since others were %s", m.first)
	}
	if m.up {
		since += " was given up under way"
	} else {
		since += " was under way"
	}
	return fmt.Sprintf("told that some were %s while %s of the first reading%s", m.of, page, since)
}

// heldReadings are all kinds of change together, and each alone: one that is told of several may read once more because of the one, and so learn of the others.
func heldReadings() []heldReading {
	mixed := []kind{deleted, rewritten, emptied, returned, added}
	out := []heldReading{{wide: true, of: mixed}, {before: 2, wide: true, of: mixed}, {of: mixed}, {before: 1, wide: true, up: true, of: mixed}}
	for k := range kinds {
		of := []kind{k}
		out = append(out, heldReading{wide: true, of: of, few: true}, heldReading{before: 1, of: of}, heldReading{before: atEnd, wide: true, of: of, few: true}, heldReading{before: 1, wide: true, up: true, of: of})
		for _, first := range []kind{deleted, rewritten, emptied, added} {
			out = append(out, heldReading{wide: true, first: []kind{first}, of: of, few: true})
		}
	}
	return out
}

// retrieveMeanwhile holds a reading of the store at a page, changes what that holds or what comes before and behind it, and tells of it.
func retrieveMeanwhile(r *retrieverRun) string {
	patience := hears
	for _, m := range heldReadings() {
		one := r.another()
		if text := one.meanwhile(m, &patience); text != "" {
			return fmt.Sprintf("%s: %s", m, text)
		}
	}
	return ""
}

// another is a run over an empty store of its own, of which no retriever has read anything.
func (r *retrieverRun) another() *retrieverRun {
	one := &retrieverRun{open: r.open, again: r.again, said: r.said}
	one.watch, one.tb, one.bound = r.watch, r.tb, r.bound
	_, one.store = r.open(r.tb)
	return one
}

// meanwhile asks one that was told of nothing it has not read.
func (r *retrieverRun) meanwhile(m heldReading, patience *time.Duration) string {
	all := r.make(ordinary(24))
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append of %d valid entries: error %v, want none", len(all), err)
	}
	r.remember(all)
	store := newHeldPages(r.store, 4)
	asked, text := r.attached(store)
	if text != "" {
		return text
	}
	o, _ := asked.(core.Observer)
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	q := r.query(0, queries[0])
	if m.wide {
		q.Scope.Session = ""
	}
	var changed []change
	if len(m.first) > 0 {
		if _, err := r.answer(asked, q); err != nil {
			return fmt.Sprintf("Retrieve: error %v, want none", err)
		}
		if changed, text = r.changeAll(all[18:], m.first...); text == "" {
			text = r.tellAll(o, changed)
		}
		if text != "" {
			return text
		}
		all = all[:18]
	}
	if m.few {
		all = all[:3]
	}
	held, release := store.hold(m.before)
	defer release()
	answered := make(chan string, 1)
	go func() {
		answered <- guard(func() string {
			if _, err := r.retrieve(ctx, asked, q); err != nil && !m.up {
				return fmt.Sprintf("Retrieve while it is told: error %v, want none", err)
			}
			return ""
		})
	}()
	select {
	case <-held:
	case text := <-answered: // it has read fewer pages
		return text
	}
	told := make(chan string, 1)
	changes, text := r.changeAll(all, m.of...)
	if text != "" {
		return text
	}
	go func() { told <- guard(func() string { return r.tellAll(o, changes) }) }()
	if m.up {
		cancel()
	}
	select {
	case text = <-told:
		told <- text
	case <-time.After(*patience):
		*patience = hearsNothing
	}
	release()
	if text := inTurn(func() string { return <-told }, func() string { return <-answered }); text != "" {
		return text
	}
	anew, text := r.attached(r.store)
	if text != "" {
		return text
	}
	const what = "that was told while it read"
	return r.by(anew, func() string {
		if text := r.likeMarks(asked, what, saidOf(append(changed, changes...))); text != "" || len(m.of) == 1 {
			return text
		}
		return r.like(asked, what)
	})
}

// saidOf are entries as they were and as they are, of all sessions a few.
func saidOf(changes []change) (out []core.Entry) {
	const most = 9
	for i, c := range changes {
		if i%max(1, len(changes)/most) > 0 {
			continue
		}
		if out = append(out, c.was); c.now != nil && !c.added {
			out = append(out, *c.now)
		}
	}
	return out
}
