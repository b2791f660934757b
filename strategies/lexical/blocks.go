package lexical

import "slices"

// block is how many passages, numbered one after the other, are judged together.
const block = 8

// blocks are what is known of passages by block: a bit for each passage, the lowest for the first.
type blocks struct {
	floors []uint32  // the smallest context
	damps  []float32 // the largest factor for long docs
	lives  []byte    // they were not removed
	longs  []byte    // they spread proportionally less, see neighbourCap
	askers []byte    // they end with a question mark
	fars   []byte    // there are neighbours whose numbers are not consecutive
}

func (g *blocks) bytes() int { return 8*cap(g.floors) + 4*cap(g.lives) }

// extend makes room for a passage that is new, with its meta.
func (g *blocks) extend(p uint32, m meta) {
	if p%block == 0 {
		g.floors, g.damps = push(g.floors, 0), push(g.damps, 0)
		g.lives, g.longs, g.askers, g.fars = push(g.lives, 0), push(g.longs, 0), push(g.askers, 0), push(g.fars, 0)
	}
	set(g.lives, p, m&dead == 0)
	set(g.longs, p, m.length() > neighbourCap)
	set(g.askers, p, m&asking != 0)
}

// set sets or clears the bit of a passage.
func set(b []byte, p uint32, on bool) {
	if bit := byte(1) << (p % block); on {
		b[p/block] |= bit
	} else {
		b[p/block] &^= bit
	}
}

// refloor brings the smallest context of a block up to date.
func (s *segment) refloor(r uint32) {
	s.floors[r] = slices.Min(s.contexts[r*block : min((r+1)*block, uint32(len(s.contexts)))])
}

// survey finds out what is known of all passages by block.
func (s *segment) survey() {
	s.blocks = blocks{}
	for p, m := range s.metas {
		s.extend(uint32(p), m)
		s.damps[p/block] = max(s.damps[p/block], s.damp[s.passageDoc[p]])
		set(s.fars, uint32(p), s.spans[p]&(moreBefore|moreAfter) != 0)
	}
	for r := range s.floors {
		s.refloor(uint32(r))
	}
}
