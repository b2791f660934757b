package injected

import (
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// Key is the name in an entry's metadata of what Format wrote: what of its text a client put in, where that is not what the rules of known clients say.
const Key = "injected"

// In returns what find finds in the parts of a message, as stretches of its Text.
func In(m *message.Message, find func(Place, string) []Span) []Span {
	var out []Span
	at := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != message.Text && p.Kind != message.ToolResult || p.Text == "" {
			continue
		}
		in := User
		if p.Kind == message.ToolResult {
			in = Tool
		}
		for _, s := range find(in, p.Text) {
			out = append(out, Span{From: at + s.From, To: at + s.To})
		}
		at += len(p.Text) + 1 // the newline between parts
	}
	return out
}

func checksum(text string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// Format writes stretches of a text for Parse, with a checksum of the text.
func Format(spans []Span, text string) string {
	b := []byte(checksum(text))
	for _, s := range spans {
		b = fmt.Appendf(b, " %d-%d", s.From, s.To)
	}
	return string(b)
}

// Parse reads what Format wrote. It is false when that was of another text, or is not what Format writes.
func Parse(meta, text string) ([]Span, bool) {
	sum, rest, _ := strings.Cut(meta, " ")
	if sum == "" || sum != checksum(text) {
		return nil, false
	}
	var out []Span
	for part := range strings.FieldsSeq(rest) {
		from, to, _ := strings.Cut(part, "-")
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return nil, false
		}
		out = append(out, Span{From: a, To: b})
	}
	return out, true
}
