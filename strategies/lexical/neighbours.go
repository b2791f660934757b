package lexical

// linkDoc makes first the doc behind left and last the one before right.
func (s *segment) linkDoc(sid, left, first, last, right uint32) {
	if left == none {
		s.sessions[sid].head = first
	} else {
		s.docs[left].next = first
	}
	if right == none {
		s.sessions[sid].tail = last
	} else {
		s.docs[right].prev = last
	}
}

// edge returns the passage nearest to a gap: the last one of doc n or of those before it, or the first one of n or of those behind it.
func (s *segment) edge(n uint32, dir int) uint32 {
	for n != none {
		d := &s.docs[n]
		switch {
		case d.count > 0 && dir < 0:
			return d.first + d.count - 1
		case d.count > 0:
			return d.first
		case dir < 0:
			n = d.prev
		default:
			n = d.next
		}
	}
	return none
}

// recountAround brings the contexts of the passages next to a changed place up to date.
func (s *segment) recountAround(left, right uint32) {
	for j := 0; j < reach && left != none; j++ {
		s.context -= uint64(s.contexts[left])
		s.recount(left)
		left = s.links[left].prev
	}
	for j := 0; j < reach && right != none; j++ {
		s.context -= uint64(s.contexts[right])
		s.recount(right)
		right = s.links[right].next
	}
}

// recount sets what a passage knows of its neighbours: its context, which is added to the sum, and its span.
func (s *segment) recount(p uint32) {
	c := s.metas[p].length() * unit
	before, after := uint32(0), uint32(0) // consecutive ones
	span := span8(0)
	for j, q := uint32(0), s.links[p].prev; j < reach && q != none; j, q = j+1, s.links[q].prev {
		c += s.weights[j] * min(s.metas[q].length(), neighbourCap)
		if span&moreBefore == 0 && q == p-1-j {
			before++
		} else {
			span |= moreBefore
		}
	}
	for j, q := uint32(0), s.links[p].next; j < reach && q != none; j, q = j+1, s.links[q].next {
		c += s.weights[reach+j] * min(s.metas[q].length(), neighbourCap)
		if span&moreAfter == 0 && q == p+1+j {
			after++
		} else {
			span |= moreAfter
		}
	}
	s.contexts[p] = c
	s.refloor(p / block)
	s.context += uint64(c)
	s.spans[p] = span | span8(before|after<<4)
	set(s.fars, p, span&(moreBefore|moreAfter) != 0)
}
