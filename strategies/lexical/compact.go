package lexical

import (
	"maps"
	"slices"
)

// minDead is how many dead passages are not worth a compaction.
const minDead = 64

// compacted returns s, or a tidy copy when more than an eighth of all passages are dead.
func (s *segment) compacted() *segment {
	if s.dead < minDead || s.dead*8 <= s.dead+s.live {
		return s
	}
	return s.tidy()
}

// snapshot returns a copy of s that stays as it is while s goes on, to be tidied: what only searches need is not in it. It copies what is changed in place
// and shares what only grows.
func (s *segment) snapshot() *segment {
	n := *s
	n.writer = writer{}
	n.docs, n.docOf, n.sessions = slices.Clone(s.docs), slices.Clone(s.docOf), slices.Clone(s.sessions)
	n.links, n.metas, n.contexts = slices.Clone(s.links), slices.Clone(s.metas), slices.Clone(s.contexts)
	n.spans = slices.Clone(s.spans)
	n.blocks, n.frequent, n.kin = blocks{}, nil, nil
	n.terms = slices.Clone(s.terms)
	n.arena.pages = slices.Clone(s.arena.pages)
	n.actorIDs = maps.Clone(s.actorIDs)
	return &n
}

// tidy returns a copy of s without anything that only the dead needed, sessions one after the other, so that neighbours are next to each
// other. Postings all lie in the base.
func (s *segment) tidy() *segment {
	n := newSegment(s.cfg)
	n.live, n.context = s.live, s.context
	moved := n.takeDocs(s)
	n.takePostings(s, moved)
	return n
}

// takeDocs copies the docs and passages of was and returns, by passage of was, its new number; none for the dead.
func (s *segment) takeDocs(was *segment) []uint32 {
	docs, passages := 0, was.live
	for i := range was.sessions {
		for d := was.sessions[i].head; d != none; d = was.docs[d].next {
			docs++
		}
	}
	s.docs, s.docOf, s.damp = make([]doc, 0, docs), make([]uint32, 0, docs), make([]float32, 0, docs)
	s.ids = newTable(docs * 4 / 3)
	s.passageDoc, s.start, s.size = make([]uint32, 0, passages), make([]uint32, 0, passages), make([]uint16, 0, passages)
	s.links, s.metas, s.contexts = make([]link, 0, passages), make([]meta, 0, passages), make([]uint32, 0, passages)
	s.spans = make([]span8, 0, passages)
	moved := make([]uint32, len(was.metas))
	for i := range moved {
		moved[i] = none
	}
	for i := range was.sessions {
		if was.sessions[i].head == none {
			continue
		}
		sid, _ := s.names.number(was.names.at(uint32(i)))
		s.sessions = append(s.sessions, session{none, none, none})
		from := len(s.metas)
		for at := was.sessions[i].head; at != none; at = was.docs[at].next {
			old := &was.docs[at]
			d := *old
			d.id, _ = s.ids.number(was.ids.at(old.id))
			d.session, d.first = sid, uint32(len(s.metas))
			if d.actor < unnamed {
				d.actor = s.actor(was.actors[d.actor].name)
			}
			for p := old.first; p < old.first+old.count; p++ {
				moved[p] = uint32(len(s.metas))
				s.passageDoc = append(s.passageDoc, uint32(len(s.docs)))
				s.start, s.size = append(s.start, was.start[p]), append(s.size, was.size[p])
				s.metas, s.contexts = append(s.metas, was.metas[p]), append(s.contexts, was.contexts[p])
			}
			s.docOf = append(s.docOf, uint32(len(s.docs)))
			s.docs = append(s.docs, d)
			s.damp = append(s.damp, was.damp[at])
		}
		s.chain(from)
	}
	s.chainDocs()
	s.survey()
	return moved
}

// chain links the passages from a number on, which are those of one session, in order.
func (s *segment) chain(from int) {
	for p := from; p < len(s.metas); p++ {
		l := link{uint32(p) - 1, uint32(p) + 1}
		if p == from {
			l.prev = none
		}
		if p == len(s.metas)-1 {
			l.next = none
		}
		s.links = append(s.links, l)
		s.spans = append(s.spans, span8(min(p-from, reach)|min(len(s.metas)-1-p, reach)<<4))
	}
}

// chainDocs links all docs, which lie in order, session by session.
func (s *segment) chainDocs() {
	for i := range s.docs {
		d, n := &s.docs[i], uint32(i)
		v := &s.sessions[d.session]
		d.prev, d.next = v.tail, none
		if v.tail == none {
			v.head = n
		} else {
			s.docs[v.tail].next = n
		}
		v.tail, v.latest = n, n
	}
}

// takePostings copies the postings of was that live on, under their new numbers.
func (s *segment) takePostings(was *segment, moved []uint32) {
	var buf []byte
	var kept []uint64
	size := 0
	for i := range was.terms {
		size += int(was.terms[i].size) + 2
	}
	s.base = make([]byte, 0, size)
	s.words = newTable(len(was.terms))
	s.terms = make([]term, 0, len(was.terms))
	for id := range was.terms {
		var list []byte
		list, buf = was.list(uint32(id), buf)
		kept = kept[:0]
		var p posting
		for r := (reader{b: list}); r.next(&p); {
			if to := moved[p.passage]; to != none {
				kept = append(kept, uint64(to)<<32|uint64(p.body)<<16|uint64(p.own))
			}
		}
		if len(kept) == 0 {
			continue
		}
		if !slices.IsSorted(kept) {
			slices.Sort(kept)
		}
		s.words.number(was.words.at(uint32(id)))
		t := term{base: uint32(len(s.base)), room: 8}
		for _, v := range kept {
			p := posting{uint32(v >> 32), uint16(v >> 16), uint16(v)}
			s.base = appendPosting(s.base, t.last, p)
			t.note(p)
		}
		t.size = uint32(len(s.base)) - t.base
		s.terms = append(s.terms, t)
	}
}
