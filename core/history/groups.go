package history

import "github.com/contextengine/contextengine/core/message"

// Group is a range of messages, From included, To excluded, that is kept or left out as a whole.
type Group struct {
	From, To int
}

// Len returns the number of messages in g.
func (g Group) Len() int { return g.To - g.From }

// Groups divides msgs: an assistant message with tool calls and the tool messages directly after it that hold its
// results are one group, every other message is a group of its own, a tool message that answers none of the calls
// before it included. The groups are in order and cover msgs without gaps. It takes time linear in the number of
// parts. On repaired messages (RepairPairs) no pair spans two groups.
func Groups(msgs []message.Message) []Group {
	if len(msgs) == 0 {
		return nil
	}
	out := make([]Group, 0, len(msgs))
	var ids map[string]bool
	for i := 0; i < len(msgs); {
		from := i
		i++
		if msgs[from].Role == message.Assistant && msgs[from].HasCalls() && i < len(msgs) && msgs[i].Role == message.Tool {
			if ids == nil || len(ids) > fewIDs {
				ids = make(map[string]bool)
			}
			clear(ids)
			calls := 0
			for _, p := range msgs[from].Parts {
				if p.Kind == message.ToolCall {
					ids[p.CallID] = true
					calls++
				}
			}
			for i < len(msgs) && msgs[i].Role == message.Tool && answers(&msgs[i], ids, calls == 1) {
				i++
			}
		}
		out = append(out, Group{From: from, To: i})
	}
	return out
}

// GroupsAround is Groups of n messages, msg says which, where those that between reports belong to no other: one that stands between a call and its results is part of their
// group, any other a group of its own.
func GroupsAround(n int, msg func(i int) message.Message, between func(i int) bool) []Group {
	msgs, at := make([]message.Message, 0, n), make([]int, 0, n)
	for i := range n {
		if !between(i) {
			msgs, at = append(msgs, msg(i)), append(at, i)
		}
	}
	groups := Groups(msgs)
	if len(msgs) == n {
		return groups
	}
	out := make([]Group, 0, n)
	alone := func(to int) {
		for from := endOf(out); from < to; from++ {
			out = append(out, Group{From: from, To: from + 1})
		}
	}
	for _, g := range groups {
		alone(at[g.From])
		out = append(out, Group{From: at[g.From], To: at[g.To-1] + 1})
	}
	alone(n)
	return out
}

// endOf returns where the last group ends.
func endOf(groups []Group) int {
	if len(groups) == 0 {
		return 0
	}
	return groups[len(groups)-1].To
}

// fewIDs is up to how many entries a map is cleared for reuse: clearing takes as long as the map once was large.
const fewIDs = 64

// answers reports whether a tool message holds a result for one of the calls. A result without an id can only mean
// the single call of its message.
func answers(m *message.Message, ids map[string]bool, single bool) bool {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.ToolResult && (ids[p.CallID] || p.CallID == "" && single) {
			return true
		}
	}
	return false
}
