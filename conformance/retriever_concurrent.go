package conformance

import (
	"context"
	"fmt"
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
			q.InWindow = inWindow()
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

const (
	// besideRounds is how often all queries are asked at the same time.
	besideRounds = 3
	// besideMany ask beside each other for a while, each so often at most.
	besideMany, besideMost = 4, 3000
	besideTime             = 150 * time.Millisecond
)
