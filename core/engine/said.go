package engine

import (
	"context"
	"fmt"
	"reflect"
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

// markInjected notes on an entry what clients put into it, where that takes more than the rules of known clients to see. What it says
// is noted in seen.
func (e *Engine) markInjected(entry *core.Entry, seen *repeats) {
	defer seen.note(entry)
	if !mayRepeat(entry) {
		return
	}
	spans := injected.In(&entry.Message, func(in injected.Place, text string) []injected.Span {
		return injected.Both(e.injected.Spans(in, text), seen.Repeated(in, text))
	})
	if !slices.Equal(spans, injected.In(&entry.Message, injected.Known().Spans)) {
		entry.Meta = withMeta(entry.Meta, injected.Key, injected.Format(spans, entry.Message.Text()))
	}
}

// mayRepeat reports whether clients put blocks into an entry.
func mayRepeat(entry *core.Entry) bool {
	return entry.Type == core.TypeMessage && entry.Role != message.Assistant
}

// repeats is what was seen of blocks that come back, in the newest entries of a path. It depends on these alone, not on who stored them.
type repeats struct {
	injected.Memory
	// of are the spans of those entries, up to position to, and erased is View.Erased then.
	of     []core.Span
	to     int
	erased uint64
}

// newestSpans returns the spans that hold what is remembered of v up to a position.
func newestSpans(v *core.View, to int) []core.Span {
	return v.Slice(to-injected.Remembered, to)
}

func (r *repeats) note(entry *core.Entry) {
	var texts []string
	if mayRepeat(entry) {
		for i := range entry.Message.Parts {
			if p := &entry.Message.Parts[i]; p.Kind == message.Text || p.Kind == message.ToolResult {
				texts = append(texts, p.Text)
			}
		}
	}
	r.Note(texts...)
}

// noted says that all entries of v were noted.
func (r *repeats) noted(v *core.View) {
	r.to, r.of, r.erased = v.Len(), newestSpans(v, v.Len()), v.Erased
}

// remind makes the session know what the newest entries of v repeat. It reads those that it has not seen.
func (s *session) remind(ctx context.Context, v *core.View) error {
	if r := s.seen; r == nil || r.to > v.Len() || r.erased != v.Erased || !reflect.DeepEqual(r.of, newestSpans(v, r.to)) {
		s.seen = new(repeats)
	}
	if r := s.seen; r.to < v.Len() {
		if err := s.e.reader.scanSpans(ctx, v, v.Slice(max(r.to, v.Len()-injected.Remembered), v.Len()), func(entry core.Entry) { r.note(&entry) }); err != nil {
			s.seen = nil
			return err
		}
	}
	s.seen.noted(v)
	return nil
}

// asked returns what a person said of a prompt.
func (s *session) asked(ctx context.Context, prompt string) (string, error) {
	if prompt == "" {
		return "", nil
	}
	if err := s.remind(ctx, &s.view); err != nil {
		return "", err
	}
	return injected.Without(prompt, injected.Both(s.e.injected.Spans(injected.User, prompt), s.seen.Repeated(injected.User, prompt))), nil
}
