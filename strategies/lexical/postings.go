package lexical

import "encoding/binary"

// term is a word, or another thing to look for, and where its postings are: what was read from a file or compacted lies in the
// segment's base in one piece; what was added since lies in small, and in slices of the arena once it is too long for that.
type term struct {
	df         uint32 // postings, those of dead passages included
	last       uint32 // the last posting's passage + 1; 0 when there is none
	base, size uint32 // the part in the segment's base
	small      [8]byte
	room       uint16 // bytes that are free: in small, or in the last slice
	level      uint8  // slices; more than the largest level counts like it. With 0, small holds the bytes
	most       uint8  // at least the largest frequency in any one posting; 255 for any
}

// posting says that a passage holds a term: body times in its text, own times as its speaker, tool or date, which do not spread.
type posting struct {
	passage   uint32
	body, own uint16
}

const (
	// pageBits are the bits of an arena address that count bytes in a page.
	pageBits = 16
	pageSize = 1 << pageBits
	// maxPosting is how long an encoded posting can be, in bytes.
	maxPosting = 12
)

// sliceSizes are the lengths of a list's first, second, ... slice. Its last four bytes are the address of the next. Each is a quarter longer than
// the one before: with slices that double, what is free in the last one was a sixth of the arena.
var sliceSizes = [...]int{
	16, 20, 28, 36, 48, 60, 76, 96, 120, 152, 192, 240, 300, 376, 472, 592, 740, 928, 1160, 1452, 1816, 2272, 2840, 3552, 4096,
}

// arena holds slices of bytes in pages. An address is page << pageBits | offset.
type arena struct{ pages [][]byte }

// alloc returns the address of n fresh bytes in one page.
func (a *arena) alloc(n int) uint32 {
	last := len(a.pages) - 1
	if last < 0 || len(a.pages[last])+n > cap(a.pages[last]) {
		// Agents with little history get small pages.
		a.pages = append(a.pages, make([]byte, 0, max(n, 1<<10<<min(2*len(a.pages), 6))))
		last++
	}
	page := a.pages[last]
	at := len(page)
	a.pages[last] = page[:at+n]
	return uint32(last)<<pageBits | uint32(at)
}

// from returns the page's bytes from an address on.
func (a *arena) from(at uint32) []byte { return a.pages[at>>pageBits][at&(pageSize-1):] }

func (a *arena) bytes() int {
	n := 0
	for _, p := range a.pages {
		n += cap(p)
	}
	return n
}

func (t *term) head() uint32 { return binary.LittleEndian.Uint32(t.small[:4]) }
func (t *term) tail() uint32 { return binary.LittleEndian.Uint32(t.small[4:]) }

// add appends a posting; its passage is larger than all before.
func (t *term) add(a *arena, p posting) {
	var b [maxPosting]byte
	t.write(a, appendPosting(b[:0], t.last, p))
	t.note(p)
}

// note counts a posting whose bytes are in their place.
func (t *term) note(p posting) {
	t.df++
	t.last = p.passage + 1
	t.most = max(t.most, uint8(min(uint32(p.body)+uint32(p.own), 255)))
}

func (t *term) write(a *arena, b []byte) {
	if t.level == 0 {
		if used := len(t.small) - int(t.room); len(b) <= int(t.room) {
			copy(t.small[used:], b)
			t.room -= uint16(len(b))
			return
		} else if used > 0 {
			moved := t.small
			t.open(a, a.alloc(sliceSizes[0]))
			t.put(a, moved[:used])
		} else {
			t.open(a, a.alloc(sliceSizes[0]))
		}
	}
	t.put(a, b)
}

// open makes the slice at an address the first one.
func (t *term) open(a *arena, at uint32) {
	binary.LittleEndian.PutUint32(t.small[:4], at)
	binary.LittleEndian.PutUint32(t.small[4:], at)
	t.level, t.room = 1, uint16(sliceSizes[0]-4)
}

// put appends bytes to the slices.
func (t *term) put(a *arena, b []byte) {
	tail := t.tail()
	for len(b) > 0 {
		if t.room == 0 {
			size := sliceSizes[min(int(t.level), len(sliceSizes)-1)]
			next := a.alloc(size)
			binary.LittleEndian.PutUint32(a.from(tail), next)
			tail, t.room = next, uint16(size-4)
			t.level = min(t.level+1, 254)
		}
		n := copy(a.from(tail)[:t.room], b)
		tail, t.room, b = tail+uint32(n), t.room-uint16(n), b[n:]
	}
	binary.LittleEndian.PutUint32(t.small[4:], tail)
}

// list returns the encoded postings of a term: a part of the base where that is all, else a copy in buf, which grows as needed.
func (s *segment) list(id uint32, buf []byte) (list, scratch []byte) {
	t := &s.terms[id]
	base := s.base[t.base : t.base+t.size]
	if t.level == 0 {
		used := len(t.small) - int(t.room)
		if used == 0 {
			return base, buf
		}
		buf = append(append(buf[:0], base...), t.small[:used]...)
		return buf, buf
	}
	buf = append(buf[:0], base...)
	at, tail := t.head(), t.tail()
	for i := 0; ; i++ {
		data := sliceSizes[min(i, len(sliceSizes)-1)] - 4
		b := s.arena.from(at)
		// The tail stands in the last slice, or at its end.
		if at>>pageBits == tail>>pageBits && at <= tail && tail <= at+uint32(data) {
			buf = append(buf, b[:tail-at]...)
			return buf, buf
		}
		buf = append(buf, b[:data]...)
		at = binary.LittleEndian.Uint32(b[data:])
	}
}

// appendPosting encodes p behind a posting of passage last-1: the step between the passages, and how often the term occurs, which is nearly
// always once.
func appendPosting(b []byte, last uint32, p posting) []byte {
	step := uint64(p.passage+1-last) << 2
	switch {
	case p.body == 1 && p.own == 0:
		return binary.AppendUvarint(b, step)
	case p.body == 0 && p.own == 1:
		return binary.AppendUvarint(b, step|1)
	case p.body == 2 && p.own == 0:
		return binary.AppendUvarint(b, step|2)
	}
	b = binary.AppendUvarint(b, step|3)
	b = binary.AppendUvarint(b, uint64(p.body))
	return binary.AppendUvarint(b, uint64(p.own))
}

// reader decodes a list that is known to be whole.
type reader struct {
	b    []byte
	last uint32
}

func (r *reader) next(p *posting) bool {
	if len(r.b) == 0 {
		return false
	}
	v, n := uint64(r.b[0]), 1
	if v >= 0x80 {
		v, n = binary.Uvarint(r.b)
	}
	r.b = r.b[n:]
	r.last += uint32(v >> 2)
	p.passage = r.last - 1
	switch v & 3 {
	case 0:
		p.body, p.own = 1, 0
	case 1:
		p.body, p.own = 0, 1
	case 2:
		p.body, p.own = 2, 0
	default:
		v, n = binary.Uvarint(r.b)
		p.body = uint16(v)
		r.b = r.b[n:]
		v, n = binary.Uvarint(r.b)
		p.own = uint16(v)
		r.b = r.b[n:]
	}
	return true
}
