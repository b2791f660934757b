package lexical

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/kljensen/snowball/english"
)

const (
	// none is no doc, passage, session, actor or term.
	none = math.MaxUint32
	// reach is how many passages to either side a term spreads.
	reach = 3
	// neighbourCap is how many terms of a neighbour count; longer ones spread proportionally less.
	neighbourCap = 40
	// unit is 1 in the fixed-point numbers that frequencies and lengths are kept in. Their sums are exact, so an index that grew in any
	// order scores like one that was built afresh.
	unit = 1000
)

// posting says that a passage holds a term: body times in its text, own times as its speaker, tool or date, which do not spread.
type posting struct {
	passage   uint32
	body, own uint16
}

// passage is a stretch of a doc's text, linked to its neighbours in the session.
type passage struct {
	doc uint32
	// session is none once the passage is dead.
	session    uint32
	prev, next uint32
	start, end uint32
	// length counts terms, context also those inherited from the neighbours, times unit.
	length, context uint32
}

// doc is an indexed entry. The docs of a session are a list in the order of Seq.
type doc struct {
	id             string
	seq            int64
	sec            int64
	nsec           uint32
	session, actor uint32
	prev, next     uint32
	first, count   uint32 // its passages
	damp           float64
	dead           bool
}

// session is the two ends of the list of docs.
type session struct{ head, tail uint32 }

// segment is the index of one agent's entries. The caller guards it.
type segment struct {
	cfg     *Config
	weights [2 * reach]uint32 // of the neighbours before (nearest first), then after

	docs       []doc
	byID       map[string]uint32
	passages   []passage
	sessions   []session
	sessionIDs map[string]uint32
	actors     []actor
	actorIDs   map[string]uint32

	terms    map[string]uint32
	stems    map[string]uint32 // term of a word that was stemmed
	postings [][]posting

	live, dead int    // passages
	context    uint64 // sum of the live passages' contexts

	analyzer analyzer
	bag      []uint32 // terms of the passage being added
	length   uint32
}

func newSegment(cfg *Config) *segment {
	s := &segment{
		cfg:  cfg,
		byID: map[string]uint32{}, sessionIDs: map[string]uint32{}, actorIDs: map[string]uint32{},
		terms: map[string]uint32{}, stems: map[string]uint32{},
	}
	before, after := cfg.Before, cfg.After
	for j := range reach {
		s.weights[j] = uint32(math.Round(before * unit))
		s.weights[reach+j] = uint32(math.Round(after * unit))
		before, after = before*cfg.Decay, after*cfg.Decay
	}
	s.analyzer.emit = s.collect
	return s
}

// add indexes an entry, unless it is there already or not to be searched.
func (s *segment) add(e core.Entry) {
	if e.Type == core.TypeHeartbeat {
		return
	}
	if _, ok := s.byID[e.ID]; ok {
		return
	}
	sid, ok := s.sessionIDs[e.Session]
	if !ok {
		sid = uint32(len(s.sessions))
		s.sessions = append(s.sessions, session{none, none})
		s.sessionIDs[strings.Clone(e.Session)] = sid
	}
	after := s.sessions[sid].tail
	for after != none && s.docs[after].seq > e.Seq {
		after = s.docs[after].prev
	}
	s.insert(e, sid, after)
}

// update indexes an entry anew, in its old place.
func (s *segment) update(e core.Entry) {
	old, ok := s.byID[e.ID]
	if !ok {
		s.add(e)
		return
	}
	at := s.docs[old].prev
	sid := s.docs[old].session
	s.remove(e.ID)
	s.insert(e, sid, at)
}

// insert adds e to a session behind the doc after.
func (s *segment) insert(e core.Entry, sid, after uint32) {
	id := uint32(len(s.docs))
	text := e.Text()
	spans := passages(text, s.cfg.PassageWords, s.cfg.MaxPassages)
	d := doc{
		id: strings.Clone(e.ID), seq: e.Seq, sec: e.Time.Unix(), nsec: uint32(e.Time.Nanosecond()),
		session: sid, actor: s.actor(e.Message.Name),
		prev: after, next: s.sessions[sid].head,
		first: uint32(len(s.passages)), count: uint32(len(spans)), damp: 1,
	}
	if after != none {
		d.next = s.docs[after].next
	}
	s.docs = append(s.docs, d)
	s.byID[d.id] = id
	s.linkDoc(sid, d.prev, id, id, d.next)

	left, right := s.edge(d.prev, -1), s.edge(d.next, +1)
	var total uint32
	for i, sp := range spans {
		p := uint32(len(s.passages))
		s.passages = append(s.passages, passage{
			doc: id, session: sid, prev: p - 1, next: p + 1,
			start: uint32(sp.start), end: uint32(sp.end), length: s.index(p, e, text[sp.start:sp.end]),
		})
		total += s.passages[p].length
		if i == 0 {
			s.passages[p].prev = left
		}
		if i == len(spans)-1 {
			s.passages[p].next = right
		}
	}
	if len(spans) == 0 {
		return
	}
	if r := float64(total) / float64(s.cfg.LengthTerms); r > 1 {
		s.docs[id].damp = math.Pow(r, -s.cfg.LengthPower)
	}
	last := uint32(len(s.passages) - 1)
	if left != none {
		s.passages[left].next = d.first
	}
	if right != none {
		s.passages[right].prev = last
	}
	s.live += len(spans)
	for p := d.first; p <= last; p++ {
		s.recount(p)
	}
	s.recountAround(left, right)
}

// remove takes an entry out. Its postings stay, dead, until there are too many of them.
func (s *segment) remove(id string) {
	n, ok := s.byID[id]
	if !ok {
		return
	}
	delete(s.byID, id)
	d := &s.docs[n]
	d.dead = true
	s.linkDoc(d.session, d.prev, d.next, d.prev, d.next)
	if d.count == 0 {
		return
	}
	last := d.first + d.count - 1
	left, right := s.passages[d.first].prev, s.passages[last].next
	for p := d.first; p <= last; p++ {
		s.passages[p].session = none
		s.context -= uint64(s.passages[p].context)
	}
	if left != none {
		s.passages[left].next = right
	}
	if right != none {
		s.passages[right].prev = left
	}
	s.live -= int(d.count)
	s.dead += int(d.count)
	s.recountAround(left, right)
}

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
		s.context -= uint64(s.passages[left].context)
		s.recount(left)
		left = s.passages[left].prev
	}
	for j := 0; j < reach && right != none; j++ {
		s.context -= uint64(s.passages[right].context)
		s.recount(right)
		right = s.passages[right].next
	}
}

// recount sets the context of a passage and adds it to the sum.
func (s *segment) recount(n uint32) {
	p := &s.passages[n]
	p.context = p.length * unit
	for j, q := 0, p.prev; j < reach && q != none; j, q = j+1, s.passages[q].prev {
		p.context += s.weights[j] * min(s.passages[q].length, neighbourCap)
	}
	for j, q := 0, p.next; j < reach && q != none; j, q = j+1, s.passages[q].next {
		p.context += s.weights[reach+j] * min(s.passages[q].length, neighbourCap)
	}
	s.context += uint64(p.context)
}

// index adds the postings of a passage and returns its length in terms.
func (s *segment) index(p uint32, e core.Entry, text string) uint32 {
	s.bag, s.length = s.bag[:0], 0
	s.analyzer.run(text)
	body, length := len(s.bag), s.length
	s.own(e)
	slices.Sort(s.bag[:body])
	slices.Sort(s.bag[body:])
	b, o := s.bag[:body], s.bag[body:]
	for len(b) > 0 || len(o) > 0 {
		t := uint32(none)
		if len(b) > 0 {
			t = b[0]
		}
		if len(o) > 0 {
			t = min(t, o[0])
		}
		entry := posting{passage: p}
		for len(b) > 0 && b[0] == t {
			entry.body, b = entry.body+1, b[1:]
		}
		for len(o) > 0 && o[0] == t {
			entry.own, o = entry.own+1, o[1:]
		}
		s.postings[t] = append(s.postings[t], entry)
	}
	return length
}

// own collects what belongs to a passage without standing in its text: who speaks, which tool answered, and when.
func (s *segment) own(e core.Entry) {
	if !generic(e.Message.Name) {
		s.analyzer.run(e.Message.Name)
	}
	for _, p := range e.Message.Parts {
		if p.Kind == message.ToolResult {
			s.analyzer.run(p.Name)
		}
	}
	if e.Time.IsZero() {
		return
	}
	t := e.Time.UTC()
	s.analyzer.put(strconv.Itoa(t.Year()), literal)
	s.analyzer.put(t.Month().String(), plain)
	s.analyzer.put(strconv.Itoa(t.Day()), literal)
	s.analyzer.put(t.Weekday().String(), plain)
}

// collect takes a term of the passage being added.
func (s *segment) collect(term []byte, k kind) {
	id, ok := s.lookup(term, k, true)
	if !ok {
		return
	}
	s.bag = append(s.bag, id)
	if k != whole {
		s.length++
	}
}

// lookup returns the id of a term; false for stopwords and, unless it may be made, for unknown terms. Without making it changes nothing.
func (s *segment) lookup(term []byte, k kind, make bool) (uint32, bool) {
	if k != plain {
		id, ok := s.terms[string(term)]
		if !ok && make {
			return s.intern(string(term)), true
		}
		return id, ok
	}
	if id, ok := s.stems[string(term)]; ok {
		return id, id != none
	}
	word := string(term)
	if isStopword(word) {
		if make {
			s.stems[word] = none
		}
		return none, false
	}
	stem := english.Stem(word, true)
	id, ok := s.terms[stem]
	if !make {
		return id, ok
	}
	if !ok {
		id = s.intern(stem)
	}
	s.stems[word] = id
	return id, true
}

func (s *segment) intern(term string) uint32 {
	id := uint32(len(s.postings))
	s.terms[term] = id
	s.postings = append(s.postings, nil)
	return id
}
