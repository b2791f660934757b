package history

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// mapParts returns parts with change applied to a copy of each; parts itself when change reports true for none. A
// part that was changed loses its original bytes.
func mapParts(parts []message.Part, change func(p *message.Part) bool) []message.Part {
	var out []message.Part
	for i := range parts {
		p := parts[i]
		if !change(&p) {
			continue
		}
		if out == nil {
			out = append(out, parts...)
		}
		p.Raw = nil
		out[i] = p
	}
	if out == nil {
		return parts
	}
	return out
}

func trimNames(parts []message.Part) []message.Part {
	return mapParts(parts, func(p *message.Part) bool {
		name := strings.TrimSpace(p.Name)
		if name == p.Name || p.Kind != message.ToolCall && p.Kind != message.ToolResult || isCustom(p) {
			return false
		}
		p.Name = name
		return true
	})
}

// isCustom reports whether p is a call of OpenAI's "custom" kind: its input is free text, and only its original
// bytes say so, which is why no rule changes such a part.
func isCustom(p *message.Part) bool {
	if p.Kind != message.ToolCall || !bytes.Contains(p.Raw, []byte(`"custom"`)) {
		return false
	}
	var block struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(p.Raw, &block) == nil && block.Type == "custom"
}

func validName(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '_' && c != ':' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isBase64 reports whether s is padded standard base64.
func isBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	body := strings.TrimRight(s, "=")
	if len(s)-len(body) > 2 {
		return false
	}
	for i := range len(body) {
		if c := body[i]; !isAlnum(c) && c != '+' && c != '/' {
			return false
		}
	}
	return true
}

// onlyThinking reports whether nothing but thinking is left.
func onlyThinking(parts []message.Part) bool {
	for i := range parts {
		if parts[i].Kind != message.Thinking {
			return false
		}
	}
	return true
}

// holdsMore reports whether a result's original block has content that is no text, such as an image: it must not be
// overwritten although its text is blank.
func holdsMore(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	var block struct {
		Content []struct {
			Type string `json:"type"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &block) != nil {
		// A string, null or nothing where blocks would be: text at most. Anything else is left alone.
		return bytes.Contains(raw, []byte(`"type":"image"`))
	}
	for _, c := range block.Content {
		if c.Type != "text" {
			return true
		}
	}
	return false
}
