package experiment

import (
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// callAt says where in a conversation the model is called.
type callAt struct {
	// behind is the number of messages in front of the call, turn that of the user messages among them.
	behind, turn int
	// loop says that the model was called before for the same user message.
	loop bool
}

// callsOf finds the calls of a conversation: one follows every user message and every batch of tool results, and one stands in front of every
// assistant message that follows something else than an assistant message.
func callsOf(msgs []message.Message) []callAt {
	var out []callAt
	turn := 0
	first := true
	for i, m := range msgs {
		prompt := m.Role == message.User && m.Type == ""
		if prompt {
			turn++
			first = true
		}
		if m.Role == message.Assistant || m.Role == message.System {
			continue
		}
		last := i == len(msgs)-1
		answered := !last && msgs[i+1].Role == message.Assistant
		batch := m.Role == message.Tool && (last || msgs[i+1].Role != message.Tool)
		if prompt || batch || answered {
			out = append(out, callAt{behind: i + 1, turn: turn, loop: !first})
			first = false
		}
	}
	return out
}

// groupCosts returns what each group of an assistant message and its results costs.
func groupCosts(msgs []message.Message, cost []sent) []int {
	var out []int
	for i, m := range msgs {
		switch {
		case m.Role == message.Assistant:
			out = append(out, cost[i].tokens)
		case m.Role == message.Tool && len(out) > 0:
			out[len(out)-1] += cost[i].tokens
		}
	}
	return out
}

// quantile returns the value below which a share q of the values lies; 0 when there are none.
func quantile[T int | float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
