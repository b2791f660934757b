package lexical

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// maxQueryTerms bounds the distinct terms of a query; of longer ones the first and the last half of that many count.
const maxQueryTerms = 256

// match is a doc with the score of its best passage.
type match struct {
	doc, passage uint32
	score        float64
}

// scratch is the working memory of a search: dense arrays, all zero between searches.
type scratch struct {
	tf      []uint32  // of one term, by passage, times unit
	score   []float64 // by passage
	best    []match   // by doc
	touched []uint32  // passages with a score
	hot     []uint32  // passages with a tf
	docs    []uint32  // docs with a match
	heap    []match
	terms   []uint32
	named   []bool // by actor
}

func (w *scratch) fit(s *segment) {
	w.tf = grow(w.tf, len(s.passages))
	w.score = grow(w.score, len(s.passages))
	w.best = grow(w.best, len(s.docs))
	w.named = grow(w.named, len(s.actors))
	w.touched, w.hot, w.docs, w.heap, w.terms = w.touched[:0], w.hot[:0], w.docs[:0], w.heap[:0], w.terms[:0]
}

// grow returns a slice of at least n elements, keeping those of b.
func grow[T any](b []T, n int) []T {
	if n <= len(b) {
		return b
	}
	return append(b, make([]T, n-len(b)+n/8)...)
}

func (w *scratch) reset() {
	for _, p := range w.touched {
		w.score[p] = 0
	}
	for _, p := range w.hot {
		w.tf[p] = 0
	}
	for _, d := range w.docs {
		w.best[d] = match{}
	}
	clear(w.named)
}

// search returns the best docs of a query, best first.
func (s *segment) search(ctx context.Context, q core.SearchQuery, w *scratch) ([]match, error) {
	only := uint32(none)
	if q.Scope.Session != "" {
		id, ok := s.sessionIDs[q.Scope.Session]
		if !ok {
			return nil, nil
		}
		only = id
	}
	w.fit(s)
	defer w.reset()
	w.terms = s.queryTerms(q.Text, w.terms)
	for _, t := range w.terms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.scoreTerm(t, only, w)
	}
	s.collectDocs(q.Text, w)
	return s.top(q, w), nil
}

// queryTerms returns the distinct known terms of a query in the order of their first use.
func (s *segment) queryTerms(text string, terms []uint32) []uint32 {
	seen := map[uint32]struct{}{}
	a := analyzer{emit: func(term []byte, k kind) {
		id, ok := s.lookup(term, k, false)
		if !ok {
			return
		}
		if _, dup := seen[id]; !dup {
			seen[id] = struct{}{}
			terms = append(terms, id)
		}
	}}
	a.run(text)
	if n := len(terms); n > maxQueryTerms {
		terms = slices.Delete(terms, maxQueryTerms/2, n-maxQueryTerms/2)
	}
	return terms
}

// scoreTerm spreads the frequencies of a term to the neighbours of each passage that holds it, and adds what the term is worth to all of them.
func (s *segment) scoreTerm(t, only uint32, w *scratch) {
	ps, tf, hot := s.passages, w.tf, w.hot[:0]
	add := func(p, n uint32) {
		if tf[p] == 0 {
			hot = append(hot, p)
		}
		tf[p] += n
	}
	found := 0
	for _, e := range s.postings[t] {
		p := &ps[e.passage]
		if p.session == none {
			continue
		}
		found++
		if only != none && p.session != only {
			continue
		}
		body := uint32(e.body)
		add(e.passage, (body+uint32(e.own))*unit)
		if body == 0 {
			continue
		}
		scale, div := body, uint32(1)
		if p.length > neighbourCap {
			scale, div = body*neighbourCap, p.length
		}
		// What a passage gets from those before it is what this one gives to those after it.
		for j, n := 0, p.next; j < reach && n != none; j, n = j+1, ps[n].next {
			if v := s.weights[j] * scale / div; v > 0 {
				add(n, v)
			}
		}
		for j, n := 0, p.prev; j < reach && n != none; j, n = j+1, ps[n].prev {
			if v := s.weights[reach+j] * scale / div; v > 0 {
				add(n, v)
			}
		}
	}
	w.hot = hot
	if found == 0 {
		return
	}
	idf := math.Log(1 + (float64(s.live-found)+0.5)/(float64(found)+0.5))
	k1 := s.cfg.K1
	flat := k1 * (1 - s.cfg.B)
	perLength := k1 * s.cfg.B * float64(s.live) / max(float64(s.context), 1)
	for _, p := range hot {
		f := float64(tf[p]) / unit
		tf[p] = 0
		if w.score[p] == 0 {
			w.touched = append(w.touched, p)
		}
		w.score[p] += idf * f * (k1 + 1) / (f + flat + perLength*float64(ps[p].context))
	}
	w.hot = hot[:0]
}

// collectDocs finds the best passage of each doc.
func (s *segment) collectDocs(text string, w *scratch) {
	if len(s.actors) > 0 && s.cfg.NamedBoost > 1 {
		words := wordsOf(text)
		for i, a := range s.actors {
			w.named[i] = a.namedIn(text, words)
		}
	}
	for _, p := range w.touched {
		n := s.passages[p].doc
		m := &w.best[n]
		if m.score == 0 {
			w.docs = append(w.docs, n)
		}
		if v := w.score[p]; v > m.score || v == m.score && p < m.passage {
			*m = match{n, p, v}
		}
	}
}

// top picks the best q.Limit docs that the query admits.
func (s *segment) top(q core.SearchQuery, w *scratch) []match {
	h := w.heap
	for _, n := range w.docs {
		d, m := &s.docs[n], w.best[n]
		m.score *= d.damp
		if d.actor != none && w.named[d.actor] {
			m.score *= s.cfg.NamedBoost
		}
		full := len(h) >= q.Limit
		if full && s.compare(m, h[0]) >= 0 {
			continue
		}
		if !d.within(q) || q.Exclude != nil && q.Exclude(d.id) {
			continue
		}
		if full {
			h[0] = m
			s.sink(h, 0)
			continue
		}
		h = append(h, m)
		s.rise(h)
	}
	w.heap = h
	out := slices.Clone(h)
	slices.SortFunc(out, s.compare)
	return out
}

// compare orders matches best first: by score, then the more recent, then the smaller id.
func (s *segment) compare(a, b match) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	x, y := &s.docs[a.doc], &s.docs[b.doc]
	return cmp.Or(
		cmp.Compare(y.sec, x.sec), cmp.Compare(y.nsec, x.nsec), cmp.Compare(y.seq, x.seq),
		cmp.Compare(x.id, y.id),
	)
}

// rise and sink keep the worst match at h[0].
func (s *segment) rise(h []match) {
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if s.compare(h[i], h[up]) <= 0 {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (s *segment) sink(h []match, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && s.compare(h[c+1], h[c]) > 0 {
			c++
		}
		if s.compare(h[c], h[i]) <= 0 {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// within reports whether the doc's time lies in the query's bounds.
func (d *doc) within(q core.SearchQuery) bool {
	if !q.From.IsZero() && d.before(q.From.Unix(), uint32(q.From.Nanosecond())) {
		return false
	}
	return q.To.IsZero() || d.before(q.To.Unix(), uint32(q.To.Nanosecond()))
}

func (d *doc) before(sec int64, nsec uint32) bool {
	return d.sec < sec || d.sec == sec && d.nsec < nsec
}
