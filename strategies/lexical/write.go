package lexical

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// maxStems bounds the words whose stem is remembered: the frequent ones are among them again soon after it was emptied.
const maxStems = 1 << 14

// writer turns text into postings. It is the part of a segment that nothing needs once the text is indexed.
type writer struct {
	analyzer analyzer
	stems    [languages]map[string]stem
	lang     language // of what is being analysed
	bag      []uint32 // terms of what is being analysed
	length   uint32
	timed    bool
}

// stem is what is known of a word that was met before.
type stem struct {
	term  uint32 // none for stopwords
	cut   uint32 // of its beginning, none when that is no term of its own
	timed bool
}

func (w *writer) bytes() int {
	n := 4 * cap(w.bag)
	for _, m := range w.stems {
		n += 80 * len(m)
	}
	return n
}

// write adds the postings of a passage of a text in a language. The terms in own are added as its own.
func (s *segment) write(p uint32, text string, lang language, own []uint32) meta {
	s.lang = lang
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
	s.lang = english
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
	if k != plain && (k != foreign || s.lang == english) {
		s.bag = append(s.bag, s.number(word))
		if k != whole {
			s.length++
		}
		return
	}
	lang := s.lang
	if lang == unsure {
		lang = english // the beginning is added below: what is remembered of English words is enough
	}
	known, ok := s.stems[lang][string(word)]
	if !ok {
		known = s.learn(string(word), lang)
	}
	s.timed = s.timed || known.timed
	if known.term == none {
		return
	}
	s.bag = append(s.bag, known.term)
	s.length++
	if s.lang == unsure {
		known.cut = s.number([]byte(unsure.cut(string(word))))
	}
	if known.cut != none && known.cut != known.term {
		s.bag = append(s.bag, known.cut)
	}
}

// learn finds the terms of a word.
func (s *segment) learn(word string, lang language) stem {
	if s.stems[lang] == nil || len(s.stems[lang]) >= maxStems {
		s.stems[lang] = make(map[string]stem)
	}
	v := stem{term: none, cut: none, timed: isTimeWord(word)}
	if !lang.skips(word) {
		v.term = s.number([]byte(lang.stemOf(word)))
		if lang != english {
			v.cut = s.number([]byte(lang.cut(word)))
		}
	}
	s.stems[lang][word] = v
	return v
}

func (s *segment) number(word []byte) uint32 {
	id, fresh := s.words.number(word)
	if fresh {
		s.terms = push(s.terms, term{room: 8})
	}
	return id
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
	field(string(e.Role))
	field(text)
	for _, p := range e.Message.Parts {
		if p.Kind == message.ToolResult {
			field(p.Name)
		}
	}
	return h.Sum64()
}
