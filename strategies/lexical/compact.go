package lexical

import "github.com/contextengine/contextengine/core"

// minDead is how many dead passages are not worth a compaction.
const minDead = 64

// compacted returns s, or a copy without the dead when they are more than a quarter of all passages.
func (s *segment) compacted() *segment {
	if s.dead < minDead || s.dead*4 <= s.dead+s.live {
		return s
	}
	n := newSegment(s.cfg)
	n.actors, n.actorIDs = s.actors, s.actorIDs
	n.sessionIDs, n.sessions = s.sessionIDs, s.sessions
	n.live, n.context = s.live, s.context

	docs := make([]uint32, len(s.docs))
	for i, d := range s.docs {
		docs[i] = none
		if !d.dead {
			docs[i] = uint32(len(n.docs))
			n.byID[d.id] = docs[i]
			n.docs = append(n.docs, d)
		}
	}
	moved := make([]uint32, len(s.passages))
	for i, p := range s.passages {
		moved[i] = none
		if p.session != none {
			moved[i] = uint32(len(n.passages))
			n.passages = append(n.passages, p)
		}
	}
	to := func(ids []uint32, i uint32) uint32 {
		if i == none {
			return none
		}
		return ids[i]
	}
	for i := range n.docs {
		d := &n.docs[i]
		d.prev, d.next = to(docs, d.prev), to(docs, d.next)
		if d.count > 0 {
			d.first = moved[d.first]
		}
	}
	for i := range n.passages {
		p := &n.passages[i]
		p.doc, p.prev, p.next = docs[p.doc], to(moved, p.prev), to(moved, p.next)
	}
	for i := range n.sessions {
		v := &n.sessions[i]
		v.head, v.tail = to(docs, v.head), to(docs, v.tail)
	}
	for term, id := range s.terms {
		var kept []posting
		for _, e := range s.postings[id] {
			if e.passage = moved[e.passage]; e.passage != none {
				kept = append(kept, e)
			}
		}
		if len(kept) > 0 {
			n.terms[term] = uint32(len(n.postings))
			n.postings = append(n.postings, kept)
		}
	}
	return n // n.stems fills again as words are met
}

// holds reports whether an entry is indexed and lies in scope.
func (s *segment) holds(scope core.Scope, id string) bool {
	n, ok := s.byID[id]
	if !ok || scope.Session == "" {
		return ok
	}
	sid, ok := s.sessionIDs[scope.Session]
	return ok && s.docs[n].session == sid
}
