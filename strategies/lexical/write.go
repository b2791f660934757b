package lexical

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/kljensen/snowball/english"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// maxStems bounds the words whose stem is remembered: the frequent ones are among them again soon after it was emptied.
const maxStems = 1 << 14

// writer turns text into postings. It is the part of a segment that nothing needs once the text is indexed.
type writer struct {
	analyzer analyzer
	stems    map[string]stem
	bag      []uint32 // terms of what is being analysed
	length   uint32
	timed    bool
}

// stem is what is known of a word that was met before.
type stem struct {
	term  uint32 // none for stopwords
	timed bool
}

func (w *writer) bytes() int { return 80*len(w.stems) + 4*cap(w.bag) }

// write adds the postings of a passage. The terms in own are added as its own.
func (s *segment) write(p uint32, text string, own []uint32) meta {
	b := s.collect(func(a *analyzer) { a.run(text) })
	m := meta(min(s.length, maxLength))
	if asks(text) {
		m |= asking
	}
	if s.timed {
		m |= timed
	}
	slices.Sort(b)
	for o := own; len(b) > 0 || len(o) > 0; {
		t := uint32(none)
		if len(b) > 0 {
			t = b[0]
		}
		if len(o) > 0 {
			t = min(t, o[0])
		}
		v := posting{passage: p}
		for len(b) > 0 && b[0] == t {
			v.body, b = v.body+1, b[1:]
		}
		for len(o) > 0 && o[0] == t {
			v.own, o = v.own+1, o[1:]
		}
		s.terms[t].add(&s.arena, v)
		if s.terms[t].df > s.frequent.least {
			s.frequent.add(t, v)
		}
	}
	return m
}

// own returns, in order, the terms that belong to an entry without standing in its text: who speaks, which tool answered, and when.
func (s *segment) own(e core.Entry) []uint32 {
	b := s.collect(func(a *analyzer) {
		if !generic(e.Message.Name) {
			a.run(e.Message.Name)
		}
		for _, p := range e.Message.Parts {
			if p.Kind == message.ToolResult {
				a.run(p.Name)
			}
		}
		if e.Time.IsZero() {
			return
		}
		t := e.Time.UTC()
		a.put(strconv.Itoa(t.Year()), literal)
		a.put(t.Month().String(), plain)
		a.put(strconv.Itoa(t.Day()), literal)
		a.put(t.Weekday().String(), plain)
		// What a query names to the day is more telling than its parts.
		a.put(t.Format("2006-01-02"), whole)
		a.put(t.Format("2006-01"), whole)
	})
	slices.Sort(b)
	return slices.Clone(b)
}

// collect returns the terms that run puts out, unknown ones included. The result is valid until the next call.
func (s *segment) collect(run func(a *analyzer)) []uint32 {
	s.bag, s.length, s.timed = s.bag[:0], 0, false
	if s.analyzer.emit == nil {
		s.analyzer.emit = s.take
	}
	run(&s.analyzer)
	return s.bag
}

// take notes a term of what is being analysed.
func (s *segment) take(word []byte, k kind) {
	var id uint32
	if k != plain {
		id = s.number(word)
	} else {
		known, ok := s.stems[string(word)]
		if !ok {
			known = s.learn(string(word))
		}
		id = known.term
		s.timed = s.timed || known.timed
	}
	if id == none {
		return
	}
	s.bag = append(s.bag, id)
	if k != whole {
		s.length++
	}
}

// learn finds the term of an English word.
func (s *segment) learn(word string) stem {
	if s.stems == nil || len(s.stems) >= maxStems {
		s.stems = make(map[string]stem)
	}
	v := stem{term: none, timed: isTimeWord(word)}
	if !isStopword(word) {
		v.term = s.number([]byte(stemOf(word)))
	}
	s.stems[word] = v
	return v
}

// stemOf returns what stands for all forms of an English word.
func stemOf(word string) string { return english.Stem(baseForm(word), true) }

func (s *segment) number(word []byte) uint32 {
	id, fresh := s.words.number(word)
	if fresh {
		s.terms = push(s.terms, term{room: 8})
	}
	return id
}

// lookup returns the number of a term that is known. It changes nothing.
func (s *segment) lookup(word []byte, k kind) (uint32, bool) {
	if k == plain {
		if isStopword(string(word)) {
			return none, false
		}
		word = []byte(stemOf(string(word)))
	}
	return s.words.find(word)
}

// asks reports whether a text ends with a question.
func asks(text string) bool {
	text = strings.TrimSpace(text)
	for _, mark := range []string{"?", "？", "؟"} {
		if strings.HasSuffix(text, mark) {
			return true
		}
	}
	return false
}

// sumOf is a checksum of everything of an entry that the index depends on.
func sumOf(e core.Entry, text string) uint64 {
	h := fnv.New64a()
	var b [8]byte
	field := func(s string) {
		binary.LittleEndian.PutUint64(b[:], uint64(len(s)))
		_, _ = h.Write(b[:])
		_, _ = h.Write([]byte(s))
	}
	for _, v := range []int64{e.Seq, e.Time.Unix(), int64(e.Time.Nanosecond())} {
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		_, _ = h.Write(b[:])
	}
	field(e.Session)
	field(e.Message.Name)
	field(text)
	for _, p := range e.Message.Parts {
		if p.Kind == message.ToolResult {
			field(p.Name)
		}
	}
	return h.Sum64()
}
