package window

// Policy says when a window steps and how far. Shares are shares of the budget, 0 to 1.
type Policy struct {
	// High and Low are the marks for a recall share of 0.10; Marks moves High for other shares.
	High, Low float64
	// Reserve is never filled.
	Reserve float64
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

// A window to which each call adds much steps up to deepStep deeper: with few calls between two steps a shallow one would be followed by the next
// at once. largeCall is the share of the budget from which on a call adds much, hugeCall the one at which the step is as deep as it gets.
const (
	deepStep  = 0.05
	largeCall = 0.03
	hugeCall  = 0.045
)

// Marks returns the marks for one call. ref is the budget that the window was shaped for, budget the one of this call; they differ when the
// budget jitters. recall is the share for recalled entries, added what a call adds to the window on average, in tokens.
func (p Policy) Marks(ref, budget int, recall float64, added int) Marks {
	hard := int(float64(budget) * (1 - p.Reserve))
	highShare := min(p.High, 1-p.Reserve-recall)
	lowShare := p.Low
	if recall == 0 {
		// Nothing comes behind the window: it may use the whole budget, and steps from there.
		highShare = 1 - p.Reserve
		lowShare = p.Low - deepStep
	} else if share := float64(added) / float64(max(ref, 1)); share > largeCall {
		lowShare -= deepStep * min((share-largeCall)/(hugeCall-largeCall), 1)
	}
	lowShare = min(lowShare, highShare-0.05)
	high := min(int(highShare*float64(ref)), hard)
	m := Marks{
		High:   high,
		Low:    max(high-int((highShare-lowShare)*float64(min(ref, budget))), 0),
		Hard:   hard,
		Recall: int(recall * float64(ref)),
	}
	return m
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
