package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/erased"
	"github.com/contextengine/contextengine/core/message"
)

// joinable reports whether hosts merge messages of a role with their neighbours. Hosts do so where a provider wants roles to alternate: a turn
// that failed leaves a user's message next to the following one, an announced answer stands next to the one before it.
func joinable(role message.Role) bool { return role == message.User || role == message.Assistant }

// neighbour is a known entry next to one of the same role; index is its place among the known ones. Of an erased one there are no parts, but the prints
// that tell whether a message is what was erased.
type neighbour struct {
	knownEntry
	index  int
	parts  []message.Part
	prints erased.Prints
}

// was reports whether a message is what an erased neighbour said.
func (n *neighbour) was(m message.Message) bool {
	fp := message.Fingerprint(m)
	return fp == n.fp || n.prints.Known(n.owner, n.fp, fp)
}

// splitJoined puts known entries in the place of rows that are several of them, one behind the other, in one message. Such a row is no new
// message, and the entries are still in force.
func (e *Engine) splitJoined(ctx context.Context, known []knownEntry, rows []row, messages []message.Message) ([]row, error) {
	have := make(map[string]bool, len(known))
	for _, k := range known {
		have[k.fp] = true
	}
	odd := func(r row) bool { return !r.own && !have[r.fp] && joinable(messages[r.index].Role) }
	if !slices.ContainsFunc(rows, odd) {
		return rows, nil
	}
	runs, err := e.neighbours(ctx, known)
	if err != nil || len(runs) == 0 {
		return rows, err
	}
	out := make([]row, 0, len(rows))
	for _, r := range rows {
		var of []neighbour
		if odd(r) {
			of = findJoined(runs, &messages[r.index])
		}
		if len(of) == 0 {
			out = append(out, r)
		}
		for i, k := range of {
			known[k.index].soft = false
			out = append(out, row{index: r.index, fp: k.fp, own: true, gap: r.gap && i == 0})
		}
	}
	return out, nil
}

// neighbours returns the known entries that stand next to one of the same role, together with what they hold.
func (e *Engine) neighbours(ctx context.Context, known []knownEntry) ([][]neighbour, error) {
	var runs [][]neighbour
	var run []neighbour
	end := func() {
		if len(run) > 1 {
			runs = append(runs, run)
		}
		run = nil
	}
	for i, k := range known {
		if k.soft && !k.erased {
			continue
		}
		if len(run) > 0 && run[0].role != k.role || !joinable(k.role) {
			end()
		}
		if joinable(k.role) {
			run = append(run, neighbour{knownEntry: k, index: i})
		}
	}
	end()
	return runs, e.readNeighbours(ctx, runs)
}

// readNeighbours reads what neighbours hold: once for each session, and once for each agent of which some are erased.
func (e *Engine) readNeighbours(ctx context.Context, runs [][]neighbour) error {
	keys := make(map[string]erased.Prints)
	there := make(map[core.SessionID][]*neighbour)
	for _, run := range runs {
		for i := range run {
			n := &run[i]
			if !n.erased {
				there[n.owner] = append(there[n.owner], n)
				continue
			}
			p, known := keys[n.owner.Agent]
			if !known {
				var err error
				if p, err = e.printsOf(ctx, n.owner.Agent, false); err != nil {
					return err
				}
				keys[n.owner.Agent] = p
			}
			n.prints = p
		}
	}
	for owner, all := range there {
		for some := range slices.Chunk(all, core.MaxPage) {
			ids := make([]string, len(some))
			for i, n := range some {
				ids[i] = n.id
			}
			got, err := e.store.Get(ctx, owner.Scope(), ids)
			if err != nil {
				return fmt.Errorf("core: reconcile: %w", err)
			}
			for i, n := range some {
				n.parts = got[i].Message.Parts
			}
		}
	}
	return nil
}

// findJoined returns the neighbours that m is made of, nil when there are none.
func findJoined(runs [][]neighbour, m *message.Message) []neighbour {
	for _, run := range runs {
		if run[0].role != m.Role {
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
func joinedFrom(run []neighbour, m *message.Message) int {
	rest := joinedRest{parts: m.Parts}
	for n := range run {
		if run[n].erased && !rest.takeErased(&run[n]) || !run[n].erased && !rest.take(run[n].parts) {
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
func (r *joinedRest) takeErased(k *neighbour) bool {
	parts := r.parts
	if r.begun {
		parts = append([]message.Part{{Kind: message.Text, Text: r.text}}, parts...)
	}
	for n := range parts {
		if k.was(message.Message{Role: k.role, Parts: parts[:n+1]}) {
			*r = joinedRest{parts: parts[n+1:]}
			return true
		}
	}
	if len(parts) == 0 || parts[0].Kind != message.Text {
		return false
	}
	text := parts[0].Text
	for at, c := range text {
		if c == '\n' && k.was(message.New(k.role, text[:at])) {
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
