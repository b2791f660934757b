package experiment

import (
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// sliding is what engines are compared with: the newest groups that fit, sought anew in every call. It clips nothing and keeps nothing.
type sliding struct {
	last  []sent
	costs tally
	fills []float64
}

// tally adds up prompts as a prompt cache sees them, in bytes.
type tally struct {
	Bytes, Cached int
}

func (t *tally) add(size, cached int) {
	t.Bytes += size
	t.Cached += cached
}

// price is what the prompts cost when a cached byte costs cached and any other 1.
func (t tally) price(cached float64) float64 {
	return float64(t.Bytes-t.Cached) + cached*float64(t.Cached)
}

// baseline makes the prompt that naive sliding would send now.
func (r *runner) baseline(budget int) {
	v := r.v
	total := 0
	for i := range v.lead {
		total += v.cost[i].tokens
	}
	start, cost := len(v.said), 0
	for at := len(v.said) - 1; at >= v.lead; at-- {
		cost += v.cost[at].tokens
		if v.said[at].Role == message.Tool && at > v.lead {
			continue // results leave with their call
		}
		if total+cost > budget && start < len(v.said) {
			break
		}
		total += cost
		start, cost = at, 0
	}
	msgs := slices.Concat(v.cost[:v.lead], v.cost[max(start, v.lead):])
	_, cached := common(r.slide.last, msgs)
	r.slide.costs.add(sizeOf(msgs), cached)
	r.slide.last = msgs
	if r.history > r.spec.Budget {
		r.slide.fills = append(r.slide.fills, float64(total)/float64(budget))
	}
}
