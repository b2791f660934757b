package experiment

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/contextengine/contextengine/core/message"
)

const (
	// hostKeeps is how many of the newest tokens a host with a compaction of its own leaves, at most hostKeepsShare of the budget.
	hostKeeps      = 20_000
	hostKeepsShare = 0.6
	// hostBrief is what its summaries cost, in tokens.
	hostBrief = 800
)

// hosting is what else engines are compared with: a host that shows everything until the budget is full, and then puts a summary, which a model
// writes, in front of the newest messages.
type hosting struct {
	start  int
	last   []sent
	costs  tally
	asked  int // bytes that its model was sent for summaries
	tokens int
	calls  int
}

// host makes the prompt that such a host would send now.
func (r *runner) hostPrompt(budget int) {
	v, h := r.v, &r.hosting
	h.start = max(h.start, v.lead)
	prompt := func() (msgs []sent, total int) {
		msgs = append(msgs, v.cost[:v.lead]...)
		if h.start > v.lead {
			msgs = append(msgs, sent{sum: sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(h.start))), size: 4 * hostBrief, tokens: hostBrief})
		}
		msgs = append(msgs, v.cost[h.start:]...)
		for _, m := range msgs {
			total += m.tokens
		}
		return msgs, total
	}
	msgs, total := prompt()
	if total > budget {
		keep := min(hostKeeps, int(hostKeepsShare*float64(budget)))
		to := len(v.said)
		for at := len(v.said) - 1; at > h.start; at-- {
			if keep -= v.cost[at].tokens; keep < 0 && to < len(v.said) {
				break
			}
			if v.said[at].Role != message.Tool {
				to = at
			}
		}
		if to > h.start && to < len(v.said) {
			h.asked += sizeOf(v.cost[h.start:to]) + 4*hostBrief
			h.start = to
			msgs, total = prompt()
		}
	}
	_, cached := common(h.last, msgs)
	h.costs.add(sizeOf(msgs), cached)
	h.last = msgs
	h.tokens += total
	h.calls++
}
