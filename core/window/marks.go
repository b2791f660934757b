package window

// Policy says when a window steps and how far. Shares are shares of the budget, 0 to 1.
type Policy struct {
	// High is the mark at which a window steps that leaves room for recall.
	High float64
	// Low and LowTokens bound how deep a step goes: that share stays at least while it is at most so many tokens. In a window n times as large as that a
	// step leaves an nth of LowTokens at least: what stands far from the end is worth less than it costs there.
	Low       float64
	LowTokens int
	// Reserve is never filled.
	Reserve float64
	// CachePrice is what a token costs that the provider has cached, relative to one that it has not. It decides how deep a step goes, see lowMark.
	CachePrice float64
	// KeepResults is the number of newest tool results that stay unmasked as long as older ones, or older turns, can give way.
	KeepResults int
}

// Marks are token counts that a window is measured against.
type Marks struct {
	// High is where the window steps, Low where a step ends, Hard what a prompt must never exceed.
	High, Low, Hard int
	// Recall is the allowance for recalled entries.
	Recall int
}

// leastStep is the share of the budget that a step frees at least.
const leastStep = 0.05

// Marks returns the marks for one call. ref is the budget that the window was shaped for, budget the one of this call; they differ when the
// budget jitters. recall is the allowance for recalled entries, added what a call adds to the window on average, in tokens; fixed is what of the window
// never leaves.
func (p Policy) Marks(ref, budget, recall, added int) Marks {
	hard := int(float64(budget) * (1 - p.Reserve))
	highShare := p.High
	if recall == 0 {
		highShare = 1 - p.Reserve // nothing comes behind the window: it may use the whole budget
	}
	high := min(int(highShare*float64(ref)), hard, int((1-p.Reserve)*float64(ref))-recall)
	least := int(p.Low * float64(min(ref, budget)))
	if least > p.LowTokens {
		least = p.LowTokens * p.LowTokens / least
	}
	most := high - int(leastStep*float64(ref))
	return Marks{High: high, Low: max(lowMark(high, least, most, p.CachePrice, added), 0), Hard: hard, Recall: recall}
}

// jitter is how far, as a share, budgets of one and the same model wander from call to call.
const jitter = 0.08

// Reference returns the budget to shape the window for: it follows the smallest of the budgets that jitter around one
// value, and jumps when the budget really changed. ref is the previous one, 0 at the beginning.
func Reference(ref, budget int) int {
	switch {
	case ref == 0, float64(budget) > float64(ref)*(1+jitter):
		return budget
	default:
		return min(ref, budget)
	}
}
