package lexical

// run is a range of passages.
type run struct{ from, to uint32 }

// scatter spreads the frequencies of a term to the neighbours of each passage that holds it, and adds what the term is worth to all of them.
func (k *ranking) scatter(t queryTerm) {
	s, w := k.segment, k.scratch
	tf, hot, runs := w.tf, w.hot[:0], w.runs[:0]
	var list []byte
	list, w.list = s.list(t.id, w.list)
	var last run
	var v posting
	for r := (reader{b: list}); r.next(&v); {
		p := v.passage
		m := s.metas[p]
		if m&dead != 0 || k.only != none && s.docs[s.passageDoc[p]].session != k.only {
			continue
		}
		body, span := uint32(v.body), s.spans[p]
		if span == scattered {
			hot = k.scatterFar(p, m, v, hot)
			continue
		}
		from, to := p-span.before(), p+span.after()+1
		if from > last.to || last.to == 0 {
			if last.to > 0 {
				runs = append(runs, last)
			}
			last.from = from
		}
		last.to = max(last.to, to)
		tf[p] += (body + uint32(v.own)) * unit
		if body == 0 {
			continue
		}
		if body == 1 && m.length() <= neighbourCap && to-from == 2*reach+1 {
			// By far the most.
			row := (*[2*reach + 1]uint32)(tf[from:to])
			for j := range reach {
				row[reach-1-j] += k.spread[reach+j]
				row[reach+1+j] += k.spread[j]
			}
		} else {
			scale, div := share(body, m)
			for j, n := 0, p+1; n < to; j, n = j+1, n+1 {
				tf[n] += k.spread[j] * scale / div
			}
			for j, n := 0, p; n > from; j, n = j+1, n-1 {
				tf[n-1] += k.spread[reach+j] * scale / div
			}
		}
		if m&asking != 0 && p+1 < to && k.answering != k.spread[0] && s.passageDoc[p+1] != s.passageDoc[p] {
			scale, div := share(body, m)
			tf[p+1] += k.answering*scale/div - k.spread[0]*scale/div
		}
	}
	if last.to > 0 {
		runs = append(runs, last)
	}
	w.runs = runs
	k.reward(t.idf, runs, hot)
	w.hot, w.runs = hot[:0], runs[:0]
}

// scatterFar spreads one posting of a passage whose neighbours have to be looked up. It adds to hot what has a frequency now.
func (k *ranking) scatterFar(p uint32, m meta, v posting, hot []uint32) []uint32 {
	s, tf := k.segment, k.tf
	hot = append(hot, p)
	body := uint32(v.body)
	tf[p] += (body + uint32(v.own)) * unit
	if body == 0 {
		return hot
	}
	scale, div := share(body, m)
	// What a passage gets from those before it is what this one gives to those after it.
	for j, n := 0, s.links[p].next; j < reach && n != none; j, n = j+1, s.links[n].next {
		weight := k.spread[j]
		if j == 0 && m&asking != 0 && s.passageDoc[n] != s.passageDoc[p] {
			weight = k.answering
		}
		tf[n] += weight * scale / div
		hot = append(hot, n)
	}
	for j, n := 0, s.links[p].prev; j < reach && n != none; j, n = j+1, s.links[n].prev {
		tf[n] += k.spread[reach+j] * scale / div
		hot = append(hot, n)
	}
	return hot
}

// reward turns the frequencies of one term, which are in runs and at hot, into scores. Frequencies are 0 afterwards.
func (k *ranking) reward(idf float64, runs []run, hot []uint32) {
	w := k.scratch
	tf, score, contexts, touched, top := w.tf, w.score, k.contexts, w.touched, k.top
	gain, flat, perLength := idf*(k.k1+1), k.flat, k.perLength
	for _, r := range runs {
		tfs, scores, ctxs := tf[r.from:r.to], score[r.from:r.to], contexts[r.from:r.to]
		for i, n := range tfs {
			if n == 0 {
				continue
			}
			f := float64(n)
			before := scores[i]
			if before == 0 {
				touched = append(touched, r.from+uint32(i))
			}
			after := before + gain*f/(f+flat+perLength*float64(ctxs[i]))
			scores[i] = after
			if after > top { // max is several times slower, for the sake of NaN
				top = after
			}
		}
		clear(tfs)
	}
	for _, p := range hot {
		if tf[p] == 0 {
			continue
		}
		f := float64(tf[p])
		tf[p] = 0
		if score[p] == 0 {
			touched = append(touched, p)
		}
		score[p] += gain * f / (f + flat + perLength*float64(contexts[p]))
		top = max(top, score[p])
	}
	w.touched, k.top = touched, top
}

// share is what of a frequency is spread, as a fraction: a long passage gives less.
func share(body uint32, m meta) (scale, div uint32) {
	if length := m.length(); length > neighbourCap {
		return body * neighbourCap, length
	}
	return body, 1
}

// gatherNear notes the neighbours of all candidates: those before, nearest first, then those after.
func (k *ranking) gatherNear() {
	s, w := k.segment, k.scratch
	nobody := uint32(len(s.metas))
	w.near = w.near[:0]
	for _, p := range w.touched {
		n := s.links[p].prev
		for range reach {
			if n == none {
				w.near = append(w.near, nobody)
				continue
			}
			w.near = append(w.near, n)
			n = s.links[n].prev
		}
		n = s.links[p].next
		for range reach {
			if n == none {
				w.near = append(w.near, nobody)
				continue
			}
			w.near = append(w.near, n)
			n = s.links[n].next
		}
	}
}

// gather adds what a term is worth to the candidates alone: the same as scatter adds to them.
func (k *ranking) gather(t queryTerm) {
	s, w := k.segment, k.scratch
	tf, hot := w.tf, w.hot[:0]
	var list []byte
	list, w.list = s.list(t.id, w.list)
	var v posting
	for r := (reader{b: list}); r.next(&v); {
		tf[v.passage] = uint32(v.body)<<16 | uint32(v.own)
		hot = append(hot, v.passage)
	}
	w.hot = hot
	const row = 2 * reach
	gain := t.idf * (k.k1 + 1)
	for i, p := range w.touched {
		own := tf[p]
		f := (own>>16 + own&0xFFFF) * unit
		for j, n := range w.near[i*row : (i+1)*row] {
			body := tf[n] >> 16
			if body == 0 {
				continue
			}
			m := s.metas[n]
			weight := k.spread[j]
			if j == 0 && m&asking != 0 && s.passageDoc[n] != s.passageDoc[p] {
				weight = k.answering
			}
			scale, div := share(body, m)
			f += weight * scale / div
		}
		if f > 0 {
			f := float64(f)
			w.score[p] += gain * f / (f + k.flat + k.perLength*float64(k.contexts[p]))
		}
	}
	for _, p := range hot {
		tf[p] = 0
	}
	w.hot = hot[:0]
}
