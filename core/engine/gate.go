package engine

import (
	"iter"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// gateCandidates is how many candidates are looked at when it is not certain that a turn asks.
const gateCandidates = 12

// offered visits what candidates quote.
func offered(candidates []core.Candidate) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range candidates {
			text := candidates[i].Text
			if text == "" {
				text = candidates[i].Entry.Text()
			}
			if !yield(text) {
				return
			}
		}
	}
}

// inFront visits what the window says in front of the turn.
func inFront(f *frame, c *call) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range f.v.Kept {
			if !yield(f.v.Kept[i].Text) {
				return
			}
		}
		end := f.newestTurn(c.hosted())
		for n := range f.visible {
			if it := f.item(n); f.place(n) < end && !eachText(&it.msg, yield) {
				return
			}
		}
		for i := range f.s.lead {
			if !eachText(&f.s.lead[i].msg, yield) {
				return
			}
		}
	}
}

// eachText visits what a message says in words, until visit returns false.
func eachText(m *message.Message, visit func(string) bool) bool {
	for i := range m.Parts {
		text := ""
		switch p := &m.Parts[i]; p.Kind {
		case message.Text, message.ToolResult:
			text = p.Text
		case message.ToolCall:
			text = p.Args
		}
		if !visit(text) {
			return false
		}
	}
	return true
}
