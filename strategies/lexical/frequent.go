package lexical

import (
	"math"
	"math/bits"
	"sort"
	"sync"
)

const (
	// maxFrequent bounds the terms that have bitmaps. When there are more, all are let go: those that are asked for get theirs again soon.
	maxFrequent = 512
	// frequentFrom is how many postings a term has at least that gets bitmaps.
	frequentFrom = 256
	// frequentShare is how many passages there are at most for each posting of such a term: where there are more, going through its postings takes
	// no longer.
	frequentShare = 32
	// maxMasks bounds the sessions whose passages are kept as bits. When there are more, all are let go.
	maxMasks = 16
)

// frequent holds what is searched for often in a form that is faster to go through than postings and lists of docs: terms that are in many passages, by
// number, and the passages of sessions that are searched alone. Among 200,000 passages of 60 words, a search for twelve words takes half the time with it,
// and the index a sixth more memory.
//
// Searches, which may go on at the same time, add to it; what is written to the segment, while nobody searches, is noted here too.
type frequent struct {
	from uint32 // postings that a term has at least that gets bits

	mu    sync.Mutex
	of    map[uint32]*bitmaps
	least uint32 // no term in of has fewer postings
	// sessions are the passages of sessions that were searched alone, a bit for each that is live.
	sessions map[uint32][]byte
}

// bitmaps say where a term is: by region, a bit for each passage.
type bitmaps struct {
	body []byte // it is in the text
	own  []byte // it is the speaker, tool or date; nil when it is nowhere
	// more are the postings of passages where it is more than once in the text, or more than once their own, in order.
	more []posting
}

func newFrequent() *frequent {
	return &frequent{from: frequentFrom, of: map[uint32]*bitmaps{}, least: math.MaxUint32, sessions: map[uint32][]byte{}}
}

// add takes in a posting that was added to a term's list.
func (f *frequent) add(id uint32, v posting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.of[id]; m != nil {
		m.add(v)
	}
}

// find returns a term's bitmaps, nil when it has none.
func (f *frequent) find(id uint32) *bitmaps {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[id]
}

// keep makes m the bitmaps of a term with df postings, unless another search was faster.
func (f *frequent) keep(id, df uint32, m *bitmaps) *bitmaps {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other := f.of[id]; other != nil {
		return other
	}
	if len(f.of) >= maxFrequent {
		clear(f.of)
		f.least = math.MaxUint32
	}
	f.of[id], f.least = m, min(f.least, df)
	return m
}

// bytes is the memory that f takes, about.
func (f *frequent) bytes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.sessions {
		n += cap(m) + 50
	}
	for _, m := range f.of {
		n += cap(m.body) + cap(m.own) + 8*cap(m.more) + 100
	}
	return n
}

// bitmapsOf returns the bitmaps of a term that is frequent enough for them, nil for another.
func (s *segment) bitmapsOf(id uint32, h *hand) *bitmaps {
	df := s.terms[id].df
	if df < s.frequent.from || uint64(df)*frequentShare < uint64(len(s.metas)) {
		return nil
	}
	if m := s.frequent.find(id); m != nil {
		return m
	}
	m := &bitmaps{body: make([]byte, 0, len(s.floors)+len(s.floors)/8+1)}
	var list []byte
	list, h.list = s.list(id, h.list)
	var v posting
	for r := (reader{b: list}); r.next(&v); {
		m.add(v)
	}
	return s.frequent.keep(id, df, m)
}

// maskOf returns the live passages of a session.
func (s *segment) maskOf(sid uint32) []byte {
	f := s.frequent
	f.mu.Lock()
	defer f.mu.Unlock()
	mask, ok := f.sessions[sid]
	if !ok {
		mask = make([]byte, 0, len(s.lives)+len(s.lives)/8)
		for n := s.sessions[sid].head; n != none; n = s.docs[n].next {
			d := &s.docs[n]
			for p := d.first; p < d.first+d.count; p++ {
				mask = mark(mask, p)
			}
		}
		if len(f.sessions) >= maxMasks {
			clear(f.sessions)
		}
		f.sessions[sid] = mask
	}
	return mask
}

// moved says that a doc's passages came to a session, or that they left it.
func (f *frequent) moved(d *doc, here bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	mask, ok := f.sessions[d.session]
	if !ok {
		return
	}
	for p := d.first; p < d.first+d.count; p++ {
		if here {
			mask = mark(mask, p)
		} else {
			set(mask, p, false)
		}
	}
	f.sessions[d.session] = mask
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
	for uint32(len(b)) <= p/region {
		b = push(b, 0)
	}
	b[p/region] |= 1 << (p % region)
	return b
}

// at returns the bits of a region.
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
		if at(mask, v.passage/region)>>(v.passage%region)&1 != 0 {
			out.more = append(out.more, v)
		}
	}
	return out, buf
}

// holds returns how often the term is in the text of a passage.
func (m *bitmaps) holds(p uint32) uint16 {
	if at(m.body, p/region)>>(p%region)&1 == 0 {
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
