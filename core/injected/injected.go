// Package injected knows what clients of language models put into messages that nobody said: reminders, descriptions of the machine, lists of
// skills, lines around the output of tools. It stays in what is stored and shown, but nobody looks for it, and it is no part of a question.
//
// What a client writes is a Rule, and the rules are data: Builtin lists those of known clients, an operator adds others. New compiles them:
//
//	cutter, err := injected.New(append(own, injected.Builtin()...))
//	said := injected.Without(text, cutter.Spans(injected.User, text))
//
// Repeated blocks are seen without a rule, see Memory.
package injected

import (
	"fmt"
	"slices"
	"strings"
)

// Place says in what a rule holds.
type Place string

// The places. What an assistant says is its own.
const (
	// User is the text of a user's message.
	User Place = "user"
	// Tool is the result of a tool.
	Tool Place = "tool"
)

// Rule describes one thing that clients write around what is said. It begins at the beginning of a line, blanks aside. Either Tag is set or Begin.
type Rule struct {
	// Client names who writes it; for readers alone.
	Client string `koanf:"client"`
	// Tag is the name of an element: all from <tag> or <tag ...> to </tag>. One that is not closed is left alone.
	Tag string `koanf:"tag"`
	// Begin is literal text. What follows it belongs to it, up to and with End: to the end of the line where End is empty, and nothing where Begin itself
	// ends with a newline. Where End does not follow, the text is left alone.
	Begin string `koanf:"begin"`
	End   string `koanf:"end"`
	// In is where the rule holds, "user" or "tool"; both when empty.
	In Place `koanf:"in"`
	// Top lets the rule hold only where nothing but what other rules take stands before it.
	Top bool `koanf:"top"`
	// Keep takes away the tags alone, not what stands between them: it was said by somebody.
	Keep bool `koanf:"keep"`
}

// Span is a stretch of a text, in bytes, half open.
type Span struct{ From, To int }

// Cutter finds what rules describe. The zero value finds nothing. It is safe for concurrent use.
type Cutter struct {
	tags   map[string][]Rule
	begins [256][]Rule // by the first byte of Begin
}

// RuleError says which field of which rule is of no use, and what it must be.
type RuleError struct {
	Index       int
	Field, Text string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("injected: rules[%d].%s: %s", e.Index, e.Field, e.Text)
}

// New compiles rules. Where several begin at one place the first one holds, so an operator's rules go in front of Builtin. The error is a *RuleError.
func New(rules []Rule) (*Cutter, error) {
	c := &Cutter{tags: make(map[string][]Rule)}
	for i, r := range rules {
		fail := func(field, text string) error { return &RuleError{i, field, text} }
		switch {
		case (r.Tag == "") == (r.Begin == ""):
			return nil, fail("tag", `set either tag, such as "system-reminder", or begin`)
		case r.Tag != "" && strings.ContainsAny(r.Tag, "<>/\n\""):
			return nil, fail("tag", `is the bare name of an element, such as "system-reminder"`)
		case r.Tag != "" && r.End != "":
			return nil, fail("end", "belongs to begin; an element ends with its own tag")
		case r.Begin != "" && r.Keep:
			return nil, fail("keep", "is for elements")
		case r.Begin != "" && strings.TrimLeft(r.Begin, " \t\r\n") != r.Begin:
			return nil, fail("begin", "must begin with something else than a blank")
		case r.In != "" && r.In != User && r.In != Tool:
			return nil, fail("in", `must be "user" or "tool", or left out`)
		}
		if r.Tag != "" {
			c.tags[r.Tag] = append(c.tags[r.Tag], r)
			continue
		}
		c.begins[r.Begin[0]] = append(c.begins[r.Begin[0]], r)
	}
	return c, nil
}

// Spans returns what the rules take out of a text, in order.
func (c *Cutter) Spans(in Place, text string) []Span {
	if c == nil {
		return nil
	}
	var out, closing []Span // closing are the end tags of what is kept, the next one last
	top := true             // nothing was said yet
	for at := 0; at < len(text); {
		for len(closing) > 0 && closing[len(closing)-1].From < at {
			closing = closing[:len(closing)-1]
		}
		line := at
		for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
			at++
		}
		if at == len(text) {
			break
		}
		if text[at] == '\n' && len(c.begins['\n']) == 0 {
			at++ // nothing begins with it
			continue
		}
		if spans, next := c.match(in, text, at, top); next > at {
			for _, s := range spans {
				if s.From == at {
					s.From = line
				}
				out = append(out, s)
			}
			// The rest of the line is looked at like a line of its own: one element may follow another.
			if at = next; len(spans) == 2 {
				at = spans[0].To // elements may stand in what is kept
				closing = append(closing, spans[1])
			}
			continue
		}
		next, said := len(text), len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			next, said = at+n+1, at+n
		}
		if n := len(closing) - 1; n >= 0 && closing[n].From < next {
			next, said = closing[n].To, closing[n].From
		}
		top = top && said <= at
		at = next
	}
	return merged(out)
}

// match returns what a rule takes out at a place, and where that ends.
func (c *Cutter) match(in Place, text string, at int, top bool) ([]Span, int) {
	holds := func(r *Rule) bool { return (r.In == "" || r.In == in) && (top || !r.Top) }
	if text[at] == '<' && len(c.tags) > 0 {
		name, open := tagAt(text[at:])
		for i := range c.tags[name] {
			if r := &c.tags[name][i]; holds(r) {
				return element(text, at, open, r)
			}
		}
	}
	for i := range c.begins[text[at]] {
		r := &c.begins[text[at]][i]
		if !holds(r) || !strings.HasPrefix(text[at:], r.Begin) {
			continue
		}
		end := at + len(r.Begin)
		switch {
		case r.End != "":
			n := strings.Index(text[end:], r.End)
			if n < 0 {
				continue
			}
			end += n + len(r.End)
		case !strings.HasSuffix(r.Begin, "\n"):
			if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
				end += n + 1
			} else {
				end = len(text)
			}
		}
		return []Span{{at, end}}, end
	}
	return nil, at
}

// tagAt returns the name of the tag that a text begins with, and its length; nothing where it is none. Names may hold blanks where a client writes them so:
// everything up to the ">" is tried as a name by the caller, then what stands before the first blank.
func tagAt(text string) (name string, open int) {
	const longest = 512
	end := strings.IndexByte(text[:min(len(text), longest)], '>')
	if end < 2 || text[end-1] == '/' || strings.IndexByte(text[:end], '\n') >= 0 {
		return "", 0
	}
	name = text[1:end]
	if at := strings.IndexByte(name, '='); at >= 0 { // attributes
		name, _, _ = strings.Cut(name, " ")
	}
	return name, end + 1
}

// element returns the spans of an element that begins at a place: all of it, or its two tags.
func element(text string, at, open int, r *Rule) ([]Span, int) {
	closing := "</" + r.Tag + ">"
	if strings.IndexByte(r.Tag, ' ') >= 0 && !strings.Contains(text[at+open:], closing) {
		first, _, _ := strings.Cut(r.Tag, " ") // "<a b>" may be closed by "</a>"
		closing = "</" + first + ">"
	}
	n := strings.Index(text[at+open:], closing)
	if n < 0 {
		return nil, at
	}
	inner := at + open
	end := inner + n + len(closing)
	if r.Keep {
		return []Span{{at, inner}, {inner + n, end}}, end
	}
	return []Span{{at, end}}, end
}

// Both returns the spans of two lists, in order, those that overlap or touch as one.
func Both(a, b []Span) []Span {
	if len(b) == 0 {
		return a
	}
	return merged(slices.Concat(a, b))
}

// merged puts spans in order and those that touch into one.
func merged(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return a.From - b.From })
	var out []Span
	for _, s := range spans {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// Without returns text without spans, which are in order. What is left on either side stays apart.
func Without(text string, spans []Span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, s := range spans {
		if s.From < at || s.To < s.From || s.To > len(text) {
			return text // spans of another text
		}
		b.WriteString(text[at:s.From])
		if at = s.To; b.Len() > 0 && at < len(text) && text[at] != '\n' && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte(' ')
		}
	}
	b.WriteString(text[at:])
	return strings.TrimSpace(b.String())
}
