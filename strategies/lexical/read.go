package lexical

import "encoding/binary"

// admit finds out which passages count: those of live entries, in the query's session.
func (k *ranking) admit() {
	s, w := k.segment, k.scratch
	w.mask = nil
	if s.dead > 0 {
		w.mask = s.lives
	}
	if k.only != none {
		w.mask = s.maskOf(k.only)
	}
}

// read appends the postings of a term that count.
func (k *ranking) read(h *worker, id uint32) {
	var list []byte
	list, h.list = k.segment.list(id, h.list)
	out, mask := h.postings, k.mask
	next := uint32(0)
	for i := 0; i < len(list); {
		// As reader does it, which is not inlined.
		v := uint64(list[i])
		if i++; v >= 0x80 {
			var n int
			v, n = binary.Uvarint(list[i-1:])
			i += n - 1
		}
		next += uint32(v >> 2)
		p := posting{next - 1, uint16(0x201 >> (v & 3 * 4) & 3), uint16(v & 1)}
		if v&3 == 3 {
			u, n := binary.Uvarint(list[i:])
			p.body, i = uint16(u), i+n
			u, n = binary.Uvarint(list[i:])
			p.own, i = uint16(u), i+n
		}
		if mask == nil || at(mask, p.passage/block)>>(p.passage%block)&1 != 0 {
			out = append(out, p)
		}
	}
	h.postings = out
}
