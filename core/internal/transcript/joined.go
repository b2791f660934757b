package transcript

import (
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/message"
)

// joinable reports whether a message may be several that a host, or the engine, merged. They do so where a provider wants roles to alternate: a turn that failed leaves a
// user's message next to the following one, an announced answer stands next to the one before it, and so do the results of calls made at once.
func joinable(m *message.Message) bool {
	return m.Role == message.User || m.Role == message.Assistant || m.Role == message.Tool && len(m.Parts) > 1
}

// Neighbour is a known entry next to one of the same role; index is its place among the known ones. Of an erased one there are no parts, but the prints
// that tell whether a message is what was erased.
type Neighbour struct {
	Known
	// Parts are what it holds, Prints those of its agent: the reader fills in one of them.
	Parts  []message.Part
	Prints erased.Prints

	index int
}

// was reports whether a message is what an erased neighbour said.
func (n *Neighbour) was(m message.Message) bool {
	fp := message.Fingerprint(m)
	return fp == n.Fingerprint || n.Prints.Known(n.Owner, n.Fingerprint, fp)
}

// Joinable returns the known entries that stand next to one of the same role, where a row may be several of them in one message; what they hold is to be filled in then.
// It is empty when every row is known, or the engine's own.
func (in *Reading) Joinable(known []Known) [][]Neighbour {
	odd, roles := in.odd(known), make(map[message.Role]bool)
	for _, r := range in.Rows {
		if odd(r) {
			roles[in.t.Messages[r.Index].Role] = true
		}
	}
	if len(roles) == 0 {
		return nil
	}
	return neighbours(known, roles)
}

// odd tells the rows that may be several known entries.
func (in *Reading) odd(known []Known) func(Row) bool {
	have := make(map[string]bool, len(known))
	for _, k := range known {
		have[k.Fingerprint] = true
	}
	return func(r Row) bool { return !r.Own && !have[r.Fingerprint] && joinable(&in.t.Messages[r.Index]) }
}

// Split puts known entries in the place of rows that are several of them, one behind the other, in one message. Such a row is no new
// message, and the entries are still in force: in known they are not soft any more.
func (in *Reading) Split(known []Known, runs [][]Neighbour) {
	odd := in.odd(known)
	out := make([]Row, 0, len(in.Rows))
	for _, r := range in.Rows {
		var of []Neighbour
		if odd(r) {
			of = findJoined(runs, &in.t.Messages[r.Index])
		}
		if len(of) == 0 {
			out = append(out, r)
		}
		for i, k := range of {
			known[k.index].Soft = false
			out = append(out, Row{Index: r.Index, Fingerprint: k.Fingerprint, Own: true, Gap: r.Gap && i == 0})
		}
	}
	in.Rows = out
}

// neighbours returns the known entries that stand next to one of the same role, of these roles.
func neighbours(known []Known, roles map[message.Role]bool) [][]Neighbour {
	var runs [][]Neighbour
	var run []Neighbour
	end := func() {
		if len(run) > 1 {
			runs = append(runs, run)
		}
		run = nil
	}
	for i, k := range known {
		if k.Soft && !k.Erased {
			continue
		}
		if len(run) > 0 && run[0].Role != k.Role || !roles[k.Role] {
			end()
		}
		if roles[k.Role] {
			run = append(run, Neighbour{Known: k, index: i})
		}
	}
	end()
	return runs
}

// findJoined returns the neighbours that m is made of, nil when there are none.
func findJoined(runs [][]Neighbour, m *message.Message) []Neighbour {
	for _, run := range runs {
		if run[0].Role != m.Role {
			continue
		}
		for from := range run[:len(run)-1] {
			if n := joinedFrom(run[from:], m); n > 1 {
				return run[from : from+n]
			}
		}
	}
	return nil
}

// joinedFrom returns how many of the first entries m consists of, 0 when it is something else.
func joinedFrom(run []Neighbour, m *message.Message) int {
	rest := joinedRest{parts: m.Parts}
	for n := range run {
		if run[n].Erased && !rest.takeErased(&run[n]) || !run[n].Erased && !rest.take(run[n].Parts) {
			return 0
		}
		if rest.empty() {
			return n + 1
		}
	}
	return 0
}

// joinedRest is what is left of a message from which parts were taken at its beginning. Blanks between two texts count for nothing: hosts
// differ in what they put there.
type joinedRest struct {
	parts []message.Part
	text  string // what is left of the text that was begun
	begun bool
}

func (r *joinedRest) take(parts []message.Part) bool {
	for i := range parts {
		p := &parts[i]
		if p.Kind != message.Text {
			r.skip()
			if r.begun || len(r.parts) == 0 || !samePart(&r.parts[0], p) {
				return false
			}
			r.parts = r.parts[1:]
			continue
		}
		want := strings.TrimSpace(p.Text)
		if want == "" {
			continue
		}
		if !r.begun {
			if len(r.parts) == 0 || r.parts[0].Kind != message.Text {
				return false
			}
			r.text, r.begun, r.parts = r.parts[0].Text, true, r.parts[1:]
		}
		left, ok := strings.CutPrefix(strings.TrimLeftFunc(r.text, unicode.IsSpace), want)
		if !ok {
			return false
		}
		r.text = left
		r.skip()
	}
	return true
}

// takeErased takes what an erased neighbour said, which nobody knows any more: it is tried what ends with a part or a line.
func (r *joinedRest) takeErased(k *Neighbour) bool {
	parts := r.parts
	if r.begun {
		parts = append([]message.Part{{Kind: message.Text, Text: r.text}}, parts...)
	}
	for n := range parts {
		if k.was(message.Message{Role: k.Role, Parts: parts[:n+1]}) {
			*r = joinedRest{parts: parts[n+1:]}
			return true
		}
	}
	if len(parts) == 0 || parts[0].Kind != message.Text {
		return false
	}
	text := parts[0].Text
	for at, c := range text {
		if c == '\n' && k.was(message.New(k.Role, text[:at])) {
			*r = joinedRest{parts: parts[1:], text: text[at:], begun: true}
			r.skip()
			return true
		}
	}
	return false
}

// skip leaves a text behind of which only blanks are left.
func (r *joinedRest) skip() {
	if r.begun && strings.TrimSpace(r.text) == "" {
		r.text, r.begun = "", false
	}
}

func (r *joinedRest) empty() bool { return !r.begun && len(r.parts) == 0 }

func samePart(a, b *message.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.CallID == b.CallID && a.Name == b.Name && a.Args == b.Args &&
		a.IsError == b.IsError && (a.Kind != message.Image && a.Kind != message.Other || string(a.Raw) == string(b.Raw))
}
