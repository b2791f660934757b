package engine

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/message"
)

// RedactRule replaces what must not be stored. Rules act where messages enter the engine, before anything is counted, stored or indexed, so that
// neither store nor prompt ever holds what they match; the host's own copy is not changed.
type RedactRule struct {
	// Name stands in the replacement; letters, digits, "-" and "_".
	Name string `koanf:"name"`
	// Pattern is a regular expression in Go's syntax (RE2). It must not match the empty text nor its own replacement.
	Pattern string `koanf:"pattern"`
	// Replace is what stands there instead; "[redacted NAME]" when empty. $1 is the first group.
	Replace string `koanf:"replace"`
}

// redactor is a compiled list of rules.
type redactor []struct {
	re *regexp.Regexp
	by string
}

func newRedactor(rules []RedactRule) (redactor, error) {
	var out redactor
	for i, r := range rules {
		field := fmt.Sprintf("redact[%d]", i)
		if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(r.Name) {
			return nil, invalid("config", field+".name", `must be letters, digits, "-" and "_", such as "card-number"`)
		}
		re, err := regexp.Compile(r.Pattern)
		if err != nil {
			return nil, invalid("config", field+".pattern", err.Error())
		}
		by := r.Replace
		if by == "" {
			by = "[redacted " + r.Name + "]"
		}
		switch {
		case r.Pattern == "" || re.MatchString(""):
			return nil, invalid("config", field+".pattern", "must not be empty nor match the empty text")
		case re.MatchString(re.ReplaceAllString(by, by)) || re.MatchString(by):
			return nil, invalid("config", field+".replace", "must not match the pattern itself")
		}
		out = append(out, struct {
			re *regexp.Regexp
			by string
		}{re, by})
	}
	return out, nil
}

func (r redactor) edit(text string) string {
	for _, rule := range r {
		if rule.re.MatchString(text) {
			text = rule.re.ReplaceAllString(text, rule.by)
		}
	}
	return text
}

// Redactor returns what the rules of Redact make of a message, for whoever compares with what is stored; nil when there are no rules.
func (c Config) Redactor() (func(message.Message) message.Message, error) {
	rules, err := newRedactor(c.Redact)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	return func(m message.Message) message.Message { return message.Redact(m, rules.edit) }, nil
}

// redacted returns the messages as they may be stored. The slice given is not changed.
func (r redactor) redacted(messages []message.Message) []message.Message {
	if len(r) == 0 {
		return messages
	}
	out := make([]message.Message, len(messages))
	for i, m := range messages {
		out[i] = message.Redact(m, r.edit)
	}
	return out
}

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
