package message

import "slices"

// Split returns m as the messages that say the same in the named format, each of which the codec of that format
// can encode. That is m alone unless it carries tool results and the format (OpenAI, pi) has room for one result
// in a message and for nothing beside it. Then every result becomes a Tool message of its own, in order, and the
// text and images that came with them one User message after the last; what an assistant message says beside
// results stays in front of them.
//
// The first message keeps the id and the key. If m is of that very format it also keeps m's original, so that its
// unknown fields survive. Messages without results stay as they are; a Tool message without any becomes a User
// message.
func Split(m Message, format string) []Message {
	if m.Format == format && m.Raw != nil && !m.Edited {
		return []Message{m}
	}
	if format == FormatAnthropic && m.Role != Assistant || m.Role != Tool && !m.HasResults() || single(m, format) {
		return []Message{m}
	}
	var (
		out  []Message
		rest []Part
	)
	for i, p := range m.Parts {
		switch {
		case p.Kind == ToolResult:
			inside := attached(m, i)
			if m.Format == FormatAnthropic {
				inside = nested(p)
			}
			parts := []Part{p}
			if format == FormatOpenAI && m.Format != FormatOpenAI {
				rest = append(rest, inside...) // its results are text alone
			} else {
				parts = append(parts, inside...)
			}
			out = append(out, piece(m, Tool, parts))
		case belongsToResult(m, i):
		case p.Kind == Thinking && m.Role != Assistant:
		default:
			rest = append(rest, p)
		}
	}
	switch {
	case m.Role == Assistant && len(rest) > 0:
		first := piece(m, Assistant, rest)
		first.Name, first.Stop, first.Usage = m.Name, m.Stop, m.Usage
		out = slices.Insert(out, 0, first)
	case len(rest) > 0 || len(out) == 0:
		out = append(out, piece(m, User, rest))
	}
	out[0].ID, out[0].Key = m.ID, m.Key
	if m.Format == format && m.Raw != nil && out[0].Role == m.Role {
		out[0].Raw, out[0].Edited = m.Raw, true
	}
	return out
}

// piece keeps the format, because the blocks in the parts are still in it.
func piece(m Message, role Role, parts []Part) Message {
	return Message{Role: role, Parts: parts, Time: m.Time, Format: m.Format, Entry: m.Entry}
}

// single reports whether m is one result and what belongs to it, as OpenAI and pi have it.
func single(m Message, format string) bool {
	if m.Role != Tool {
		return false
	}
	for i, p := range m.Parts {
		if i == 0 != (p.Kind == ToolResult) {
			return false
		}
		if i > 0 && (format == FormatOpenAI && m.Format != FormatOpenAI || !belongsToResult(m, i)) {
			return false
		}
	}
	if len(m.Parts) == 0 {
		return false
	}
	return m.Format != FormatAnthropic || len(nested(m.Parts[0])) == 0
}

// belongsToResult reports whether the i-th part of m is an image or an unknown block of the result in front of it.
// That is how OpenAI and pi results are decoded; blocks of an Anthropic result are inside its Raw, and what
// follows it is the user's.
func belongsToResult(m Message, i int) bool {
	if m.Role != Tool || m.Format == FormatAnthropic || m.Parts[i].Kind != Image && m.Parts[i].Kind != Other {
		return false
	}
	for _, p := range slices.Backward(m.Parts[:i]) {
		switch p.Kind {
		case ToolResult:
			return true
		case Image, Other:
		default:
			return false
		}
	}
	return false
}

// attached returns the parts after the i-th that belong to it.
func attached(m Message, i int) []Part {
	end := i + 1
	for end < len(m.Parts) && belongsToResult(m, end) {
		end++
	}
	return m.Parts[i+1 : end]
}
