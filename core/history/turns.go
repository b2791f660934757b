package history

import (
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// ProviderTurns makes the order of roles what a provider accepts, as far as policy asks for it:
//
//   - ValidateGemini, ValidateAnthropic: consecutive assistant messages become one.
//   - ValidateAnthropic: a call that no result answers before the next assistant message is taken out; of a message
//     with thinking all calls or none. A message left without content becomes CallsOmitted, or goes when it failed.
//   - ValidateAnthropic: consecutive user messages of the same speaker (Name) become one. MergeUserTurns: so do a tool
//     message and the nameless tool and user messages after it, as a tool message with the results first.
//   - AssistantFirstFix: a history whose first message other than system is the assistant's gets a user message
//     (SessionStart) in front of it.
//
// That tool messages directly follow the assistant message they answer, which OpenAI demands, is RepairPairs' work.
// Messages with a Type of their own are never merged. A merged message has the ID and the Key of the first, all other
// fields of the last.
func ProviderTurns(msgs []message.Message, policy Policy) []message.Message {
	began := beginning(msgs)
	if policy.ValidateGemini || policy.ValidateAnthropic {
		msgs = mergeRuns(msgs, assistantRun, join)
	}
	if policy.ValidateAnthropic {
		msgs = stripDangling(msgs)
		msgs = mergeRuns(msgs, userRun, join)
	}
	if policy.MergeUserTurns && !resultPerMessage(msgs) {
		msgs = mergeRuns(msgs, toolRun, joinResults)
		msgs = resultsFirst(msgs)
	}
	if policy.AssistantFirstFix {
		msgs = assistantFirst(msgs, began)
	}
	return msgs
}

// mergeRuns joins every run of messages in which belongs holds between the first message and each of the others.
func mergeRuns(
	msgs []message.Message,
	belongs func(first, m *message.Message) bool,
	join func(run []message.Message) message.Message,
) []message.Message {
	l := list{src: msgs}
	for i := 0; i < len(msgs); {
		end := i + 1
		for end < len(msgs) && belongs(&msgs[i], &msgs[end]) {
			end++
		}
		if end == i+1 {
			l.keep(i)
		} else {
			l.add(join(msgs[i:end]))
		}
		i = end
	}
	return l.done()
}

func assistantRun(first, m *message.Message) bool {
	return first.Role == message.Assistant && m.Role == message.Assistant && first.Type == "" && m.Type == ""
}

func userRun(first, m *message.Message) bool {
	return isUserTurn(first) && isUserTurn(m) && first.Name == m.Name
}

func toolRun(first, m *message.Message) bool {
	return first.Role == message.Tool && (m.Role == message.Tool || m.Role == message.User) &&
		first.Type == "" && m.Type == "" && first.Name == "" && m.Name == ""
}

func joinResults(run []message.Message) message.Message {
	m := join(run)
	m.Role = message.Tool
	return m
}

// resultPerMessage reports whether msgs holds a message of a format that cannot write two results into one.
func resultPerMessage(msgs []message.Message) bool {
	for i := range msgs {
		if f := msgs[i].Format; f == message.FormatOpenAI || f == message.FormatPi {
			return true
		}
	}
	return false
}

// resultsFirst puts the results of every tool message in front of its other parts.
func resultsFirst(msgs []message.Message) []message.Message {
	l := list{src: msgs}
	for i := range msgs {
		m := &msgs[i]
		if m.Role != message.Tool || resultsLead(m.Parts) {
			l.keep(i)
			continue
		}
		parts := make([]message.Part, 0, len(m.Parts))
		parts = append(parts, m.Results()...)
		for _, p := range m.Parts {
			if p.Kind != message.ToolResult {
				parts = append(parts, p)
			}
		}
		l.add(m.WithParts(parts))
	}
	return l.done()
}

func resultsLead(parts []message.Part) bool {
	other := false
	for i := range parts {
		if parts[i].Kind != message.ToolResult {
			other = true
		} else if other {
			return false
		}
	}
	return true
}

// stripDangling takes out the calls that no result answers before the next assistant message.
func stripDangling(msgs []message.Message) []message.Message {
	l := list{src: msgs}
	for i := range msgs {
		m := &msgs[i]
		if m.Role != message.Assistant || !m.HasCalls() {
			l.keep(i)
			continue
		}
		end := i + 1
		for end < len(msgs) && msgs[end].Role != message.Assistant {
			end++
		}
		answered := resultIn(msgs[i+1:end], len(m.Parts))
		stripped := stripCalls(*m, func(_ int, p *message.Part) bool { return answered(p.CallID) })
		switch {
		case sameParts(stripped.Parts, m.Parts):
			l.keep(i)
		case len(stripped.Parts) > 0:
			l.add(stripped)
		}
	}
	return l.done()
}

// resultIn returns a function that reports whether a tool message of msgs has a result with an id. It looks them up one by
// one for the few calls a message usually has, and makes a set for more.
func resultIn(msgs []message.Message, calls int) func(id string) bool {
	const few = 16
	if calls <= few {
		return func(id string) bool { return hasResult(msgs, id) }
	}
	ids := make(map[string]bool)
	for i := range msgs {
		if msgs[i].Role != message.Tool {
			continue
		}
		for _, p := range msgs[i].Parts {
			if p.Kind == message.ToolResult {
				ids[p.CallID] = true
			}
		}
	}
	return func(id string) bool { return ids[id] }
}

func hasResult(msgs []message.Message, id string) bool {
	for i := range msgs {
		if msgs[i].Role != message.Tool {
			continue
		}
		for j := range msgs[i].Parts {
			if p := &msgs[i].Parts[j]; p.Kind == message.ToolResult && p.CallID == id {
				return true
			}
		}
	}
	return false
}

// stripCalls returns m without the calls that answered denies, n being the call's number in m; with thinking, without
// any call unless all are answered: signed thinking covers the calls that came with it. A message left without
// content says CallsOmitted; a failed one is left without parts.
func stripCalls(m message.Message, answered func(n int, p *message.Part) bool) message.Message {
	keep := make([]bool, 0, 8)
	all := true
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.ToolCall {
			ok := answered(len(keep), p)
			keep = append(keep, ok)
			all = all && ok
		}
	}
	if all {
		return m
	}
	none := hasKind(m.Parts, message.Thinking)
	parts := make([]message.Part, 0, len(m.Parts))
	n := 0
	for _, p := range m.Parts {
		if p.Kind == message.ToolCall {
			n++
			if none || !keep[n-1] {
				continue
			}
		}
		parts = append(parts, p)
	}
	if !hasContent(parts) {
		parts = nil
		if !failed(&m) {
			parts = []message.Part{{Kind: message.Text, Text: CallsOmitted}}
		}
	}
	return m.WithParts(parts)
}

// beginning is when the first message was said that is not the system's.
func beginning(msgs []message.Message) time.Time {
	for i := range msgs {
		if msgs[i].Role != message.System {
			return msgs[i].Time
		}
	}
	return time.Time{}
}

// assistantFirst makes sure that somebody spoke before the assistant did. System messages stay in front.
func assistantFirst(msgs []message.Message, began time.Time) []message.Message {
	for i := range msgs {
		switch msgs[i].Role {
		case message.System:
			continue
		case message.Assistant:
			// Hosts stamp user messages with their time, and the stamp must not change: what follows may be several messages in one, which grows.
			opening := message.New(message.User, SessionStart)
			opening.Time = began
			out := make([]message.Message, 0, len(msgs)+1)
			out = append(out, msgs[:i]...)
			out = append(out, opening)
			return append(out, msgs[i:]...)
		}
		return msgs
	}
	return msgs
}
