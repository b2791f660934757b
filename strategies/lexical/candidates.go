package lexical

// steps are how finely promising tells bounds apart.
const steps = 256

// promising returns the blocks with the highest bounds, four for each doc that is wanted: the better they are, the fewer of the others can reach what they
// hold. With as many blocks as docs, questions to long chats take 1.4 times as long.
func (k *ranking) promising() []uint32 {
	w := k.scratch
	highest := 0.0
	for r, v := range w.bounds {
		v = (v + k.base) * float64(k.damps[r])
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

// possible returns the blocks besides that hold a passage which can reach the threshold.
func (k *ranking) possible(threshold float64) []uint32 {
	w := k.scratch
	n := len(w.chosen)
	least := threshold / (k.highest * slack)
	for r, v := range w.bounds {
		if v < 0 || (v+k.base)*float64(k.damps[r]) < least || v+k.base == 0 {
			continue
		}
		if f := k.factorOf(uint32(r)) * slack; f*(v+k.base) >= threshold {
			k.choose(uint32(r), threshold/f)
		}
	}
	return w.chosen[n:]
}

// choose notes that a block gets its scores, of which those below the floor do not matter.
func (k *ranking) choose(r uint32, floor float64) {
	k.chosen = append(k.chosen, r)
	k.bounds[r], k.least[r] = -1, floor // once is enough
}

// factorOf is what the score of a passage in a block is multiplied by at most.
func (k *ranking) factorOf(r uint32) float64 {
	if k.highest == 1 && !k.quest.asks { // what else there is makes it smaller
		return float64(k.damps[r])
	}
	f := 0.0
	for p := r * block; p < min((r+1)*block, uint32(len(k.metas))); p++ {
		if v := k.factor(p); v > f {
			f = v
		}
	}
	return f
}
