package core

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core/message"
)

// step is one entry of the new path: a known one (index into the hard entries) or a new message (index into host).
type pathStep struct{ known, host int }

// links are the messages of a host's transcript that count. match[i] is the known entry that host message i is, in the same order as before, or -1;
// linked holds besides those that stand elsewhere now; gap says that known entries right before it are only not shown.
type links struct {
	host, match, linked []int
	gap                 []bool
}

// compose decides the new path. front is the number of leading steps that the host does not show, because it compacted them away itself; -1 when it
// did not.
func compose(l links, known int, t *Transcript) (order []pathStep, front int) {
	first := slices.IndexFunc(l.match, func(k int) bool { return k >= 0 })
	front = -1
	summary := len(l.host) > 0 && t.Messages[l.host[0]].Type == message.CompactionSummary
	hidden := 0 // how many known entries the host does not show any more, but which are in force
	switch {
	case first >= 0:
		hidden = l.match[first]
	case summary:
		hidden = known
	}
	// With nothing in common it is a new beginning: what was before stays stored, but is not part of this conversation.
	again := make(map[int]bool)
	for _, k := range l.linked {
		again[k] = true
	}
	show := func(from, to int) {
		for k := from; k < to; k++ {
			if !again[k] {
				order = append(order, pathStep{known: k, host: -1})
			}
		}
	}
	show(0, hidden)
	if summary {
		front = len(order)
	}
	last := -1
	for i, k := range l.linked {
		if m := l.match[i]; m >= 0 {
			if l.gap[i] && last >= 0 {
				show(last+1, m)
			}
			last = m
		}
		if k >= 0 {
			order = append(order, pathStep{known: k, host: -1})
		} else {
			order = append(order, pathStep{known: -1, host: i})
		}
	}
	return order, front
}

// followed carries the outcome of an alignment.
type followed struct {
	order []pathStep
	front int
	host  []int
	hard  []int
	known []knownEntry
}

// follow rebuilds the path of v in the order found, storing what is new.
func (e *Engine) follow(ctx context.Context, s *session, v *View, t *Transcript, f followed) (intake, error) {
	common := commonPrefix(f)
	before := v.Len()
	var messages []message.Message
	for _, st := range f.order {
		if st.host >= 0 {
			messages = append(messages, t.Messages[f.host[st.host]])
		}
	}
	// What is given up for good is published before anything new is stored: should the rest fail, new entries are found behind the cut, not behind what
	// is no longer in force. Entries that only move stay where they are until all is stored.
	if common < before && !moves(f, common) {
		v.cut(common)
		s.cool()
		if err := e.publish(ctx, s, *v); err != nil {
			return intake{}, err
		}
		*v = s.view.Clone()
	}
	scratch := v.Clone()
	in, err := e.append(ctx, s, &scratch, draft{messages: messages})
	if err != nil {
		return intake{}, err
	}
	entries, err := e.bySequence(ctx, s, in)
	if err != nil {
		return intake{}, err
	}
	v.Next, v.Turns = scratch.Next, scratch.Turns
	if v.Len() > common {
		v.cut(common)
		s.cool()
	}
	lay := layer{v: v, keep: common}
	if common > 0 && len(f.hard) > 0 {
		lay.n = f.hard[0] // what is soft in front of everything stays too
	}
	soft := softAfter(f)
	placed := 0
	next := 0
	for i, st := range f.order {
		if st.known >= 0 {
			k := f.known[f.hard[st.known]]
			lay.put(k.owner, k.seq)
			for _, so := range soft[st.known] {
				lay.put(so.owner, so.seq)
			}
		} else {
			lay.add(entries[next])
			next++
		}
		if i+1 == f.front {
			placed = lay.n
		}
	}
	if f.front >= 0 && (v.Frontier < placed || v.Start < placed) {
		s.cool()
		v.Start, v.Frontier, v.Backlog = placed, placed, 0
		v.Summaries, v.Shown, v.Pinned = nil, nil, ""
		v.Epoch++
	}
	return in, nil
}

// moves reports whether known entries behind the common beginning stay in force.
func moves(f followed, common int) bool {
	return slices.ContainsFunc(f.order, func(st pathStep) bool { return st.known >= 0 && f.hard[st.known] >= common })
}

// commonPrefix returns how many entries at the beginning of the path stay where they are.
func commonPrefix(f followed) int {
	n := 0
	for n < len(f.order) && f.order[n].known == n {
		n++
	}
	if len(f.hard)+len(f.order) == 0 {
		return len(f.known) // there is nothing that could be missing
	}
	if n == 0 {
		// Soft entries in front of everything stay only if something behind them does.
		return 0
	}
	if n == len(f.hard) {
		return len(f.known)
	}
	return f.hard[n-1] + 1 + len(softRun(f, n-1))
}

// softRun returns the soft entries right behind a hard one.
func softRun(f followed, hard int) []knownEntry {
	from := f.hard[hard] + 1
	to := len(f.known)
	if hard+1 < len(f.hard) {
		to = f.hard[hard+1]
	}
	return f.known[from:to]
}

func softAfter(f followed) map[int][]knownEntry {
	out := make(map[int][]knownEntry)
	for i := range f.hard {
		if run := softRun(f, i); len(run) > 0 {
			out[i] = run
		}
	}
	return out
}

// layer lays a path, skipping the entries that stay where they are.
type layer struct {
	v    *View
	keep int
	n    int
}

func (l *layer) put(owner SessionID, seq int64) {
	if l.n >= l.keep {
		l.v.ExtendFrom(owner, seq)
	}
	l.n++
}

func (l *layer) add(entry Entry) {
	if l.n >= l.keep {
		extendPath(l.v, entry)
	}
	l.n++
}

// bySequence returns the entries of an intake in the order of its messages, known ones read from the store.
func (e *Engine) bySequence(ctx context.Context, s *session, in intake) ([]Entry, error) {
	fresh := make(map[string]Entry, len(in.entries))
	for _, entry := range in.entries {
		fresh[entry.ID] = entry
	}
	out := make([]Entry, len(in.ids))
	for i, id := range in.ids {
		entry, ok := fresh[id]
		if !ok {
			got, err := e.store.Get(ctx, s.id.Scope(), []string{id})
			if err != nil {
				return nil, fmt.Errorf("core: reconcile %q: %w", s.id, err)
			}
			entry = got[0]
		}
		out[i] = entry
	}
	return out, nil
}
