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
// linked holds besides those that stand elsewhere now.
type links struct {
	host, match, linked []int
	// gap says that known entries right before a message are only not shown; fillers are the roles of the host's own lines there, and, behind the last, of
	// those at the end.
	gap     []bool
	fillers [][]message.Role
	// roles are those of the known entries; strays say which of them are no anchors.
	roles  []message.Role
	strays []bool
}

// first returns the host message from which on the transcript is compared with what is known, -1 when they have nothing in common. What stands in front of
// it is the transcript's head.
func (l *links) first(t *Transcript) int {
	first := slices.IndexFunc(l.match, func(k int) bool { return k >= 0 && !l.strays[k] })
	if first != 0 || t.Whole {
		return first
	}
	// One known message, then a gap: the line may be the host's, or be kept at the top of a list that was cut. As many messages for as many that are
	// missing are an edit.
	next := 1 + slices.IndexFunc(l.match[1:], func(k int) bool { return k >= 0 && !l.strays[k] })
	if next == 0 || l.match[next] == l.match[0]+1 {
		return first
	}
	missing := l.roles[l.match[0]+1 : l.match[next]]
	if len(missing) == next-1 && len(l.fillers[next]) == 0 {
		return first
	}
	return next
}

// course is how a path goes on after a transcript was matched with it.
type course struct {
	order []pathStep
	// front is the number of leading steps that the host does not show, because it compacted them away itself; -1 when it did not.
	front int
	// strays are host messages that go in front of the known entry at, behind which the order begins as it was.
	strays []int
	at     int
}

// compose decides the new path.
func compose(l links, t *Transcript) course {
	c := course{front: -1}
	known := len(l.roles)
	first := l.first(t)
	summary := len(l.host) > 0 && t.Messages[l.host[0]].Type == message.CompactionSummary
	hidden := 0 // how many known entries the host does not show any more, but which are in force
	switch {
	case first >= 0:
		hidden = l.match[first]
	case summary:
		hidden = known
	}
	begin := 0
	moved := func(k int) bool { return k > hidden && !l.strays[k] }
	if first > 0 && !summary && !slices.ContainsFunc(l.linked[:first], moved) {
		for i := range first {
			if l.linked[i] < 0 {
				c.strays = append(c.strays, i)
			}
		}
		begin, c.at = first, hidden
		if t.Whole && len(c.strays) > 0 && hidden > 0 {
			begin, hidden, c.strays = 0, 0, nil
		}
	}
	// With nothing in common it is a new beginning: what was before stays stored, but is not part of this conversation.
	again := make(map[int]bool)
	for _, k := range l.linked[begin:] {
		again[k] = true
	}
	show := func(from, to int) {
		for k := from; k < to; k++ {
			if !again[k] {
				c.order = append(c.order, pathStep{known: k, host: -1})
			}
		}
	}
	show(0, hidden)
	if summary {
		c.front = len(c.order)
	}
	last, gap := -1, false
	for i := begin; i <= len(l.host); i++ {
		gap = gap || i < len(l.host) && l.gap[i]
		if i < len(l.host) && l.match[i] >= 0 {
			if last >= 0 {
				for k := last + 1; k < l.match[i]; k++ {
					if gap || l.strays[k] {
						show(k, k+1)
					}
				}
			}
			last, gap = l.match[i], false
		} else if last >= 0 {
			// A line of the host's stands for the known message that it took the place of.
			for _, role := range l.fillers[i] {
				if last+1 < known && l.roles[last+1] == role {
					last++
					show(last, last+1)
				}
			}
		}
		switch {
		case i == len(l.host):
		case l.linked[i] >= 0:
			c.order = append(c.order, pathStep{known: l.linked[i], host: -1})
		default:
			c.order = append(c.order, pathStep{known: -1, host: i})
		}
	}
	return c
}

// followed carries the outcome of an alignment.
type followed struct {
	course
	host    []int
	hard    []int
	known   []knownEntry
	leaders []leader
	// keep is how many entries at the beginning of the path stay whatever follows.
	keep int
}

// follow rebuilds the path of v in the order found, storing what is new.
func (e *Engine) follow(ctx context.Context, s *session, v *View, t *Transcript, f followed) (intake, error) {
	common := commonPrefix(f)
	before := v.Len()
	messages, marks := f.news(s.id, v.Next, t)
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
	in, err := e.append(ctx, s, &scratch, draft{messages: messages, marks: marks})
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
	lay := layer{v: v, keep: common, n: common}
	if len(f.order) > 0 && f.order[0].known == 0 {
		lay.n = f.hard[0] // what is soft in front of everything stays too
	}
	soft := softAfter(f)
	placed := 0
	next := len(f.strays)
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
		v.unrecall()
		v.Epoch++
	}
	for i, entry := range entries[:len(f.strays)] {
		v.insert(f.hard[f.at]+i, entry.SessionID(), entry.Seq)
		s.cool()
	}
	for i := range f.leaders {
		if l := &f.leaders[i]; l.host >= 0 {
			lay.add(entries[next])
			l.owner, l.seq = entries[next].SessionID(), entries[next].Seq
			next++
		}
	}
	v.lead(f.leaders)
	return in, nil
}

// news returns the messages to store, in the order strays, conversation, leaders, and the marks of their entries. The first one gets position next.
func (f *followed) news(id SessionID, next int64, t *Transcript) ([]message.Message, map[int]mark) {
	var messages []message.Message
	for _, i := range f.strays {
		messages = append(messages, t.Messages[f.host[i]])
	}
	for _, st := range f.order {
		if st.host >= 0 {
			messages = append(messages, t.Messages[f.host[st.host]])
		}
	}
	marks := leadMarks(id, f.leaders, len(messages), next)
	for _, l := range f.leaders {
		if l.host >= 0 {
			messages = append(messages, t.Messages[l.host])
		}
	}
	for i := range f.strays {
		if before := f.known[f.hard[f.at]]; f.at > 0 {
			marks[i] = mark{metaStray, placeName(before.owner, before.seq)}
		}
	}
	return messages, marks
}

// moves reports whether known entries behind the common beginning stay in force.
func moves(f followed, common int) bool {
	return slices.ContainsFunc(f.order, func(st pathStep) bool { return st.known >= 0 && f.hard[st.known] >= common })
}

// commonPrefix returns how many entries at the beginning of the path stay where they are.
func commonPrefix(f followed) int {
	n := 0
	for n < len(f.order) && n < len(f.hard) && f.order[n].known == n {
		n++
	}
	if len(f.hard)+len(f.order) == 0 {
		return len(f.known) // there is nothing that could be missing
	}
	if n == 0 {
		// Soft entries in front of everything stay only if something behind them does.
		return min(f.keep, len(f.known))
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
