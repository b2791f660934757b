package history

import (
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// The texts this package puts in place of what is missing or was taken out. They are part of what is sent, so a
// change to one of them invalidates providers' caches.
const (
	// NoResult is the text of the error result that answers a call whose own result is missing.
	NoResult = "[no result was recorded for this tool call]"
	// EmptyResult stands for a tool result without any content.
	EmptyResult = "[the tool returned nothing]"
	// ReasoningOmitted stands for an assistant message that held nothing but reasoning.
	ReasoningOmitted = "[reasoning left out]"
	// CallsOmitted stands for an assistant message that held nothing but tool calls without results.
	CallsOmitted = "[unanswered tool calls left out]"
	// SessionStart is the user message put in front of a history that would begin with the assistant.
	SessionStart = "[the conversation continues here]"
)

// The stop reasons of an assistant message that did not end as the model intended.
const (
	stopError   = "error"
	stopAborted = "aborted"
	stopLength  = "length"
)

func failed(m *message.Message) bool { return m.Stop == stopError || m.Stop == stopAborted }

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// hasContent reports whether parts hold anything but blank text.
func hasContent(parts []message.Part) bool {
	for i := range parts {
		if parts[i].Kind != message.Text || !blank(parts[i].Text) {
			return true
		}
	}
	return false
}

func hasKind(parts []message.Part, k message.Kind) bool {
	for i := range parts {
		if parts[i].Kind == k {
			return true
		}
	}
	return false
}

// same reports whether a and b are the same slice, not merely equal ones.
func same(a, b []message.Message) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sameParts is same for parts.
func sameParts(a, b []message.Part) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// filterParts returns parts without those that drop names; parts itself when there are none.
func filterParts(parts []message.Part, drop func(p *message.Part) bool) []message.Part {
	for i := range parts {
		if !drop(&parts[i]) {
			continue
		}
		out := make([]message.Part, i, len(parts))
		copy(out, parts)
		for j := i + 1; j < len(parts); j++ {
			if !drop(&parts[j]) {
				out = append(out, parts[j])
			}
		}
		return out
	}
	return parts
}

// list collects messages and allocates only once something differs from the source.
type list struct {
	src []message.Message
	out []message.Message
	// n counts the source messages taken over unchanged while out is nil.
	n int
}

// keep takes over the source message i unchanged. Calls come in ascending order of i.
func (l *list) keep(i int) {
	if l.out == nil && l.n == i {
		l.n++
		return
	}
	l.split()
	l.out = append(l.out, l.src[i])
}

// add appends a message that is not in the source.
func (l *list) add(m message.Message) {
	l.split()
	l.out = append(l.out, m)
}

// last returns the newest message of the list, nil when there is none.
func (l *list) last() *message.Message {
	switch {
	case l.out == nil && l.n > 0:
		return &l.src[l.n-1]
	case len(l.out) > 0:
		return &l.out[len(l.out)-1]
	}
	return nil
}

func (l *list) split() {
	if l.out == nil {
		l.out = make([]message.Message, l.n, len(l.src)+1)
		copy(l.out, l.src)
	}
}

// done returns the list: the source itself when every message was kept.
func (l *list) done() []message.Message {
	if l.out != nil {
		return l.out
	}
	return l.src[:l.n:l.n]
}
