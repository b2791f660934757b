package core

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/message"
)

// Text returns what can be searched and quoted of e: what was said, and what tools were called with. What clients put in is not in it, see Said, nor are calls
// of the engine's own tools and their results.
func (e Entry) Text() string {
	if !e.Message.HasCalls() {
		if e.Message.HasResults() && e.LookedUp() {
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
	spans, ok := injected.Parse(e.Meta[injected.Key], text)
	if !ok {
		spans = injected.In(&e.Message, injected.Known().Spans)
	}
	return injected.Without(text, spans)
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
		if t == nil {
			t = "null"
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
