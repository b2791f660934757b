package lexical

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// ranking is one search. What the passages of a block can have at most is found out first, from the terms that are in it or near it. The most
// promising blocks get their scores, which says how good the worst of the best docs is at least; then those get theirs that can reach
// it. The result is the same as if all did.
type ranking struct {
	*segment
	*scratch
	q     core.SearchQuery
	only  uint32 // session, none for all
	quest question

	spread    [2 * reach]uint32 // the weights of neighbours
	scattered bool              // there are neighbours whose numbers are not consecutive
	answering uint32            // the weight of the next passage after one that asks
	naming    bool              // the query names a speaker
	highest   float64           // that a score can be multiplied by, what is in damp left out
	base      float64           // see bound
	floor     float64           // scores below it are not among the best
	k1, flat  float64           // of BM25, in the unit of frequencies
	perLength float64
	sparse    int // terms, before those that all have bitmaps
}

// slack makes bounds safe against rounding.
const slack = 1 + 1e-9

// prepare looks up the terms and what they can be worth. The error is that of ctx.
func (k *ranking) prepare(ctx context.Context) (err error) {
	s, w := k.segment, k.scratch
	k.quest = questionOf(k.q.Text)
	k.spread, k.answering = s.weights, s.weights[0]
	if k.quest.asks {
		k.answering = uint32(math.Round(float64(s.weights[0]) * s.cfg.AnswerBoost))
	}
	k.upper.fit(k)
	k.scattered = slices.ContainsFunc(s.fars, func(x byte) bool { return x != 0 })
	k.highest = 1
	if len(s.actors) > 0 && s.cfg.NamedBoost > 1 {
		words := wordsOf(k.q.Text)
		for i, a := range s.actors {
			if w.named[i] = a.namedIn(k.q.Text, words); w.named[i] {
				k.highest, k.naming = s.cfg.NamedBoost, true
			}
		}
	}
	if k.quest.when {
		k.highest *= s.cfg.TimeBoost
	}
	k.k1 = s.cfg.K1
	k.flat = k.k1 * (1 - s.cfg.B) * unit
	k.perLength = k.k1 * s.cfg.B * float64(s.live) / max(float64(s.context), 1) * unit

	for r := range w.lengths {
		v := k.flat + k.perLength*float64(s.floors[r])
		if v <= 0 {
			v = 1e-300 // so that what nobody has is worth 0
		}
		w.lengths[r] = v
	}

	sum := float64(k.answering)
	for _, v := range s.weights {
		sum += float64(v)
	}
	if w.parts, err = s.queryTerms(ctx, k.q.Text, w); err != nil {
		return err
	}
	for i := range w.parts {
		t := &w.parts[i]
		t.idf = s.idf(t.df) * t.weight
		t.bound = t.idf * (k.k1 + 1)
		if most := float64(s.terms[t.id].most); most < 255 {
			f := most * (unit + sum)
			t.bound *= f / (f + k.flat)
		}
	}
	slices.SortStableFunc(w.parts, func(a, b queryTerm) int { return cmp.Compare(a.df, b.df) })
	rest := 0.0
	for i := range slices.Backward(w.parts) {
		w.parts[i].rest = rest
		rest += w.parts[i].bound
	}
	return nil
}

// run gives scores to all passages that can be among the best; those are left in touched.
func (k *ranking) run(ctx context.Context) error {
	if err := k.bound(ctx); err != nil {
		return err
	}
	if err := k.evaluate(ctx, k.promising()); err != nil {
		return err
	}
	k.floor = k.threshold()
	return k.evaluate(ctx, k.possible(k.floor))
}

// threshold returns the score of the worst of the best docs so far, 0 while there are too few.
func (k *ranking) threshold() float64 {
	if h := k.best(k.touched); len(h) == k.q.Limit {
		return h[0].score
	}
	return 0
}

// factor is what the score of a passage is multiplied by in the end.
func (k *ranking) factor(p uint32) float64 {
	n := k.passageDoc[p]
	f := float64(k.damp[n])
	if k.quest.asks && k.metas[p]&(asking|calling) == asking {
		f *= k.cfg.QuestionDamp
	}
	if k.quest.when && k.metas[p]&timed != 0 {
		f *= k.cfg.TimeBoost
	}
	switch a := k.docs[n].actor; {
	case a < unnamed:
		if k.naming && k.named[a] {
			f *= k.cfg.NamedBoost
		}
	case k.quest.mine && a == helper, k.quest.yours && a == person:
		f *= k.cfg.SideDamp
	}
	return f
}

// best returns the best k.q.Limit docs that the query admits, the worst of them first, the others in no order. It looks at the scores of ps.
func (k *ranking) best(ps []uint32) []match {
	w := k.scratch
	many := max(4*k.q.Limit, 256)
	floor := k.floor
	most := k.highest * max(1, k.cfg.RuleBoost*k.cfg.WishBoost) * slack
	for _, p := range ps {
		if w.score[p]*most < floor {
			continue
		}
		v := w.score[p] * k.factor(p)
		if v < floor {
			continue
		}
		n := k.passageDoc[p]
		m := &w.found[n]
		if m.score == 0 {
			w.met = append(w.met, n)
		}
		if v > m.score || v == m.score && p < m.passage {
			*m = match{n, p, v}
		}
		if len(w.met) < many {
			continue
		}
		// Docs that are not among the best now will be met again if another passage of theirs is.
		h := k.pick()
		if len(h) == k.q.Limit {
			floor = h[0].score
		}
		w.forgetDocs()
		for _, m := range h {
			w.found[m.doc] = m
			w.met = append(w.met, m.doc)
		}
	}
	h := k.pick()
	w.forgetDocs()
	return h
}

// pick returns the best of the docs that were met, the worst of them first.
func (k *ranking) pick() []match {
	w := k.scratch
	h := w.heap[:0]
	for _, n := range w.met {
		m := w.found[n]
		full := len(h) >= k.q.Limit
		if full && k.compare(m, h[0]) >= 0 {
			continue
		}
		if !k.docs[n].within(k.q) || k.q.Exclude != nil && k.q.Exclude(string(k.ids.at(k.docs[n].id))) {
			continue
		}
		if full {
			h[0] = m
			k.sink(h, 0)
			continue
		}
		h = append(h, m)
		k.rise(h)
	}
	w.heap = h
	return h
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
