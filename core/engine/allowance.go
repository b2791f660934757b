package engine

import "math"

// What recall may cost in a call. Tokens that nothing asked for are wasted, so a turn of which it is not certain that it asks gets little: half of the
// configured share, and at most so many tokens. One that asks gets all of the share, as far as there are candidates worth it.

const (
	// minRecall is the smallest allowance worth asking a retriever for, in tokens.
	minRecall = 60
	// perCandidate is how much of an allowance a candidate stands for: less than a short message costs, so that those that say nothing new can be passed over.
	perCandidate = 20
	// minCandidates is how many candidates are asked for however small the allowance is.
	minCandidates = 50
)

// ordinaryRoom is what a budget leaves room for in every turn, in tokens.
func (c *Config) ordinaryRoom(share float64, budget int) int {
	return min(int(share/2*float64(budget)), c.Recall.Tokens)
}

// askedRoom is the most that recall takes of a budget, in tokens.
func (c *Config) askedRoom(share float64, budget int) int { return int(share * float64(budget)) }

// recallRoom is what the window leaves to recall in this call, in tokens.
func (c *call) recallRoom(budget int) int {
	return max(c.e.cfg.ordinaryRoom(c.share, budget), c.wanted)
}

// allowance is what recalled entries may cost in all, in tokens. In a window that shows all there is nobody else needs what is free.
func (f *frame) allowance(c *call, asks bool) int {
	free := c.marks.Hard - f.fixed(c.additionCost) - sum(f.costs)
	if !asks {
		return min(f.e.cfg.ordinaryRoom(c.share, f.v.Budget), free)
	}
	room := f.e.cfg.askedRoom(c.share, f.v.Budget)
	if f.v.Front().Left == 0 {
		room = max(room, free/2)
	}
	return min(room, free)
}

// candidates is how many candidates make sense for an allowance.
func (c *Config) candidates(allowance int) int {
	return min(max(allowance/perCandidate, minCandidates), c.Recall.Candidates)
}

// floor is the score below which a candidate is not worth its tokens, given that of the best one. Scores that are not positive say nothing of worth.
func (c *Config) floor(best float64) float64 {
	if best <= 0 {
		return -math.MaxFloat64
	}
	return c.Recall.Floor * best
}

// want notes what a turn that asks would take if it had the room, when that is a good deal more than it took: a step makes room for it.
func (c *call) want(took, room int) {
	if c.stepped || c.loop() || c.wanted > 0 {
		return
	}
	need := took
	for i := range c.outAllowance {
		need += c.outAllowance[i].Tokens
	}
	if need = min(need, room); took < int(wantShare*float64(need)) {
		c.wanted = need
	}
}

// wantShare is the share of what it would take that a turn makes do with before the window steps for it.
const wantShare = 0.7
