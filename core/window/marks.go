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

// largeGroup is the share of the budget above which a group counts as large, and largeStep is how much deeper a
// window of large groups steps: with few groups in the window a shallow step would be followed by the next one at once.
const (
	largeGroup = 0.04
	largeStep  = 0.05
)

// Marks returns the marks for one call. ref is the budget that the window was shaped for, budget the one of this call; they differ when the
// budget jitters. recall is the share for recalled entries, group the mean cost of a group in tokens.
func (p Policy) Marks(ref, budget int, recall float64, group int) Marks {
	hard := int(float64(budget) * (1 - p.Reserve))
	highShare := min(p.High, 1-p.Reserve-recall)
	lowShare := p.Low
	if recall == 0 {
		// Nothing comes behind the window: it may use the whole budget, and steps from there.
		highShare = 1 - p.Reserve
		lowShare = p.Low - largeStep
	} else if float64(group) > largeGroup*float64(ref) {
		lowShare = p.Low - largeStep
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
