package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
)

// keepShare is the share of the budget that a simulated compaction leaves of the newest messages, briefShare that of its summary.
const (
	keepShare  = 0.4
	briefShare = 0.05
)

// SimHost is a runtime around an engine, for replays: it keeps a transcript of its own and can compact it, without a model and always in
// the same way. It has no model to offer. It is safe for concurrent use.
type SimHost struct {
	mu     sync.Mutex
	msgs   []message.Message
	now    time.Time
	budget int
	count  func(message.Message) int
	calls  int
}

var _ core.Host = (*SimHost)(nil)

// NewSimHost returns a host with an empty transcript. Cost counts what a message costs in tokens, budget is that of its prompts.
func NewSimHost(budget int, cost func(message.Message) int) *SimHost {
	return &SimHost{budget: budget, count: cost, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// Name returns "simulated".
func (h *SimHost) Name() string { return "simulated" }

// Capabilities returns what a runtime offers that has no model.
func (h *SimHost) Capabilities() []capability.Name {
	return append(core.NoHost{}.Capabilities(), capability.DelegateHost)
}

// Complete fails: there is no model.
func (h *SimHost) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	return core.NoHost{}.Complete(ctx, req)
}

// Now returns the time of the newest message; it moves on by a second where messages have none.
func (h *SimHost) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Say puts a message at the end of the transcript.
func (h *SimHost) Say(m message.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs = append(h.msgs, m)
	if m.Time.After(h.now) {
		h.now = m.Time
	} else {
		h.now = h.now.Add(time.Second)
	}
}

// Transcript returns the host's messages.
func (h *SimHost) Transcript() *core.Transcript {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &core.Transcript{Messages: slices.Clip(h.msgs)}
}

// Tokens is what the transcript costs.
func (h *SimHost) Tokens() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cost(h.msgs)
}

// Compactions is how often the host was asked to compact.
func (h *SimHost) Compactions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func (h *SimHost) cost(msgs []message.Message) int {
	n := 0
	for _, m := range msgs {
		n += h.count(m)
	}
	return n
}

// Compact replaces all but the newest messages by a summary: the beginnings of what users said.
func (h *SimHost) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if err := ctx.Err(); err != nil {
		return core.CompactResult{}, fmt.Errorf("experiment: compact %q: %w", req.Session, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	budget := h.budget
	if req.Budget > 0 {
		budget = req.Budget
	}
	before := h.cost(h.msgs)
	res := core.CompactResult{OK: true, TokensBefore: before, TokensAfter: before}
	lead := 0
	for lead < len(h.msgs) && h.msgs[lead].Role == message.System {
		lead++
	}
	cut := h.cut(lead, int(keepShare*float64(budget)))
	if cut <= lead {
		res.Reason = core.ReasonAlreadyCompacted
		return res, nil
	}
	sum := message.Message{
		Role: message.User, Type: message.CompactionSummary, Time: h.now,
		Parts: []message.Part{{Kind: message.Text, Text: brief(h.msgs[lead:cut], int(briefShare*float64(budget))*3)}},
	}
	msgs := append(append(append([]message.Message{}, h.msgs[:lead]...), sum), h.msgs[cut:]...)
	after := h.cost(msgs)
	if after >= before {
		res.Reason = core.ReasonUnderTarget
		return res, nil
	}
	h.msgs = msgs
	res.Compacted, res.TokensAfter, res.Summary = true, after, sum.Text()
	return res, nil
}

// cut returns where the newest messages begin that cost at most keep tokens: at least the newest group, and never between a call and its results.
func (h *SimHost) cut(lead, keep int) int {
	cut := len(h.msgs)
	for at := len(h.msgs) - 1; at >= lead; at-- {
		keep -= h.count(h.msgs[at])
		if keep < 0 && cut < len(h.msgs) {
			break
		}
		if h.msgs[at].Role != message.Tool {
			cut = at
		}
	}
	if cut == len(h.msgs) {
		return lead
	}
	return cut
}

// brief says what users said, at most max bytes long.
func brief(msgs []message.Message, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Summary of %d earlier messages.", len(msgs))
	for _, m := range msgs {
		if m.Role != message.User || b.Len() >= size {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
		if len(text) > 120 {
			text = strings.ToValidUTF8(text[:120], "")
		}
		if text != "" && b.Len()+len(text) < size {
			b.WriteString("\n- " + text)
		}
	}
	return b.String()
}
