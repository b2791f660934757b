package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// pausing is a store in which a reader waits for a moment, once it is busy: what calls share is then used by all of them.
type pausing struct {
	core.Store
	busy atomic.Bool
}

func (s *pausing) Unwrap() core.Store { return s.Store }

func (s *pausing) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if s.busy.Load() {
		time.Sleep(time.Millisecond)
	}
	return s.Store.Scan(ctx, q)
}

func retrieveConcurrent(r *retrieverRun) string {
	// Each is asked for several that the others do not find, or not in this order.
	texts := slices.Clone(queries)
	for i, text := range queries {
		texts = append(texts, text+" "+queries[(i+1)%len(queries)])
	}
	for n := range 12 {
		texts = append(texts, fmt.Sprintf("%s said again, %d", queries[n%2], n))
	}
	if text := r.fillSaying(texts); text != "" {
		return text
	}
	store := &pausing{Store: r.store}
	if _, ok := r.retriever.(core.Attacher); ok {
		second, text := r.attached(store)
		if text != "" {
			return text
		}
		r.retriever = second
	}
	// Once a query has begun to look up what the window shows, others have the time to be answered, too.
	var busy atomic.Bool
	inWindow := func() func(string) bool {
		var looked atomic.Bool
		return func(string) bool {
			if busy.Load() && !looked.Swap(true) {
				time.Sleep(50 * time.Microsecond)
			}
			return false
		}
	}
	var asked []core.Query
	var want [][]string
	for who := range 3 {
		for n, prompt := range queries {
			q := r.query(who, prompt)
			wider[n%len(wider)](&q)
			q.Limit, q.InWindow = []int{20, 2, 50, 7}[len(asked)%4], inWindow()
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			asked, want = append(asked, q), append(want, candidateTexts(got))
		}
	}
	beside := func(of core.Retriever, i int) string {
		q := asked[i]
		q.InWindow = inWindow()
		got, err := r.answer(of, q)
		if err != nil {
			return fmt.Sprintf("Retrieve beside others: error %v, want none", err)
		}
		if d := sameIDs(candidateTexts(got), want[i]); d != "" {
			return fmt.Sprintf("Retrieve(%q in %+v) beside others: %s", q.Prompt, q.Scopes(), d)
		}
		return ""
	}
	busy.Store(true)
	if _, ok := r.retriever.(core.Attacher); ok { // one that has read nothing yet
		store.busy.Store(true)
		cold, text := r.attached(store)
		if text == "" {
			text = atOnce(len(asked), func(i int) string { return beside(cold, i) })
		}
		if text != "" {
			return "the first queries at the same time: " + text
		}
	}
	for n := range besideRounds {
		store.busy.Store(n == 0)
		if text := atOnce(len(asked), func(i int) string { return beside(r.retriever, (i+n)%len(asked)) }); text != "" {
			return text
		}
	}
	busy.Store(false)
	// As often as there is time for: what calls seldom share shows then.
	askedOften := func() string {
		end := time.Now().Add(besideTime)
		return atOnce(besideMany, func(i int) string {
			for n := 0; n < besideMost && time.Now().Before(end); n++ {
				if text := beside(r.retriever, (i+4*(n%3))%len(asked)); text != "" {
					return text
				}
			}
			return ""
		})
	}
	o, tells := r.observer()
	if !tells {
		return askedOften()
	}
	return inTurn(askedOften, func() string { return r.toldBeside(o, asked, want) })
}

const (
	// besideRounds is how often all queries are asked at the same time.
	besideRounds = 3
	// besideMany ask beside each other for a while, each so often at most.
	besideMany, besideMost = 4, 3000
	besideTime             = 150 * time.Millisecond
	// toldTime is how long it is told beside them.
	toldTime = 70 * time.Millisecond
)

// toldBeside tells of what is known already, and of what goes and comes back, each session from a goroutine of its own as an engine does, while others ask. What they are
// answered meanwhile may be of before or of after; in the end it is what it was, and once each session was told of what it says now, it is that. Nothing but the retriever keeps the calls apart, so that the race detector, and the
// runtime where a map is written and read at once, see what it does not keep apart.
func (r *retrieverRun) toldBeside(o core.Observer, asked []core.Query, want [][]string) string {
	const sessions = 3
	end := time.Now().Add(toldTime)
	tell := func(who, n int) error {
		of := r.entries[sessionOf(who)]
		e := of[n%len(of)].Clone()
		switch n % 7 {
		case 0:
			return r.goneAndBack(o, e)
		case 1, 3, 5:
			return o.Appended(r.ctx(), []core.Entry{e})
		}
		return o.Updated(r.ctx(), e)
	}
	text := atOnce(sessions+besideMany, func(i int) string {
		for n := 0; n < besideMost && time.Now().Before(end); n++ {
			if i < sessions {
				if err := tell(i, n); err != nil {
					return fmt.Sprintf("told of what it knows while others ask: error %v, want none", err)
				}
				continue
			}
			q := asked[(i+4*(n%3))%len(asked)]
			q.Granted = slices.Clone(q.Granted)
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve while it is told: error %v, want none", err)
			}
			if text := bestFirst(got); text != "" {
				return "Retrieve while it is told: " + text
			}
		}
		return ""
	})
	if text == "" {
		text = r.asBefore(asked, want)
	}
	if _, attaches := r.retriever.(core.Attacher); text != "" || !attaches {
		return text
	}
	// What changes for good stays lost, even where two keep step and each undoes what the other one lost.
	text = atOnce(sessions, func(i int) string {
		for n, e := range r.entries[sessionOf(i)] {
			c, text := r.changeOne(e, rewritten, markOf(10+i, n))
			if text == "" {
				text = r.tellAll(o, []change{c})
			}
			if text != "" {
				return text
			}
		}
		return ""
	})
	if text == "" {
		text = r.appendsAtOnce(o)
	}
	if text != "" {
		return text
	}
	return r.asAnew(asked)
}

// appendsAtOnce tells of many new entries, each session from a goroutine of its own and one by one, in step, so that what two calls share without a lock meets.
// All of them are asked for.
func (r *retrieverRun) appendsAtOnce(o core.Observer) string {
	const sessions, each = 3, 150
	plain := ordinary(sessions * each)
	for i := range plain.Entries {
		plain.Entries[i].Size = 12
	}
	added := r.make(plain)
	if text := r.tell(added); text != "" {
		return text
	}
	of := make([][]core.Entry, sessions)
	for i, e := range added {
		of[i%sessions] = append(of[i%sessions], e)
	}
	var told atomic.Int64
	text := atOnce(sessions, func(i int) string {
		for n := range of[i] {
			for told.Load() < int64(sessions*n) {
				runtime.Gosched()
			}
			told.Add(1)
			if err := o.Appended(r.ctx(), of[i][n:n+1]); err != nil {
				told.Add(sessions * each) // the others go on
				return fmt.Sprintf("Appended of one entry beside others: error %v, want none", err)
			}
		}
		return ""
	})
	if text != "" {
		return text
	}
	var all []core.Query
	for who := range sessions {
		for _, prompt := range queries {
			q := r.query(who, prompt)
			q.Limit, q.Tokens = core.MaxPage, 100_000
			all = append(all, q)
		}
	}
	return r.asAnew(all)
}

// asBefore asks again, once nobody tells anything any more.
func (r *retrieverRun) asBefore(asked []core.Query, want [][]string) string {
	return r.settled(func() string {
		for i, q := range asked {
			q.Granted = slices.Clone(q.Granted)
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			if d := sameIDs(candidateTexts(got), want[i]); d != "" {
				return fmt.Sprintf("Retrieve(%q in %+v) after it was told, beside queries, that some were gone and back: %s", q.Prompt, q.Scopes(), d)
			}
		}
		return ""
	})
}

// asAnew holds answers against those of one that reads the store anew.
func (r *retrieverRun) asAnew(asked []core.Query) string {
	anew, text := r.attached(r.store)
	if text != "" {
		return text
	}
	return r.settled(func() string {
		for _, q := range asked {
			var texts [2][]string
			for i, of := range []core.Retriever{r.retriever, anew} {
				q.Granted = slices.Clone(q.Granted)
				got, err := r.answer(of, q)
				if err != nil {
					return fmt.Sprintf("Retrieve: error %v, want none", err)
				}
				texts[i] = candidateTexts(got)
			}
			if d := sameIDs(texts[0], texts[1]); d != "" {
				return fmt.Sprintf("Retrieve(%q in %+v) after it was told of three sessions at once what they say now, against one that reads the store anew: %s", q.Prompt, q.Scopes(), d)
			}
		}
		return ""
	})
}

// goneAndBack erases an entry and stores it again, and tells of both.
func (r *retrieverRun) goneAndBack(o core.Observer, e core.Entry) error {
	scope, ids := e.SessionID().Scope(), []string{e.ID}
	if _, err := r.store.Delete(r.ctx(), scope, ids); err != nil {
		return err
	}
	if err := o.Deleted(r.ctx(), scope, ids); err != nil {
		return err
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
		return err
	}
	return o.Appended(r.ctx(), []core.Entry{e})
}
