package core

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/message"
)

// metaInjected lists what of an entry's text a client put in, where that is not what the rules of known clients say: a checksum of the text, and stretches
// of it in bytes.
const metaInjected = "injected"

// Text returns what can be searched and quoted of e: what was said, and what tools were called with. What clients put in is not in it, see Said, nor are calls
// of the engine's own tools and their results.
func (e Entry) Text() string {
	if !e.Message.HasCalls() {
		if e.Message.HasResults() && lookedUp(&e) {
			return ""
		}
		return e.Said()
	}
	var b strings.Builder
	b.WriteString(e.Said())
	for i := range e.Message.Parts {
		if p := &e.Message.Parts[i]; p.Kind == message.ToolCall && !ownTool(p.Name) {
			writeCall(&b, p)
		}
	}
	return b.String()
}

// Said returns the text of e, texts and tool results, without what clients put around it: see package injected.
func (e Entry) Said() string {
	text := e.Message.Text()
	if e.Type != TypeMessage || e.Role == message.Assistant || text == "" {
		return text
	}
	spans, ok := parseSpans(e.Meta[metaInjected], text)
	if !ok {
		spans = injectedIn(&e.Message, injected.Known().Spans)
	}
	return injected.Without(text, spans)
}

// injectedIn returns what find finds in the parts of a message, as stretches of its Text.
func injectedIn(m *message.Message, find func(injected.Place, string) []injected.Span) []injected.Span {
	var out []injected.Span
	at := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != message.Text && p.Kind != message.ToolResult || p.Text == "" {
			continue
		}
		in := injected.User
		if p.Kind == message.ToolResult {
			in = injected.Tool
		}
		for _, s := range find(in, p.Text) {
			out = append(out, injected.Span{From: at + s.From, To: at + s.To})
		}
		at += len(p.Text) + 1 // the newline between parts
	}
	return out
}

// markInjected notes on an entry what clients put into it, where that takes more than the rules of known clients to see. What it says is remembered when it
// is said for the first time.
func (e *Engine) markInjected(s *session, entry *Entry, first bool) {
	if entry.Type != TypeMessage || entry.Role == message.Assistant {
		return
	}
	memory := s.repeats()
	spans := injectedIn(&entry.Message, func(in injected.Place, text string) []injected.Span {
		return injected.Both(e.injected.Spans(in, text), memory.Repeated(in, text))
	})
	if first {
		noteRepeats(memory, &entry.Message)
	}
	if !slices.Equal(spans, injectedIn(&entry.Message, injected.Known().Spans)) {
		entry.Meta = withMeta(entry.Meta, metaInjected, formatSpans(spans, entry.Message.Text()))
	}
}

// repeats returns what the session has seen of blocks that come back.
func (s *session) repeats() *injected.Memory {
	if s.seen == nil {
		s.seen = new(injected.Memory)
		for i := range s.items {
			if e := &s.items[i].entry; e.Type == TypeMessage && e.Role != message.Assistant {
				noteRepeats(s.seen, &e.Message)
			}
		}
	}
	return s.seen
}

func noteRepeats(memory *injected.Memory, m *message.Message) {
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == message.Text || p.Kind == message.ToolResult {
			memory.Note(p.Text)
		}
	}
}

// asked returns what a person said of a prompt.
func (e *Engine) asked(s *session, prompt string) string {
	if prompt == "" {
		return ""
	}
	return injected.Without(prompt, injected.Both(e.injected.Spans(injected.User, prompt), s.repeats().Repeated(injected.User, prompt)))
}

func checksum(text string) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

func formatSpans(spans []injected.Span, text string) string {
	b := []byte(checksum(text))
	for _, s := range spans {
		b = fmt.Appendf(b, " %d-%d", s.From, s.To)
	}
	return string(b)
}

// parseSpans reads what formatSpans wrote, unless it was of another text.
func parseSpans(meta, text string) ([]injected.Span, bool) {
	sum, rest, _ := strings.Cut(meta, " ")
	if sum == "" || sum != checksum(text) {
		return nil, false
	}
	var out []injected.Span
	for part := range strings.FieldsSeq(rest) {
		from, to, _ := strings.Cut(part, "-")
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return nil, false
		}
		out = append(out, injected.Span{From: a, To: b})
	}
	return out, true
}

// writeCall adds a call as lines: the tool's name, and every argument by its name, texts as they read and not as JSON writes them.
func writeCall(b *strings.Builder, p *message.Part) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(p.Name)
	d := json.NewDecoder(strings.NewReader(p.Args))
	d.UseNumber()
	if writeValue(b, d, "") != nil && p.Args != "" {
		b.WriteByte('\n')
		b.WriteString(p.Args) // no JSON, or cut off
	}
}

// writeValue writes the next value of d, with the name that it has.
func writeValue(b *strings.Builder, d *json.Decoder, name string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := t.(json.Delim)
	if !ok {
		b.WriteByte('\n')
		if name != "" {
			b.WriteString(name + ": ")
		}
		fmt.Fprint(b, t)
		return nil
	}
	for d.More() {
		inner := name
		if open == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			inner = fmt.Sprint(key)
		}
		if err := writeValue(b, d, inner); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
