package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/core/engine"
)

// sharing is a proposer that says what share of the budget it is worth.
type sharing struct {
	proposer
	share float64
}

func (s *sharing) RecallShare() float64 { return s.share }

// TestRetrieverSaysItsShare: a retriever that knows what share of the budget it is worth has its way, whatever the configuration says: nothing where that is nothing
// or less, and never more than half.
func TestRetrieverSaysItsShare(t *testing.T) {
	const budget = 1000
	for share, want := range map[float64]bool{-1: false, 0: false, 0.2: true, 2: true} {
		for _, configured := range []float64{0, 0.3} {
			p := &sharing{share: share}
			k := newQuoting(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.Share, parts.Retriever = configured, p }, facts(200)...)
			all := make([]int, len(k.memories))
			for n := range all {
				all[n] = n
			}
			k.propose([]float64{1}, all...)
			p.proposer = *k.retriever
			_, res := k.quotes(budget, "what was asked?")
			if tokens, n := block(res); n > 0 != want || tokens > budget/2 {
				t.Errorf("share %v, configured %v: %d tokens of %d, %d quotes, want any: %t", share, configured, tokens, budget, n, want)
			}
		}
	}
}
