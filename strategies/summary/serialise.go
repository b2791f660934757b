package summary

import (
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting"
)

// timeLayout is how times are shown, in UTC.
const timeLayout = "2006-01-02 15:04"

// serialise shows a unit to the model: a heading for every entry, and every line that was said quoted, so that
// nothing that was said can pass for a heading or for the end of the excerpt.
func (w *work) serialise(u compacting.Unit) string {
	var b strings.Builder
	names := make(map[string]string)
	for i := u.From; i < u.To; i++ {
		e := &w.c.Entries[i]
		for _, p := range e.Message.Parts {
			if p.Kind == message.ToolCall {
				names[p.CallID] = p.Name
			}
		}
		if !e.Hidden() {
			w.entry(&b, e, names)
		}
	}
	return b.String()
}

func (w *work) entry(b *strings.Builder, e *core.Entry, names map[string]string) {
	b.WriteByte('[')
	if !e.Time.IsZero() {
		b.WriteString(e.Time.UTC().Format(timeLayout) + " ")
	}
	b.WriteString(speaker(e))
	b.WriteString("]\n")
	for _, p := range e.Message.Parts {
		switch p.Kind {
		case message.Text:
			quote(b, w.clip(p.Text, w.cfg.TextTokens))
		case message.ToolCall:
			quote(b, "calls "+p.Name+" with "+w.clip(p.Args, w.cfg.ResultTokens))
		case message.ToolResult:
			name := p.Name
			if name == "" {
				name = names[p.CallID]
			}
			outcome := "result"
			if p.IsError {
				outcome = "error"
			}
			quote(b, strings.TrimSpace(name+" "+outcome)+": "+w.clip(p.Text, w.cfg.ResultTokens))
		case message.Image:
			quote(b, strings.TrimSpace("(an image) "+w.clip(p.Text, w.cfg.ResultTokens)))
		case message.Other:
			if p.Text != "" {
				quote(b, w.clip(p.Text, w.cfg.ResultTokens))
			}
		case message.Thinking: // of no use to anybody but the model that thought it
		}
	}
}

func (w *work) clip(text string, limit int) string {
	return compacting.Clip(clean(text), limit, w.c.Count)
}

func speaker(e *core.Entry) string {
	switch e.Type {
	case core.TypeSubagent:
		return "subagent"
	case core.TypeSummary:
		return "summary"
	}
	if !e.Role.Valid() {
		return "unknown"
	}
	return string(e.Role)
}

// quote puts "> " in front of every line.
func quote(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("> ")
		b.WriteString(line)
		b.WriteByte('\n')
	}
}

// clean makes text valid UTF-8 with "\n" as its only line break and without control characters.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
}
