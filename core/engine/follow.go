package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/message"
)

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
func (e *Engine) follow(ctx context.Context, s *session, v *core.View, t *core.Transcript, f followed) (intake, error) {
	common := commonPrefix(f)
	before := v.Len()
	messages, _ := f.news(s.id, v.Next, t)
	there, err := e.outOfSight(ctx, s.id, v, f, messages)
	if err != nil {
		return intake{}, err
	}
	_, marks := f.news(s.id, v.Next-int64(len(there)), t)
	// What is given up for good is published before anything new is stored: should the rest fail, new entries are found behind the cut, not behind what
	// is no longer in force. Entries that only move stay where they are until all is stored.
	if common < before && !moves(f, common) {
		v.Apply(edit.Cut{To: common})
		s.cool()
		if err := e.publish(ctx, s, *v); err != nil {
			return intake{}, err
		}
		*v = s.view.Clone()
	}
	scratch := v.Clone()
	in, err := e.append(ctx, s, &scratch, draft{messages: messages, marks: marks, known: there})
	if err != nil {
		return intake{}, err
	}
	entries, err := e.bySequence(ctx, s, in)
	if err != nil {
		return intake{}, err
	}
	v.Apply(edit.Count{Next: scratch.Next, Turns: scratch.Turns})
	if v.Len() > common {
		v.Apply(edit.Cut{To: common})
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
		v.Apply(edit.Restart{At: placed})
	}
	for i, entry := range entries[:len(f.strays)] {
		v.Apply(edit.Insert{At: f.hard[f.at] + i, Session: entry.SessionID(), Seq: entry.Seq})
		s.cool()
	}
	for i := range f.leaders {
		if l := &f.leaders[i]; l.host >= 0 {
			lay.add(entries[next])
			l.owner, l.seq = entries[next].SessionID(), entries[next].Seq
			next++
		} else if !onPath(v, l.owner, l.seq) {
			v.Apply(edit.Extend{Session: l.owner, Seq: l.seq}) // the path began anew
		}
	}
	leadWith(v, f.leaders)
	return in, nil
}

// news returns the messages to store, in the order strays, conversation, leaders, and the marks of their entries. The first one gets position next.
func (f *followed) news(id core.SessionID, next int64, t *core.Transcript) ([]message.Message, map[int]mark) {
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
		if f.at > 0 || slices.ContainsFunc(f.known[:f.hard[0]], func(k knownEntry) bool { return k.erased }) {
			marks[i] = mark{metaStray, f.placeOf(f.at)}
		}
	}
	i, before := len(f.strays)+f.fresh(), ""
	for _, st := range slices.Backward(f.order) {
		if st.known >= 0 {
			before = f.placeOf(st.known)
			continue
		}
		if i--; before != "" {
			marks[i] = mark{metaBefore, before}
		}
	}
	return messages, marks
}

// fresh counts the steps that are new messages.
func (f *followed) fresh() int {
	n := 0
	for _, st := range f.order {
		if st.host >= 0 {
			n++
		}
	}
	return n
}

// placeOf names the place of a hard entry.
func (f *followed) placeOf(hard int) string {
	k := &f.known[f.hard[hard]]
	return placeName(k.owner, k.seq)
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
	v    *core.View
	keep int
	n    int
}

func (l *layer) put(owner core.SessionID, seq int64) {
	if l.n >= l.keep {
		l.v.Apply(edit.Extend{Session: owner, Seq: seq})
	}
	l.n++
}

func (l *layer) add(entry core.Entry) {
	if l.n >= l.keep {
		extendPath(l.v, entry)
	}
	l.n++
}

// bySequence returns the entries of an intake in the order of its messages, known ones read from the store.
func (e *Engine) bySequence(ctx context.Context, s *session, in intake) ([]core.Entry, error) {
	fresh := make(map[string]core.Entry, len(in.entries))
	for _, entry := range in.entries {
		fresh[entry.ID] = entry
	}
	out := make([]core.Entry, len(in.ids))
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
