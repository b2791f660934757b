package lexical

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	queries "github.com/contextengine/contextengine/internal/asking"
)

const (
	// maxQueryTerms bounds the distinct terms of a query; of longer ones the first and the last half of that many count.
	maxQueryTerms = 256
	// maxQueryBytes bounds the text of a query; of longer ones the beginning and the end count.
	maxQueryBytes = 16 << 10
	// maxCompleted bounds the words of a query that are looked for as the beginning of identifiers: each is compared with every term there is.
	maxCompleted = 32
	// maxCompletions bounds the terms that the beginning of an identifier stands for.
	maxCompletions = 16
	// maxRelated bounds the words of a query whose kin is looked for: longer ones say enough.
	maxRelated = 32
	// minPrefix is how long the beginning of an identifier has to be, in bytes.
	minPrefix = 4
)

// queryTerm is a term of a query.
type queryTerm struct {
	id, df uint32
	weight float64 // what it counts, 1 for what the query says
	idf    float64 // times weight
	bound  float64 // no passage gets more than this from the term
	rest   float64 // nor more than this from the terms behind it

	worker   int       // reads its postings
	from, to int       // where those are among the worker's
	postings []posting // once all are read; with maps, their more
	maps     *bitmaps  // of a frequent term
}

// question is what a query asks, beyond its words.
type question struct {
	asks bool // it is a question: passages that ask themselves are no answer, but what follows them may be
	when bool // it asks for a time

	mine  bool // it speaks of what its writer said or did
	yours bool // it speaks of what the assistant said
}

// search returns the best docs of a query, best first.
func (s *segment) search(ctx context.Context, q core.SearchQuery, w *scratch) ([]match, error) {
	only := uint32(none)
	if q.Scope.Session != "" {
		id, ok := s.names.find([]byte(q.Scope.Session))
		if !ok {
			return nil, nil
		}
		only = id
	}
	w.fit(s)
	defer w.reset()
	q.Text = queries.Ends(q.Text, maxQueryBytes)
	k := ranking{segment: s, scratch: w, q: q, only: only}
	k.admit()
	if err := k.prepare(ctx); err != nil {
		return nil, err
	}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	found := slices.Clone(k.best(w.touched))
	slices.SortFunc(found, s.compare)
	return found, nil
}

// queryTerms returns the distinct terms of a query that live passages hold, in the order of their first use. It stops when ctx ends.
func (s *segment) queryTerms(ctx context.Context, text string, w *scratch) ([]queryTerm, error) {
	completed := 0
	terms := w.parts[:0]
	seen := map[uint32]struct{}{}
	weight := 1.0
	// take reports whether the term is of use: one that only the dead hold is as good as unknown.
	take := func(id uint32, ok bool) bool {
		if !ok {
			return false
		}
		if _, dup := seen[id]; dup {
			return true
		}
		var df uint32
		if df, w.list = s.alive(id, w.list); df == 0 {
			return false
		}
		seen[id] = struct{}{}
		terms = append(terms, queryTerm{id: id, df: df, weight: weight})
		return true
	}
	lang := languageOf(text, true)
	var related []string // words to look for the kin of
	a := analyzer{emit: func(word []byte, k kind) {
		if k == plain || k == foreign {
			eachForm(string(word), lang, func(form string) bool { return take(s.words.find([]byte(form))) })
			if k == plain && !lang.foreign() && !lang.skips(string(word)) {
				related = append(related, string(word))
			}
			return
		}
		if !take(s.words.find(word)) && len(word) >= minPrefix && word[0] < 0x80 && completed < maxCompleted && ctx.Err() == nil {
			completed++
			for _, id := range s.complete(word) {
				take(id, true)
			}
		}
	}}
	if a.run(bare(text)); len(terms) == 0 {
		a.run(text) // how it asks is all that it says
	}
	named := dates(text)
	for _, d := range named {
		take(s.words.find([]byte(d)))
	}
	weight = nextDay
	for _, d := range named {
		take(s.words.find([]byte(dayAfter(d))))
	}
	if len(related) <= maxRelated {
		weight = s.cfg.KinWeight
		used := func(id uint32) (some bool) {
			var df uint32
			df, w.list = s.alive(id, w.list)
			return df > 0
		}
		for _, word := range related {
			for _, id := range s.kin.of(&s.words, english.stemOf(word), used) {
				take(id, weight > 0)
			}
		}
	}
	if n := len(terms); n > maxQueryTerms {
		terms = slices.Delete(terms, maxQueryTerms/2, n-maxQueryTerms/2)
	}
	return terms, ctx.Err()
}

// eachForm calls take with the terms under which entries may hold a word of a query in a language; take reports whether there are some. The language of a
// question need not be seen as that of its answer: the beginning of the word is where they meet.
func eachForm(word string, lang language, take func(string) bool) {
	if !lang.foreign() {
		if !lang.skips(word) && !take(lang.stemOf(word)) && !take(word) {
			take(lang.cut(word))
		}
		return
	}
	if lang.skips(word) {
		return
	}
	take(lang.stemOf(word))
	take(word)
	take(lang.cut(word))
	if !isStopword(word) {
		take(english.stemOf(word)) // of a text that was too short to tell
	}
}

// complete returns the first terms, in byte order, that begin with part: the short form of a commit, the beginning of a path.
func (s *segment) complete(part []byte) []uint32 {
	var found []uint32
	order := func(a, b uint32) int { return bytes.Compare(s.words.at(a), s.words.at(b)) }
	for id := range uint32(s.words.len()) {
		if !bytes.HasPrefix(s.words.at(id), part) {
			continue
		}
		if n, _ := s.alive(id, nil); n == 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, id, order)
		if at == maxCompletions {
			continue
		}
		if len(found) == maxCompletions {
			found = found[:maxCompletions-1]
		}
		found = slices.Insert(found, at, id)
	}
	return found
}

// alive returns how many live passages hold a term. It uses buf, and returns it, perhaps grown.
func (s *segment) alive(id uint32, buf []byte) (uint32, []byte) {
	if s.dead == 0 {
		return s.terms[id].df, buf
	}
	if m := s.frequent.find(id); m != nil {
		return m.count(s.lives), buf
	}
	var list []byte
	list, buf = s.list(id, buf)
	n := uint32(0)
	var p posting
	for r := (reader{b: list}); r.next(&p); {
		if s.metas[p.passage]&dead == 0 {
			n++
		}
	}
	return n, buf
}

// questionOf looks for what a query asks.
func questionOf(text string) question {
	lower := strings.ToLower(strings.TrimSpace(text))
	first, _, _ := strings.Cut(lower, " ")
	var q question
	switch first {
	case "what", "when", "where", "who", "whom", "whose", "which", "why", "how", "what's", "who's", "where's", "when's":
		q.asks = true
	}
	q.asks = q.asks || strings.ContainsAny(lower, "?？؟")
	q.mine, q.yours = sides(lower)
	if !q.asks {
		return q
	}
	q.when = first == "when" || strings.Contains(lower, " when did ") || strings.Contains(lower, "how long")
	for _, unit := range []string{"date", "day", "week", "month", "year", "time"} {
		q.when = q.when || strings.Contains(lower, "what "+unit) || strings.Contains(lower, "which "+unit) ||
			strings.Contains(lower, "how many "+unit)
	}
	return q
}

// idf is what a term is worth that so many of all passages hold.
func (s *segment) idf(df uint32) float64 {
	return math.Log(1 + (float64(s.live)-float64(df)+0.5)/(float64(df)+0.5))
}

// compare orders matches best first: by score, then the more recent, then the smaller id.
func (s *segment) compare(a, b match) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	x, y := &s.docs[a.doc], &s.docs[b.doc]
	if c := cmp.Or(cmp.Compare(y.sec, x.sec), cmp.Compare(y.nsec, x.nsec), cmp.Compare(y.seq, x.seq)); c != 0 {
		return c
	}
	return bytes.Compare(s.ids.at(x.id), s.ids.at(y.id))
}

// within reports whether the doc's time lies in the query's bounds.
func (d *doc) within(q core.SearchQuery) bool {
	if !q.From.IsZero() && d.earlier(q.From.Unix(), uint32(q.From.Nanosecond())) {
		return false
	}
	return q.To.IsZero() || d.earlier(q.To.Unix(), uint32(q.To.Nanosecond()))
}

func (d *doc) earlier(sec int64, nsec uint32) bool {
	return d.sec < sec || d.sec == sec && d.nsec < nsec
}
