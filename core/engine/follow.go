package engine

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/transcript"
	"github.com/contextengine/contextengine/core/message"
)

// follow rebuilds the path of v in the order found, storing what is new.
func (s *session) follow(ctx context.Context, v *core.View, t *core.Transcript, p transcript.Plan) (intake, error) {
	common := p.CommonPrefix()
	before := v.Len()
	messages, _ := p.News(s.id, v.Next, t)
	there, err := s.e.reader.outOfSight(ctx, s.id, v, p, messages)
	if err != nil {
		return intake{}, err
	}
	_, marks := p.News(s.id, v.Next-int64(len(there)), t)
	// What is given up for good is published before anything new is stored: should the rest fail, new entries are found behind the cut, not behind what
	// is no longer in force. Entries that only move stay where they are until all is stored.
	if common < before && !p.Moves(common) {
		v.Apply(edit.Cut{To: common})
		s.cool()
		if err := s.publish(ctx, *v); err != nil {
			return intake{}, err
		}
		*v = s.view.Clone()
	}
	scratch := v.Clone()
	in, err := s.append(ctx, &scratch, draft{messages: messages, marks: marks, known: there})
	if err != nil {
		return intake{}, err
	}
	entries, err := s.bySequence(ctx, in)
	if err != nil {
		return intake{}, err
	}
	v.Apply(edit.Count{Next: scratch.Next, Turns: scratch.Turns})
	if v.Len() > common {
		v.Apply(edit.Cut{To: common})
		s.cool()
	}
	lay := layer{v: v, keep: common, n: common}
	if len(p.Order) > 0 && p.Order[0].Known == 0 {
		lay.n = p.Hard[0] // what is soft in front of everything stays too
	}
	soft := p.SoftAfter()
	placed := 0
	next := len(p.Strays)
	for i, st := range p.Order {
		if st.Known >= 0 {
			k := p.Known[p.Hard[st.Known]]
			lay.put(k.Owner, k.Seq)
			for _, so := range soft[st.Known] {
				lay.put(so.Owner, so.Seq)
			}
		} else {
			lay.add(entries[next])
			next++
		}
		if i+1 == p.Front {
			placed = lay.n
		}
	}
	if p.Front >= 0 && (v.Frontier < placed || v.Start < placed) {
		s.cool()
		v.Apply(edit.Restart{At: placed})
	}
	for i, entry := range entries[:len(p.Strays)] {
		v.Apply(edit.Insert{At: p.Hard[p.At] + i, Session: entry.SessionID(), Seq: entry.Seq})
		s.cool()
	}
	for i := range p.Leaders {
		if l := &p.Leaders[i]; l.Host >= 0 {
			lay.add(entries[next])
			l.Owner, l.Seq = entries[next].SessionID(), entries[next].Seq
			next++
		} else if !onPath(v, l.Owner, l.Seq) {
			v.Apply(edit.Extend{Session: l.Owner, Seq: l.Seq}) // the path began anew
		}
	}
	leadWith(v, p.Leaders)
	return in, nil
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
func (s *session) bySequence(ctx context.Context, in intake) ([]core.Entry, error) {
	fresh := make(map[string]core.Entry, len(in.entries))
	for _, entry := range in.entries {
		fresh[entry.ID] = entry
	}
	out := make([]core.Entry, len(in.ids))
	for i, id := range in.ids {
		entry, ok := fresh[id]
		if !ok {
			got, err := s.e.store.Get(ctx, s.id.Scope(), []string{id})
			if err != nil {
				return nil, fmt.Errorf("core: reconcile %q: %w", s.id, err)
			}
			entry = got[0]
		}
		out[i] = entry
	}
	return out, nil
}

// outOfSight finds which of a host's messages the store holds although it did not show them: the ids of their entries, by index. What stands in front is not
// looked for, it is few. The next position of v comes behind theirs.
func (r *reader) outOfSight(ctx context.Context, id core.SessionID, v *core.View, p transcript.Plan, messages []message.Message) (map[int]string, error) {
	knows, ok := core.As[core.Recogniser](r.store)
	n := len(messages)
	for _, l := range p.Leaders {
		if l.Host >= 0 {
			n--
		}
	}
	if !ok || n == 0 {
		return nil, nil
	}
	found, err := knows.Recognise(ctx, id, messages[:n])
	if err != nil {
		return nil, fmt.Errorf("core: reconcile %q: %w", id, err)
	}
	taken := make(map[string]bool)
	for _, k := range p.Known {
		taken[k.ID] = true
	}
	says := make(map[string][]core.Entry)
	for _, entry := range found {
		if inConversation(entry) && entry.SessionID() == id {
			says[entry.Fingerprint] = append(says[entry.Fingerprint], entry)
		}
	}
	there := make(map[int]string)
	for i, fp := range fingerprintsOf(messages[:n]) {
		for _, entry := range says[fp] {
			if !taken[entry.ID] && sameOrigin(entry.Message, messages[i]) {
				taken[entry.ID], there[i] = true, entry.ID
				v.Apply(edit.Count{Next: max(v.Next, entry.Seq+1), Turns: v.Turns})
				break
			}
		}
	}
	return there, nil
}
