package lexical

import "context"

// region is how many passages, numbered one after the other, are judged together.
const region = 8

// bound reads the postings of all terms and finds out what the passages of each region can have at most: what is in bounds, and the constant base.
func (k *ranking) bound(ctx context.Context) error {
	w := k.scratch
	w.deal()
	err := w.byHands(ctx, func(ctx context.Context, h *hand, mine int) error {
		clear(h.bounds)
		for i := range w.parts {
			t := &w.parts[i]
			if t.hand != mine {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			t.from = len(h.postings)
			k.read(h, t.id)
			t.to = len(h.postings)
			if !k.everywhere(t) {
				k.boundTerm(h, t, h.postings[t.from:t.to])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	k.base = 0
	for i := range w.parts {
		t := &w.parts[i]
		t.postings = w.hands[t.hand].postings[t.from:t.to]
		if k.everywhere(t) {
			k.base += t.bound
		}
	}
	for i := range w.hands[1:] {
		for r, v := range w.hands[i+1].bounds {
			w.bounds[r] += v
		}
	}
	return nil
}

// everywhere reports whether a term is in so many passages that it tells no region from another.
func (k *ranking) everywhere(t *queryTerm) bool { return t.to-t.from > len(k.metas)/4 }

// boundTerm adds to the bounds what a term can be worth. A region gets from a passage beside it no more than the nearest of its own does.
func (k *ranking) boundTerm(h *hand, t *queryTerm, list []posting) {
	bounds, floors := h.bounds, k.floors
	gain, flat, perLength := t.idf*(k.k1+1), k.flat, k.perLength
	add := func(r uint32, f uint32) {
		if f > 0 && int(r) < len(bounds) {
			f := float64(f)
			v := gain * f / (f + flat + perLength*float64(floors[r]))
			if v > t.bound { // min is several times slower, for the sake of NaN
				v = t.bound
			}
			bounds[r] += v
		}
	}
	var before, after [region]uint32 // what the regions beside get from a passage, by its place
	for i := range uint32(region) {
		if i < reach {
			before[i] = k.spread[reach+i]
		}
		if j := region - 1 - i; j < reach {
			after[i] = k.spread[j]
		}
	}
	after[region-1] = max(k.answering, k.spread[0])
	at := uint32(0)
	var left, here, right uint32 // what the region at, and those beside it, get
	for _, v := range list {
		body := uint32(v.body)
		if r := v.passage / region; r != at {
			if at > 0 {
				add(at-1, left)
			}
			switch r - at {
			case 1:
				left, here, right = here, right, 0
			case 2:
				add(at, here)
				left, here, right = right, 0, 0
			default:
				add(at, here)
				add(at+1, right)
				left, here, right = 0, 0, 0
			}
			at = r
		}
		place := v.passage % region
		left += body * before[place]
		here += (body + uint32(v.own)) * unit
		right += body * after[place]
		if k.spans[v.passage]&(moreBefore|moreAfter) != 0 && body > 0 {
			k.distant(v.passage, func(j, n uint32) { add(n/region, body*max(k.answering, k.spread[j])) })
		}
	}
	if at > 0 {
		add(at-1, left)
	}
	add(at, here)
	add(at+1, right)
}

// distant calls f with the neighbours of a passage whose numbers are not consecutive: with j and n when n gets the j-th weight from the passage.
func (s *segment) distant(p uint32, f func(j, n uint32)) {
	span := s.spans[p]
	// What a passage gets from those before it is what this one gives to those after it.
	if span&moreAfter != 0 {
		for j, n := span.after(), s.links[p+span.after()].next; j < reach && n != none; j, n = j+1, s.links[n].next {
			f(j, n)
		}
	}
	if span&moreBefore != 0 {
		for j, n := span.before(), s.links[p-span.before()].prev; j < reach && n != none; j, n = j+1, s.links[n].prev {
			f(reach+j, n)
		}
	}
}

// steps are how finely promising tells bounds apart.
const steps = 256

// promising returns the regions with the highest bounds, four for each doc that is wanted: the better they are, the fewer of the others can reach what they
// hold. With as many regions as docs, questions to long chats take 1.4 times as long. What one passage of a region is damped by
// stands for all of them.
func (k *ranking) promising() []uint32 {
	w := k.scratch
	highest := 0.0
	for r, v := range w.bounds {
		v = (v + k.base) * float64(k.damp[k.passageDoc[r*region]])
		w.least[r] = v
		if v > highest {
			highest = v
		}
	}
	if highest == 0 {
		return nil
	}
	scale := (steps - 1) / highest
	var count [steps]int
	for _, v := range w.least {
		count[int(v*scale)]++
	}
	least, n := steps-1, count[steps-1]
	for many := max(4*k.q.Limit, 16); n < many && least > 0; {
		least--
		n += count[least]
	}
	for r, v := range w.least {
		if int(v*scale) >= least && v > 0 {
			k.choose(uint32(r), 0)
		}
	}
	return w.chosen
}

// possible returns the regions besides that hold a passage which can reach the threshold.
func (k *ranking) possible(threshold float64) []uint32 {
	w := k.scratch
	n := len(w.chosen)
	least := threshold/(k.highest*slack) - k.base
	for r, v := range w.bounds {
		if v < least || v < 0 || v+k.base == 0 {
			continue
		}
		if f := k.factorOf(uint32(r)) * slack; f*(v+k.base) >= threshold {
			k.choose(uint32(r), threshold/f)
		}
	}
	return w.chosen[n:]
}

// choose notes that a region gets its scores, of which those below the floor do not matter.
func (k *ranking) choose(r uint32, floor float64) {
	k.chosen = append(k.chosen, r)
	k.bounds[r], k.least[r] = -1, floor // once is enough
}

// factorOf is what the score of a passage in a region is multiplied by at most.
func (k *ranking) factorOf(r uint32) float64 {
	f := 0.0
	for p := r * region; p < min((r+1)*region, uint32(len(k.metas))); p++ {
		if v := k.factor(p); v > f {
			f = v
		}
	}
	return f
}
