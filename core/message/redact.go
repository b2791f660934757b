package message

import (
	"bytes"
	"encoding/json"
)

// Redact returns m with every text passed through edit: what is said, thought, called with and answered, and every other string value among
// the host's bytes. Names of fields stay, and so do the ids that link calls with results. A message in which edit changes nothing comes back as it is,
// its bytes untouched.
func Redact(m Message, edit func(string) string) Message {
	if m.Raw == nil {
		return redactParts(m, edit)
	}
	raw, changed := redactJSON(m.Raw, edit)
	if !changed {
		return m
	}
	c, err := Lookup(m.Format)
	if err == nil {
		var d Message
		if d, err = c.Decode(raw); err == nil && len(d.Parts) == len(m.Parts) {
			m.Parts, m.Raw = d.Parts, raw
			return m
		}
	}
	// Without a codec the bytes cannot be kept in step with the parts.
	m = redactParts(m, edit)
	m.Raw, m.Edited = nil, false
	return m
}

// redactParts edits what the parts say.
func redactParts(m Message, edit func(string) string) Message {
	parts := make([]Part, len(m.Parts))
	changed := false
	for i, p := range m.Parts {
		text := edit(p.Text)
		args, argsChanged := redactText(p.Args, edit)
		raw, rawChanged := redactJSON(p.Raw, edit)
		if text != p.Text || argsChanged || rawChanged {
			changed = true
			p.Text, p.Args, p.Raw = text, args, raw
			if p.Kind != Image && p.Kind != Other {
				p.Raw = nil
			}
		}
		parts[i] = p
	}
	if !changed {
		return m
	}
	return m.WithParts(parts)
}

// redactText edits a text; one that is JSON itself is edited value by value, so that it stays JSON.
func redactText(text string, edit func(string) string) (string, bool) {
	if len(text) > 1 && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
		b, changed := redactJSON([]byte(text), edit)
		return string(b), changed
	}
	out := edit(text)
	return out, out != text
}

// linkFields are the fields whose values tie messages together.
var linkFields = [][]byte{[]byte("id"), []byte("toolCallId"), []byte("tool_call_id"), []byte("tool_use_id"), []byte("type"), []byte("role")}

// redactJSON edits the string values of a JSON text in place; everything between them stays byte for byte. Text that is not JSON is left alone.
func redactJSON(raw []byte, edit func(string) string) ([]byte, bool) {
	if len(raw) == 0 || !json.Valid(raw) {
		return raw, false
	}
	var out []byte
	done := 0 // raw up to here is in out
	var key []byte
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if c := raw[i]; c == ',' || c == '{' || c == '[' {
				key = nil
			}
			i++
			continue
		}
		end := stringEnd(raw, i)
		if isKey(raw, end) {
			key = raw[i+1 : end-1]
			i = end
			continue
		}
		var s string
		if !isLink(key) && json.Unmarshal(raw[i:end], &s) == nil {
			if text, changed := redactText(s, edit); changed {
				out = append(append(out, raw[done:i]...), quote(text)...)
				done = end
			}
		}
		i = end
	}
	if done == 0 {
		return raw, false
	}
	return append(out, raw[done:]...), true
}

// stringEnd returns the index behind the string literal that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isKey reports whether the string that ends before i names a field.
func isKey(raw []byte, i int) bool {
	rest := bytes.TrimLeft(raw[i:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

func isLink(key []byte) bool {
	for _, l := range linkFields {
		if bytes.Equal(key, l) {
			return true
		}
	}
	return false
}
