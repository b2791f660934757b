package lexical

import (
	"math/bits"
	"sort"
)

// bitmaps say where a term is: by block, a bit for each passage.
type bitmaps struct {
	body []byte // it is in the text
	own  []byte // it is the speaker, tool or date; nil when it is nowhere
	// more are the postings of passages where it is more than once in the text, or more than once their own, in order.
	more []posting
}

// add adds a posting behind all others.
func (m *bitmaps) add(v posting) {
	if v.body > 0 {
		m.body = mark(m.body, v.passage)
	}
	if v.own > 0 {
		m.own = mark(m.own, v.passage)
	}
	if v.body > 1 || v.own > 1 {
		m.more = append(m.more, v)
	}
}

// mark sets the bit of a passage. Bits behind the last byte are not set.
func mark(b []byte, p uint32) []byte {
	for uint32(len(b)) <= p/block {
		b = push(b, 0)
	}
	b[p/block] |= 1 << (p % block)
	return b
}

// at returns the bits of a block.
func at(b []byte, r uint32) uint32 {
	if r < uint32(len(b)) {
		return uint32(b[r])
	}
	return 0
}

// count returns how many of the passages in mask hold the term.
func (m *bitmaps) count(mask []byte) uint32 {
	n := 0
	for r, x := range mask {
		n += bits.OnesCount8(x & uint8(at(m.body, uint32(r))|at(m.own, uint32(r))))
	}
	return uint32(n)
}

// masked returns m with the passages in mask alone. It uses the memory of buf, and returns what is left of it.
func (m *bitmaps) masked(mask, buf []byte) (*bitmaps, []byte) {
	out := new(bitmaps)
	and := func(b []byte) []byte {
		n := min(len(b), len(mask))
		from := len(buf)
		buf = append(buf, b[:n]...)
		c := buf[from:len(buf):len(buf)]
		for i, x := range mask[:n] {
			c[i] &= x
		}
		return c
	}
	out.body = and(m.body)
	if m.own != nil {
		out.own = and(m.own)
	}
	for _, v := range m.more {
		if at(mask, v.passage/block)>>(v.passage%block)&1 != 0 {
			out.more = append(out.more, v)
		}
	}
	return out, buf
}

// holds returns how often the term is in the text of a passage.
func (m *bitmaps) holds(p uint32) uint16 {
	if at(m.body, p/block)>>(p%block)&1 == 0 {
		return 0
	}
	return max(bodyOf(m.more, p), 1)
}

// bodyOf returns how often the text of a passage holds what a list is of.
func bodyOf(list []posting, p uint32) uint16 {
	i := sort.Search(len(list), func(i int) bool { return list[i].passage >= p })
	if i < len(list) && list[i].passage == p {
		return list[i].body
	}
	return 0
}
