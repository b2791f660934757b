package conformance

import (
	"context"
	"fmt"
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
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
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
	var asked []core.Query
	var want [][]string
	for who := range 3 {
		for n, prompt := range queries {
			q := r.query(who, prompt)
			wider[n%len(wider)](&q)
			got, err := r.retriever.Retrieve(r.ctx(), q)
			if err != nil {
				return fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			asked, want = append(asked, q), append(want, candidateTexts(got))
		}
	}
	store.busy.Store(true)
	return atOnce(len(asked), func(i int) string {
		got, err := r.retriever.Retrieve(r.ctx(), asked[i])
		if err != nil {
			return fmt.Sprintf("Retrieve beside others: error %v, want none", err)
		}
		if d := sameIDs(candidateTexts(got), want[i]); d != "" {
			return fmt.Sprintf("Retrieve(%q) beside others: %s", asked[i].Prompt, d)
		}
		return ""
	})
}
