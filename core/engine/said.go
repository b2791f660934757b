package engine

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/message"
)

// markInjected notes on an entry what clients put into it, where that takes more than the rules of known clients to see. What it says is remembered when it
// is said for the first time.
func (s *session) markInjected(entry *core.Entry, first bool) {
	if entry.Type != core.TypeMessage || entry.Role == message.Assistant {
		return
	}
	memory := s.repeats()
	spans := injected.In(&entry.Message, func(in injected.Place, text string) []injected.Span {
		return injected.Both(s.e.injected.Spans(in, text), memory.Repeated(in, text))
	})
	if first {
		noteRepeats(memory, &entry.Message)
	}
	if !slices.Equal(spans, injected.In(&entry.Message, injected.Known().Spans)) {
		entry.Meta = withMeta(entry.Meta, injected.Key, injected.Format(spans, entry.Message.Text()))
	}
}

// repeats returns what the session has seen of blocks that come back.
func (s *session) repeats() *injected.Memory {
	if s.seen == nil {
		s.seen = new(injected.Memory)
		for i := range s.items {
			if e := &s.items[i].entry; e.Type == core.TypeMessage && e.Role != message.Assistant {
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
func (s *session) asked(prompt string) string {
	if prompt == "" {
		return ""
	}
	return injected.Without(prompt, injected.Both(s.e.injected.Spans(injected.User, prompt), s.repeats().Repeated(injected.User, prompt)))
}
