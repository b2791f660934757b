package lexical

import (
	"math"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

const (
	// none is no doc, passage, session, actor or term.
	none = math.MaxUint32
	// person and helper are actors without a name: somebody who writes, and an assistant that answers in words. Those from unnamed on have no name.
	person  = none - 1
	helper  = none - 2
	unnamed = helper
	// reach is how many passages to either side a term spreads.
	reach = 5
	// neighbourCap is how many terms of a neighbour count; longer ones spread proportionally less.
	neighbourCap = 40
	// unit is 1 in the fixed-point numbers that frequencies and lengths are kept in. Their sums are exact, so an index that grew in any
	// order scores like one that was built afresh.
	unit = 1000
)

// meta is a passage's length in terms, and what else ranking wants to know of it.
type meta uint16

const (
	dead   meta = 1 << 15 // it was removed
	asking meta = 1 << 14 // it ends with a question mark, or calls a tool: what follows answers
	timed  meta = 1 << 13 // it speaks of a time: "yesterday", "last May"

	calling meta = 1 << 12 // it calls a tool
	ruling  meta = 1 << 11 // it is what somebody wants done from now on, see isRule
	wishing meta = 1 << 10 // it says what somebody prefers

	maxLength = 1<<10 - 1 // terms: a passage has no more, see maxPassageBytes
)

func (m meta) length() uint32 { return uint32(m & maxLength) }

// span8 says how many neighbours a passage has before it and after it, up to reach, whose numbers are consecutive: those need not be looked up one by
// one. It also says whether there are more within reach, which have to be. It is 0 for the dead.
type span8 uint8

const (
	moreBefore span8 = 1 << 3
	moreAfter  span8 = 1 << 7
)

func (n span8) before() uint32 { return uint32(n & 7) }
func (n span8) after() uint32  { return uint32(n >> 4 & 7) }

// link leads from a passage to its neighbours in the session.
type link struct{ prev, next uint32 }

// doc is an indexed entry. The docs of a session are a list in the order of before.
type doc struct {
	seq, sec       int64
	sum            uint64 // of what was indexed, to tell changes
	nsec           uint32
	id             uint32 // in the table of ids
	session, actor uint32
	prev, next     uint32
	first, count   uint32 // its passages
}

// session is the two ends of the list of docs, and the doc that was inserted last.
type session struct{ head, tail, latest uint32 }

// segment is the index of one agent's entries. The caller guards it.
type segment struct {
	cfg     *Config
	weights [2 * reach]uint32 // of the neighbours before (nearest first), then after

	ids      table
	docOf    []uint32 // by number of the id
	docs     []doc
	damp     []float32 // by doc: what scores are multiplied by, see damping
	names    table     // of sessions
	sessions []session
	actors   []actor
	actorIDs map[string]uint32

	// By passage: its doc, its place in the doc's text, its neighbours, its length, and its context: the length with what is inherited
	// from the neighbours, times unit.
	passageDoc []uint32
	start      []uint32
	size       []uint16
	links      []link
	metas      []meta
	contexts   []uint32
	spans      []span8 // how far the numbers of neighbours are consecutive
	blocks

	words    table
	terms    []term // by number of the word
	base     []byte // never changed
	arena    arena
	frequent *frequent
	kin      *kin

	live, dead int    // passages
	context    uint64 // sum of the live passages' contexts

	writer
}

func newSegment(cfg *Config) *segment {
	s := &segment{
		cfg: cfg, ids: newTable(0), names: newTable(0), words: newTable(0), actorIDs: map[string]uint32{}, frequent: newFrequent(),
		kin: newKin(),
	}
	before, after := cfg.Before, cfg.After
	for j := range reach {
		s.weights[j] = uint32(math.Round(before * unit))
		s.weights[reach+j] = uint32(math.Round(after * unit))
		before, after = before*cfg.Decay, after*cfg.Decay
	}
	return s
}

// find returns the doc of an entry, none when there is no such.
func (s *segment) find(id string) uint32 {
	if n, ok := s.ids.find([]byte(id)); ok {
		return s.docOf[n]
	}
	return none
}

// put indexes an entry as it is now, unless that is what the index holds already. Entries that are not to be searched are taken out.
func (s *segment) put(e core.Entry) {
	old := s.find(e.ID)
	if e.Type == core.TypeHeartbeat || e.Type == core.TypeErased {
		s.drop(old)
		return
	}
	text := e.Text()
	sum := sumOf(e, text)
	if old != none {
		if s.docs[old].sum == sum {
			return
		}
		s.drop(old)
	}
	s.insert(e, text, sum)
}

// remove takes an entry out, if it is there and in scope.
func (s *segment) remove(scope core.Scope, id string) {
	n := s.find(id)
	if n == none {
		return
	}
	if scope.Session != "" && string(s.names.at(s.docs[n].session)) != scope.Session {
		return
	}
	s.drop(n)
}

// before orders the docs of a session. It looks at nothing but the entries, so the order does not depend on when they were heard of.
func (s *segment) before(a, b *doc) bool {
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	if a.sec != b.sec {
		return a.sec < b.sec
	}
	if a.nsec != b.nsec {
		return a.nsec < b.nsec
	}
	return string(s.ids.at(a.id)) < string(s.ids.at(b.id))
}

// insert adds e, which is not there.
func (s *segment) insert(e core.Entry, text string, sum uint64) {
	n := uint32(len(s.docs))
	id, fresh := s.ids.number([]byte(e.ID))
	if fresh {
		s.docOf = push(s.docOf, none)
	}
	s.docOf[id] = n
	sid, fresh := s.names.number([]byte(e.Session))
	if fresh {
		s.sessions = append(s.sessions, session{none, none, none})
	}
	d := doc{
		id: id, seq: e.Seq, sec: e.Time.Unix(), nsec: uint32(e.Time.Nanosecond()),
		session: sid, actor: s.actorOf(e), first: uint32(len(s.metas)), sum: sum,
	}
	d.prev = s.placeOf(&d)
	d.next = s.sessions[sid].head
	if d.prev != none {
		d.next = s.docs[d.prev].next
	}
	left, right := s.edge(d.prev, -1), s.edge(d.next, +1)
	own := s.own(e)
	length, lang := uint32(0), languageOf(text, false)
	calls := e.Message.HasCalls() // a call asks, and its result answers
	told := e.Role == message.User && !e.Message.HasResults()
	spans, all := passages(text, s.cfg.PassageWords, s.cfg.MaxPassages), meta(0)
	for _, sp := range spans {
		p := uint32(len(s.metas))
		m := s.write(p, text[sp.start:sp.end], lang, own)
		if calls {
			m |= asking | calling
		}
		if told {
			m |= wantsOf(text[sp.start:sp.end], len(spans) == 1)
		}
		all |= m
		s.passageDoc = push(s.passageDoc, n)
		s.start = push(s.start, uint32(sp.start))
		s.size = push(s.size, uint16(sp.end-sp.start))
		s.links = push(s.links, link{p - 1, p + 1})
		s.metas = push(s.metas, m)
		s.contexts = push(s.contexts, 0)
		s.spans = push(s.spans, 0)
		s.extend(p, m)
		d.count++
		length += m.length()
	}
	s.docs = push(s.docs, d)
	s.damp = push(s.damp, s.damping(length, all))
	s.linkDoc(sid, d.prev, n, n, d.next)
	s.sessions[sid].latest = n
	if d.count == 0 {
		return
	}
	last := d.first + d.count - 1
	s.links[d.first].prev, s.links[last].next = left, right
	if left != none {
		s.links[left].next = d.first
	}
	if right != none {
		s.links[right].prev = last
	}
	s.live += int(d.count)
	s.frequent.moved(&d, true)
	for p := d.first; p <= last; p++ {
		s.damps[p/block] = max(s.damps[p/block], s.damp[n])
		s.recount(p)
	}
	s.recountAround(left, right)
}

// longest is the length in terms from which on messages are damped alike: what is asked for may stand in a pasted log.
const longest = 1024

// damping is what the scores of a doc of that length are multiplied by, and of what its passages say together.
func (s *segment) damping(length uint32, says meta) float32 {
	f := 1.0
	if r := float64(min(length, longest)) / float64(s.cfg.LengthTerms); r > 1 {
		f = math.Pow(r, -s.cfg.LengthPower)
	}
	if says&ruling != 0 {
		f *= s.cfg.RuleBoost
	}
	if says&wishing != 0 {
		f *= s.cfg.WishBoost
	}
	return float32(f)
}

// placeOf returns the doc that d comes behind, none when it is the first of its session. Entries nearly always come at the end, or
// behind the one that came last.
func (s *segment) placeOf(d *doc) uint32 {
	v := &s.sessions[d.session]
	if v.tail == none || !s.before(d, &s.docs[v.tail]) {
		return v.tail
	}
	at := v.latest
	if at == none {
		at = v.head
	}
	if s.before(d, &s.docs[at]) {
		for at != none && s.before(d, &s.docs[at]) {
			at = s.docs[at].prev
		}
		return at
	}
	for next := s.docs[at].next; next != none && !s.before(d, &s.docs[next]); next = s.docs[next].next {
		at = next
	}
	return at
}

// drop takes a doc out. Its postings stay, dead, until there are too many of them.
func (s *segment) drop(n uint32) {
	if n == none {
		return
	}
	d := &s.docs[n]
	s.docOf[d.id] = none
	v := &s.sessions[d.session]
	if v.latest == n {
		v.latest = d.prev
	}
	s.linkDoc(d.session, d.prev, d.next, d.prev, d.next)
	if d.count == 0 {
		return
	}
	last := d.first + d.count - 1
	left, right := s.links[d.first].prev, s.links[last].next
	for p := d.first; p <= last; p++ {
		s.metas[p] |= dead
		s.spans[p] = 0
		set(s.lives, p, false)
		set(s.fars, p, false)
		s.context -= uint64(s.contexts[p])
	}
	if left != none {
		s.links[left].next = right
	}
	if right != none {
		s.links[right].prev = left
	}
	s.live -= int(d.count)
	s.frequent.moved(d, false)
	s.dead += int(d.count)
	s.recountAround(left, right)
}

// bytes is the memory that s takes, about.
func (s *segment) bytes() int64 {
	n := s.ids.bytes() + s.names.bytes() + s.words.bytes() + s.arena.bytes() + cap(s.base)
	n += 56*cap(s.docs) + 4*cap(s.damp) + 4*cap(s.docOf) + 12*cap(s.sessions) + 100*len(s.actors)
	n += 4*cap(s.passageDoc) + 4*cap(s.start) + 2*cap(s.size) + 8*cap(s.links) + 2*cap(s.metas) + 4*cap(s.contexts) + cap(s.spans) + s.blocks.bytes()
	n += 28*cap(s.terms) + s.writer.bytes() + s.frequent.bytes() + s.kin.bytes()
	return int64(n)
}

// push appends v. It makes room for an eighth more, where append makes a quarter: the arrays of an index hardly ever shrink, and what was free in
// them was a tenth of its memory.
func push[T any](b []T, v T) []T {
	if len(b) == cap(b) {
		b = append(make([]T, 0, len(b)+len(b)/8+16), b...)
	}
	return append(b, v)
}
