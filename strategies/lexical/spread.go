package lexical

import (
	"context"
	"math/bits"
)

// window is a passage and all its neighbours as bits, whether they hold a term: bit reach is the passage itself, those before have the lower bits.
const window = 2*reach + 1

// sums are what windows are worth, when each passage in them holds the term once. Nearly all are worth just that.
type sums struct {
	weights [2 * reach]uint32
	of      [1 << window]uint32
	// within masks a window, by span: consecutive numbers need not be neighbours.
	within [256]uint16
}

// fit makes the table for weights of neighbours, unless it is for these.
func (t *sums) fit(weights [2 * reach]uint32) {
	if t.within[0] != 0 && t.weights == weights {
		return
	}
	t.weights = weights
	bit := [window]uint32{reach: unit}
	for j := range reach {
		bit[reach-1-j], bit[reach+1+j] = weights[j], weights[reach+j]
	}
	for i, v := range bit {
		for x := range 1 << i {
			t.of[x|1<<i] = t.of[x] + v
		}
	}
	for i := range t.within {
		n := span8(i)
		t.within[i] = uint16(1<<(n.before()+1+n.after())-1) << (reach - min(n.before(), reach))
	}
}

// evaluate gives their scores to all passages of blocks, which are in order.
func (k *ranking) evaluate(ctx context.Context, blocks []uint32) error {
	w := k.scratch
	err := w.onWorkers(ctx, func(ctx context.Context, h *worker, i int) error {
		n := len(w.workers)
		return k.evaluateSome(ctx, h, blocks[len(blocks)*i/n:len(blocks)*(i+1)/n])
	})
	for i := range w.workers {
		h := &w.workers[i]
		w.touched, h.touched = append(w.touched, h.touched...), h.touched[:0]
	}
	return err
}

func (k *ranking) evaluateSome(ctx context.Context, h *worker, blocks []uint32) error {
	w := k.scratch
	h.at = sized(h.at, len(w.parts))
	clear(h.at)
	for i, r := range blocks {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		from, to := r*block, min((r+1)*block, uint32(len(k.metas)))
		if !k.scoreBlock(h, from, to, w.least[r], k.fars[r] != 0) {
			clear(w.score[from:to])
			continue
		}
		for p := from; p < to; p++ {
			if w.score[p] > 0 {
				h.touched = append(h.touched, p)
			}
		}
	}
	return nil
}

// scoreBlock gives their scores to the passages of a block. It gives up, and reports false, when none of them can reach the floor any more.
func (k *ranking) scoreBlock(h *worker, from, to uint32, floor float64, far bool) bool {
	best, r := 0.0, from/block
	rest := k.common[r] * slack // what frequent terms that are not in the scores yet can add
	for i := range k.parts {
		t := &k.parts[i]
		if i >= k.sparse && best+rest < floor {
			return false
		}
		if !far && t.maps == nil && (h.at[i] == len(t.postings) || t.postings[h.at[i]].passage >= to+reach) {
			continue
		}
		if top := k.gather(h, i, from, to, far); top >= 0 {
			if best = top; top+t.rest < floor {
				return false
			}
		}
		if t.maps != nil {
			rest -= k.worth(t, r)
		}
	}
	return true
}

// gather adds what a term is worth to the passages of a block, and returns the highest score among them, -1 when nothing was added. With far, some of
// them have neighbours far away.
func (k *ranking) gather(h *worker, term int, from, to uint32, far bool) (top float64) {
	w, t := k.scratch, &k.parts[term]
	list := t.postings[h.at[term]:]
	// Skip what is before the block: by steps that double, then by halves.
	first := from - min(from, reach)
	if len(list) > 0 && list[0].passage < first {
		hi := 1
		for hi < len(list) && list[hi].passage < first {
			hi *= 2
		}
		lo := hi/2 + 1
		hi = min(hi, len(list))
		for lo < hi {
			if mid := (lo + hi) / 2; list[mid].passage < first {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		h.at[term] += lo
		list = list[lo:]
	}
	x, own, differs := k.window(h, t, list, from)
	if x == 0 && own == 0 && !differs && !far {
		return -1
	}
	table, differ := &w.sums, &h.differ
	gain, flat, perLength := t.idf*(k.k1+1), k.flat, k.perLength
	spans := k.spans[from:to]
	scores, ctxs := w.score[from:][:len(spans)], k.contexts[from:][:len(spans)]
	for i, span := range spans {
		n := table.of[x>>i&uint32(table.within[span])] + own>>i&1*unit
		if differs {
			n += differ[(i+2*reach)%len(differ)]
		}
		if far && span&(moreBefore|moreAfter) != 0 {
			n += k.fromFar(t, from+uint32(i))
		}
		v := scores[i]
		if n > 0 {
			f := float64(n)
			v += gain * f / (f + flat + perLength*float64(ctxs[i]))
			scores[i] = v
		}
		if v > top {
			top = v
		}
	}
	return top
}

// window looks at the passages of the block that begins at from, and reach more to either side: bit i of x, and the i-th of h.differ, when differs
// says that they are of use, are of the passage i - reach places from the first. Bits of own are of the passages of the block.
func (k *ranking) window(h *worker, t *queryTerm, list []posting, from uint32) (x, own uint32, differs bool) {
	correct := func(i uint32, v posting) {
		if !differs {
			clear(h.differ[:])
		}
		k.correct(v, (*[window]uint32)(h.differ[i:]))
		differs = true
	}
	if t.maps == nil {
		for _, v := range list {
			i := v.passage + reach - from
			if i >= window-1+block {
				break
			}
			if v.body > 0 {
				x |= 1 << i
			}
			if v.body != 1 || v.own != 0 || k.metas[v.passage]&^(timed|ruling|wishing) > neighbourCap {
				correct(i, v)
			}
		}
		return x, 0, differs
	}
	r := from / block
	x, own = around(t.maps.body, r), at(t.maps.own, r)
	special := around(k.longs, r)
	if k.quest.asks {
		special |= around(k.askers, r)
	}
	special &= x
	for _, v := range list {
		i := v.passage + reach - from
		if i >= window-1+block {
			break
		}
		v.own = max(v.own, 1) - 1 // the first has its bit
		correct(i, v)
		special &^= 1 << i
	}
	for ; special != 0; special &= special - 1 {
		i := uint32(bits.TrailingZeros32(special))
		correct(i, posting{from + i - reach, 1, 0})
	}
	return x, own, differs
}

// around returns the bits of a block and of reach passages to either side.
func around(b []byte, r uint32) uint32 {
	return (at(b, r-1) | at(b, r)<<block | at(b, r+1)<<(2*block)) >> (block - reach) & (1<<(window-1+block) - 1)
}

// correct adds to differ what a posting is worth beyond its bit, to its passage, in the middle, and to the neighbours. Differences may be
// negative: sums of uint32 come out right all the same.
func (k *ranking) correct(v posting, differ *[window]uint32) {
	p, body := v.passage, uint32(v.body)
	differ[reach] += (body + uint32(v.own)) * unit
	if body == 0 {
		return
	}
	differ[reach] -= unit
	m := k.metas[p]
	scale, div := share(body, m)
	before, after := k.spans[p].before(), k.spans[p].after()
	if div == 1 { // nearly always; a division takes as long as all the rest
		for j := range after {
			differ[reach+1+j] += k.spread[j] * (scale - 1)
		}
		for j := range before {
			differ[reach-1-j] += k.spread[reach+j] * (scale - 1)
		}
	} else {
		for j := range after {
			differ[reach+1+j] += k.spread[j]*scale/div - k.spread[j]
		}
		for j := range before {
			differ[reach-1-j] += k.spread[reach+j]*scale/div - k.spread[reach+j]
		}
	}
	if after > 0 && m&asking != 0 && k.passageDoc[p+1] != k.passageDoc[p] {
		differ[reach+1] += k.answering*scale/div - k.spread[0]*scale/div
	}
}

// fromFar returns what a passage gets from neighbours whose numbers are not consecutive.
func (k *ranking) fromFar(t *queryTerm, p uint32) (f uint32) {
	k.distant(p, func(j, n uint32) {
		body := t.holds(n)
		if body == 0 {
			return
		}
		m := k.metas[n]
		scale, div := share(uint32(body), m)
		// Those behind p are what p is before, and the other way round.
		weight := k.spread[(j+reach)%(2*reach)]
		if j == reach && m&asking != 0 && k.passageDoc[n] != k.passageDoc[p] {
			weight = k.answering
		}
		f += weight * scale / div
	})
	return f
}

// holds returns how often the term is in the text of a passage.
func (t *queryTerm) holds(p uint32) uint16 {
	if t.maps != nil {
		return t.maps.holds(p)
	}
	return bodyOf(t.postings, p)
}

// share is what of a frequency is spread, as a fraction: a long passage gives less.
func share(body uint32, m meta) (scale, div uint32) {
	if length := m.length(); length > neighbourCap {
		return body * neighbourCap, length
	}
	return body, 1
}
