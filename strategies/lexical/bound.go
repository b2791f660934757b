package lexical

import (
	"context"
	"math/bits"
)

// bound reads the postings of all terms and finds out what the passages of each block can have at most: what is in bounds, and the constant base.
func (k *ranking) bound(ctx context.Context) error {
	w := k.scratch
	w.assign()
	err := w.onWorkers(ctx, func(ctx context.Context, h *worker, mine int) error {
		clear(h.bounds)
		clear(h.common)
		for i := range w.parts {
			t := &w.parts[i]
			if t.worker != mine {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.maps = k.bitmapsOf(t.id, h); t.maps != nil {
				if w.mask != nil {
					t.maps, h.bits = t.maps.masked(w.mask, h.bits)
				}
				k.boundFrequent(h, t)
				continue
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
		if t.maps != nil {
			t.postings = t.maps.more
			continue
		}
		t.postings = w.workers[t.worker].postings[t.from:t.to]
		if k.everywhere(t) {
			k.base += t.bound
		}
	}
	for i := range w.workers[1:] {
		sumInto(w.bounds, w.workers[i+1].bounds)
		sumInto(w.common, w.workers[i+1].common)
	}
	sumInto(w.bounds, w.common)
	k.sparse = len(w.parts)
	for k.sparse > 0 && w.parts[k.sparse-1].maps != nil {
		k.sparse--
	}
	return nil
}

// sumInto adds b to a.
func sumInto(a, b []float64) {
	for r, v := range b {
		a[r] += v
	}
}

// everywhere reports whether a term is in so many passages that it tells no block from another.
func (k *ranking) everywhere(t *queryTerm) bool { return t.to-t.from > len(k.metas)/4 }

// boundTerm adds to the bounds what a term can be worth. A block gets from a passage beside it no more than the nearest of its own does.
func (k *ranking) boundTerm(h *worker, t *queryTerm, list []posting) {
	bounds, gain := h.bounds, t.idf*(k.k1+1)
	add := func(r uint32, f uint32) {
		if f > 0 && int(r) < len(bounds) {
			f := float64(f)
			v := gain * f / (f + k.lengths[r])
			if v > t.bound { // min is several times slower, for the sake of NaN
				v = t.bound
			}
			bounds[r] += v
		}
	}
	before, after := k.beside()
	at := uint32(0)
	var left, here, right uint32 // what the block at, and those beside it, get
	for _, v := range list {
		body := uint32(v.body)
		if r := v.passage / block; r != at {
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
		place := v.passage % block
		left += body * before[place]
		here += (body + uint32(v.own)) * unit
		right += body * after[place]
		if k.spans[v.passage]&(moreBefore|moreAfter) != 0 && body > 0 {
			k.distant(v.passage, func(j, n uint32) { add(n/block, body*max(k.answering, k.spread[j])) })
		}
	}
	if at > 0 {
		add(at-1, left)
	}
	add(at, here)
	add(at+1, right)
}

// beside returns what the blocks beside get at most from a passage, by its place: the one before and the one after.
func (k *ranking) beside() (before, after [block]uint32) {
	for i := range uint32(block) {
		if i < reach {
			before[i] = k.spread[reach+i]
		}
		if j := block - 1 - i; j < reach {
			after[i] = k.spread[j]
		}
	}
	after[block-1] = max(k.answering, k.spread[0])
	return before, after
}

// upper are the most that a passage of a block gets, by the bits of the passages that hold a term: those of the block itself, and those of the blocks
// before it and after it.
type upper struct{ before, here, after [1 << block]float64 }

// fit makes the tables for the weights of a query.
func (t *upper) fit(k *ranking) {
	before, after := k.beside()
	var sums [1 << block][block]uint32 // by bits: what each passage gets
	for x := 1; x < len(sums); x++ {
		i, rest := uint32(bits.TrailingZeros(uint(x))), x&(x-1)
		t.before[x], t.after[x] = t.before[rest]+float64(after[i]), t.after[rest]+float64(before[i])
		top := uint32(0)
		for j := range uint32(block) {
			v := sums[rest][j]
			switch {
			case j == i:
				v += unit
			case j == i+1:
				v += max(k.answering, k.spread[0])
			case j > i && j-i <= reach:
				v += k.spread[j-i-1]
			case j < i && i-j <= reach:
				v += k.spread[reach+i-j-1]
			}
			sums[x][j] = v
			top = max(top, v)
		}
		t.here[x] = float64(top)
	}
}

// boundFrequent is boundTerm for a term with bitmaps. It is closer: what passages of a block get from each other is known.
func (k *ranking) boundFrequent(h *worker, t *queryTerm) {
	body, bounds, lengths := t.maps.body, h.common, k.lengths[:len(h.common)]
	gain, upper, extra := t.idf*(k.k1+1), &k.upper, k.extra(h, t.maps)
	last := min(len(body)+1, len(bounds))
	if extra != nil {
		last = len(bounds)
	}
	before, here := uint8(0), uint8(at(body, 0))
	for r := range last {
		after := uint8(at(body, uint32(r)+1))
		f := upper.before[before] + upper.here[here] + upper.after[after]
		before, here = here, after
		if extra != nil {
			f += float64(extra[r])
		}
		bounds[r] += gain * f / (f + lengths[r]) // to leave out zeros takes longer
	}
}

// worth returns what a term with bitmaps is worth to a block at most, as boundFrequent finds it, but for what is extra.
func (k *ranking) worth(t *queryTerm, r uint32) float64 {
	b, upper := t.maps.body, &k.upper
	f := upper.before[at(b, r-1)] + upper.here[at(b, r)] + upper.after[at(b, r+1)]
	return t.idf * (k.k1 + 1) * f / (f + k.lengths[r])
}

// extra returns, by block, what its passages get at most beyond what the bits of the text say; nil when nobody gets any.
func (k *ranking) extra(h *worker, m *bitmaps) []uint32 {
	if m.own == nil && len(m.more) == 0 && !k.scattered {
		return nil
	}
	before, after := k.beside()
	h.extra = sized(h.extra, len(h.bounds))
	extra := h.extra
	clear(extra)
	for r, x := range m.own {
		if x != 0 {
			extra[r] = unit
		}
	}
	for _, v := range m.more {
		r, place := v.passage/block, v.passage%block
		body := max(uint32(v.body), 1) - 1
		extra[r] += (body + max(uint32(v.own), 1) - 1) * unit
		if r > 0 {
			extra[r-1] += body * before[place]
		}
		if int(r)+1 < len(extra) {
			extra[r+1] += body * after[place]
		}
	}
	if !k.scattered {
		return extra
	}
	for r, x := range m.body {
		for x &= k.fars[r]; x != 0; x &= x - 1 {
			p := uint32(r*block + bits.TrailingZeros8(x))
			times := uint32(m.holds(p))
			k.distant(p, func(j, n uint32) { extra[n/block] += times * max(k.answering, k.spread[j]) })
		}
	}
	return extra
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
