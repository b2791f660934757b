package lexical

import (
	"math"
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
func (s *segment) bitmapsOf(id uint32, h *worker) *bitmaps {
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
