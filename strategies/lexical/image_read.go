package lexical

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/contextengine/contextengine/core"
)

var (
	errDamaged = errors.New("file is damaged")
	errOther   = errors.New("file is of another version, configuration or agent")
)

// imageReader takes values from an image. Behind the end, and after any fault, it only returns zeros.
type imageReader struct {
	b   []byte
	err error
}

func (r *imageReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errDamaged, what)
	}
	r.b = nil
}

// take returns the next n bytes, nil when there are fewer.
func (r *imageReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("it ends early")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *imageReader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *imageReader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *imageReader) bytes() []byte { return r.take(r.u64()) }

// rows returns the bytes of n rows of a size.
func (r *imageReader) rows(n, size uint32) []byte { return r.take(uint64(n) * uint64(size)) }

func (r *imageReader) table(what string) table {
	n := r.u32()
	ends := r.rows(n, 4)
	text := r.bytes()
	if r.err != nil {
		return newTable(0)
	}
	// Room for what will be added.
	t := table{text: append(make([]byte, 0, len(text)+len(text)/8), text...), ends: make([]uint32, n, n+n/8)}
	last := uint32(0)
	for i := range t.ends {
		t.ends[i] = binary.LittleEndian.Uint32(ends[4*i:])
		if t.ends[i] < last || uint64(t.ends[i]) > uint64(len(text)) {
			r.fail(what + " out of order")
			return newTable(0)
		}
		last = t.ends[i]
	}
	if uint64(last) != uint64(len(text)) {
		r.fail(what + " with bytes left over")
		return newTable(0)
	}
	fresh := newTable(0)
	t.seed = fresh.seed
	t.grow(int(n+n/8) * 4 / 3)
	return t
}

// readHeader returns what an image is of, and the rest of it.
func readHeader(b []byte) (header, *imageReader, error) {
	start := len(magic) + 4
	if len(b) < start {
		return header{}, nil, fmt.Errorf("%w: it ends early", errDamaged)
	}
	if string(b[:len(magic)]) != magic {
		return header{}, nil, errOther
	}
	if crc32.Checksum(b[start:], castagnoli) != binary.LittleEndian.Uint32(b[len(magic):]) {
		return header{}, nil, fmt.Errorf("%w: the checksum is wrong", errDamaged)
	}
	r := &imageReader{b: b[start:]}
	h := header{config: r.u64()}
	h.agent = string(r.bytes())
	h.mark = core.Mark(r.bytes())
	return h, r, r.err
}

// readSegment decodes what follows the header. What it returns shares no memory with the image.
func readSegment(r *imageReader, cfg *Config) (*segment, error) {
	s := newSegment(cfg)
	s.names = r.table("sessions")
	s.sessions = make([]session, s.names.len())
	for i := range s.sessions {
		s.sessions[i] = session{none, none, none}
	}
	for range r.u32() {
		if r.err != nil {
			break
		}
		if n := len(s.actors); s.actor(string(r.bytes())) != uint32(n) {
			r.fail("actor twice or without a name")
		}
	}
	s.ids = r.table("ids")
	s.readDocs(r)
	s.readPassages(r)
	s.readTerms(r)
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes left over")
	}
	return s, r.err
}

func (s *segment) readDocs(r *imageReader) {
	const row = 8 + 8 + 4 + 4 + 4 + 4 + 8
	n := uint32(s.ids.len())
	b := r.rows(n, row)
	if r.err != nil {
		return
	}
	s.docs = make([]doc, n, n+n/8)
	s.docOf = make([]uint32, n, n+n/8)
	s.damp = make([]float32, 0, n+n/8)
	first := uint64(0)
	for i := range s.docs {
		b := b[i*row:]
		d := doc{
			seq: int64(binary.LittleEndian.Uint64(b)), sec: int64(binary.LittleEndian.Uint64(b[8:])),
			nsec: binary.LittleEndian.Uint32(b[16:]), session: binary.LittleEndian.Uint32(b[20:]),
			actor: binary.LittleEndian.Uint32(b[24:]), count: binary.LittleEndian.Uint32(b[28:]),
			sum: binary.LittleEndian.Uint64(b[32:]),
			id:  uint32(i), first: uint32(first),
		}
		first += uint64(d.count)
		if uint64(d.session) >= uint64(len(s.sessions)) || d.actor < unnamed && uint64(d.actor) >= uint64(len(s.actors)) || first >= maxImage {
			r.fail("doc of an unknown session or speaker")
			return
		}
		s.docs[i], s.docOf[i] = d, uint32(i)
	}
	for i := 1; i < len(s.docs); i++ {
		a, b := &s.docs[i-1], &s.docs[i]
		if a.session > b.session || a.session == b.session && !s.before(a, b) {
			r.fail("docs out of order")
			return
		}
	}
	s.chainDocs()
}

func (s *segment) readPassages(r *imageReader) {
	const row = 4 + 2 + 2 + 4
	n := r.u32()
	b := r.rows(n, row)
	want := uint32(0)
	if k := len(s.docs); k > 0 {
		want = s.docs[k-1].first + s.docs[k-1].count
	}
	if r.err == nil && n != want {
		r.fail("passages of no doc")
	}
	if r.err != nil {
		return
	}
	s.live = int(n)
	more := n + n/8
	s.passageDoc, s.start, s.size = make([]uint32, 0, more), make([]uint32, n, more), make([]uint16, n, more)
	s.links, s.metas, s.contexts = make([]link, 0, more), make([]meta, 0, more), make([]uint32, n, more)
	s.spans = make([]span8, 0, more)
	for i := range s.docs {
		d := &s.docs[i]
		if i > 0 && s.docs[i-1].session != d.session {
			s.chain(len(s.links))
		}
		length, all := uint32(0), meta(0)
		for p := d.first; p < d.first+d.count; p++ {
			b := b[int(p)*row:]
			s.start[p], s.size[p] = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:])
			m := meta(binary.LittleEndian.Uint16(b[6:]))
			s.contexts[p] = binary.LittleEndian.Uint32(b[8:])
			if m&dead != 0 || uint64(s.start[p])+uint64(s.size[p]) > maxImage {
				r.fail("passage out of range")
				return
			}
			s.metas = append(s.metas, m)
			s.passageDoc = append(s.passageDoc, uint32(i))
			s.context += uint64(s.contexts[p])
			length += m.length()
			all |= m
		}
		s.damp = append(s.damp, s.damping(length, all))
	}
	s.chain(len(s.links))
	s.survey()
}

func (s *segment) readTerms(r *imageReader) {
	s.words = r.table("terms")
	n := uint32(s.words.len())
	b := r.rows(n, 8)
	s.base = bytes.Clone(r.bytes())
	if r.err != nil {
		return
	}
	s.terms = make([]term, n, n+n/8)
	at := uint64(0)
	for i := range s.terms {
		df, size := binary.LittleEndian.Uint32(b[8*i:]), binary.LittleEndian.Uint32(b[8*i+4:])
		if at+uint64(size) > uint64(len(s.base)) || at+uint64(size) > maxImage {
			r.fail("postings end early")
			return
		}
		t := term{base: uint32(at), size: size, room: 8}
		at += uint64(size)
		if !t.check(s.base[t.base:at], uint32(len(s.metas))) || t.df != df {
			r.fail("postings of no use")
			return
		}
		s.terms[i] = t
	}
	if at != uint64(len(s.base)) {
		r.fail("postings of no term")
	}
}

// check reads through encoded postings and counts them, and reports whether a reader can do without checks.
func (t *term) check(b []byte, passages uint32) bool {
	last := uint64(0)
	most := uint64(0)
	for len(b) > 0 {
		v, n := uint64(b[0]), 1
		if v >= 0x80 {
			v, n = binary.Uvarint(b)
		}
		if n <= 0 || v>>2 == 0 {
			return false
		}
		b = b[n:]
		if last += v >> 2; last > uint64(passages) {
			return false
		}
		f := uint64(1)
		switch v & 3 {
		case 2:
			f = 2
		case 3:
			body, n := binary.Uvarint(b)
			if n <= 0 || body > 0xFFFF {
				return false
			}
			own, k := binary.Uvarint(b[n:])
			if k <= 0 || own > 0xFFFF {
				return false
			}
			b = b[n+k:]
			f = body + own
		}
		most = max(most, f)
		t.df++
	}
	t.last, t.most = uint32(last), uint8(min(most, 255))
	return true
}
