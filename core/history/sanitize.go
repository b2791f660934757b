package history

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// Sanitize applies the rules that look at one message at a time; see the package comment for what they may depend on.
//
// With Policy.Clean: blank text parts go, and messages that hold nothing else; a NO_REPLY text goes, and its message
// when at most thinking is left; images of assistants go, no provider takes them back; an assistant message that
// holds only thinking and ended in an error, an abort or at the length limit goes; an assistant message with stop
// reason "stop" and no usage that repeats the one before it goes; an empty tool result becomes EmptyResult; tool names
// are trimmed; a tool call goes that has no id, no arguments or arguments that are no JSON (free text of OpenAI's custom tools excepted), a name other than 1 to 64 of
// [A-Za-z0-9_:.-], or a name outside Policy.AllowedTools while it has no result.
//
// With PreserveSignatures, Base64Signatures, DropReasoning or DropThinking: as described there; an assistant message
// that held nothing else becomes ReasoningOmitted.
//
// Messages with a Type of their own are not emptied or dropped by these rules; system messages are never touched.
func Sanitize(msgs []message.Message, policy Policy) []message.Message {
	s := sanitizer{Policy: policy, msgs: msgs, newest: NewestTurn(msgs)}
	if !s.Clean && !s.PreserveSignatures && !s.Base64Signatures && !s.DropReasoning && !s.DropThinking {
		return msgs
	}
	for i := range msgs {
		if m := &msgs[i]; m.Type == message.CompactionSummary && m.Time.After(s.compacted) {
			s.compacted = m.Time
		}
	}
	l := list{src: msgs}
	for i := range msgs {
		m := &msgs[i]
		parts, ok := m.Parts, true
		switch m.Role {
		case message.User:
			parts, ok = s.user(m)
		case message.Assistant:
			parts, ok = s.assistant(i)
			ok = ok && !s.repeats(l.last(), m, parts)
		case message.Tool:
			parts, ok = s.tool(m)
		}
		switch {
		case !ok:
		case sameParts(parts, m.Parts):
			l.keep(i)
		default:
			l.add(m.WithParts(parts))
		}
	}
	return l.done()
}

type sanitizer struct {
	Policy
	msgs   []message.Message
	newest int
	// compacted is when the host compacted last; zero when it never did.
	compacted time.Time
}

func isBlankText(p *message.Part) bool { return p.Kind == message.Text && blank(p.Text) }

func (s *sanitizer) user(m *message.Message) ([]message.Part, bool) {
	if !s.Clean || m.Type != "" {
		return m.Parts, true
	}
	parts := filterParts(m.Parts, isBlankText)
	return parts, len(parts) > 0
}

func (s *sanitizer) tool(m *message.Message) ([]message.Part, bool) {
	if !s.Clean {
		return m.Parts, true
	}
	parts := trimNames(filterParts(m.Parts, isBlankText))
	if len(parts) == 0 {
		return parts, false
	}
	media := hasKind(parts, message.Image) || hasKind(parts, message.Other)
	return mapParts(parts, func(p *message.Part) bool {
		if p.Kind != message.ToolResult || !blank(p.Text) || media || holdsMore(p.Raw) {
			return false
		}
		p.Text = EmptyResult
		return true
	}), true
}

func (s *sanitizer) assistant(i int) ([]message.Part, bool) {
	m := &s.msgs[i]
	parts := m.Parts
	if s.Clean {
		silenced, answered := false, s.answers(i)
		parts = filterParts(trimNames(parts), func(p *message.Part) bool {
			switch p.Kind {
			case message.ToolCall:
				return !s.validCall(p, answered)
			case message.Text:
				mute := m.Type == "" && strings.TrimSpace(p.Text) == NoReply
				silenced = silenced || mute
				return mute || m.Type == "" && blank(p.Text)
			case message.Image:
				return m.Type == ""
			}
			return false
		})
		emptied := len(parts) == 0 && len(m.Parts) > 0
		if len(parts) == 0 && m.Type == "" || emptied {
			return nil, false
		}
		cut := failed(m) || m.Stop == stopLength
		if m.Type == "" && (silenced || cut) && onlyThinking(parts) {
			return nil, false
		}
	}
	return s.thinking(i, parts), true
}

// thinking applies the rules for thinking to the parts of the assistant message i.
func (s *sanitizer) thinking(i int, parts []message.Part) []message.Part {
	if !hasKind(parts, message.Thinking) {
		return parts
	}
	if s.Base64Signatures {
		parts = mapParts(parts, func(p *message.Part) bool {
			if p.Kind != message.Thinking || p.Signature == "" || isBase64(p.Signature) {
				return false
			}
			p.Signature = ""
			return true
		})
	}
	old, at := i < s.newest, s.msgs[i].Time
	stale := old && !at.IsZero() && at.Before(s.compacted)
	kept := filterParts(parts, func(p *message.Part) bool {
		if p.Kind != message.Thinking {
			return false
		}
		return old && (s.DropReasoning || s.DropThinking) || s.PreserveSignatures && (stale || blank(p.Signature))
	})
	if !sameParts(kept, parts) && !hasContent(kept) {
		return []message.Part{{Kind: message.Text, Text: ReasoningOmitted}}
	}
	return kept
}

// repeats reports whether m, about to be kept with these parts, is a copy of prev that no model produced.
func (s *sanitizer) repeats(prev, m *message.Message, parts []message.Part) bool {
	if !s.Clean || prev == nil || prev.Role != message.Assistant || prev.Type != "" || m.Type != "" ||
		m.Stop != "stop" || m.Usage != (message.Usage{}) || len(prev.Parts) != len(parts) {
		return false
	}
	for i := range parts {
		a, b := &prev.Parts[i], &parts[i]
		if a.Kind != b.Kind || a.Text != b.Text || a.Kind != message.Text && a.Kind != message.Thinking {
			return false
		}
	}
	return true
}

// validCall says whether the call p may be replayed; its name is already trimmed. answered reports for an id whether
// a result follows before the next message with calls.
func (s *sanitizer) validCall(p *message.Part, answered func(id string) bool) bool {
	if blank(p.CallID) || !validName(p.Name) {
		return false
	}
	if (blank(p.Args) || !json.Valid([]byte(p.Args))) && !isCustom(p) {
		return false
	}
	return len(s.AllowedTools) == 0 || slices.Contains(s.AllowedTools, p.Name) || answered(p.CallID)
}

// answers returns the look-up that validCall wants for message i.
func (s *sanitizer) answers(i int) func(id string) bool {
	if len(s.AllowedTools) == 0 || !s.msgs[i].HasCalls() {
		return nil
	}
	end := i + 1
	for end < len(s.msgs) && (s.msgs[end].Role != message.Assistant || !s.msgs[end].HasCalls()) {
		end++
	}
	return resultIn(s.msgs[i+1:end], len(s.msgs[i].Parts))
}
