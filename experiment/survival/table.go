package survival

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Total is what rows of one arm and one share add up to.
type Total struct {
	Arm  string
	Keep float64
	// Rows is the number of measurements. The other figures are sums over them.
	Rows                   int
	Needed, Survived, Bare int
	History, Kept, Index   int
	// Worst is the largest share that an index took of a history.
	Worst float64
}

// Survival is the share of the needed identifiers that survived, in percent; 100 when none was needed.
func (t Total) Survival() float64 { return percent(t.Survived, t.Needed, 100) }

// WithoutIndex is Survival when texts of kind "index" are not looked at.
func (t Total) WithoutIndex() float64 { return percent(t.Bare, t.Needed, 100) }

// KeptShare is what was kept of the history's tokens, in percent.
func (t Total) KeptShare() float64 { return percent(t.Kept, t.History, 0) }

// IndexShare is what the index took of the history's tokens, in percent.
func (t Total) IndexShare() float64 { return percent(t.Index, t.History, 0) }

func percent(n, of int, none float64) float64 {
	if of == 0 {
		return none
	}
	return 100 * float64(n) / float64(of)
}

// Add adds rows up by share and arm, in the order of their first appearance.
func Add(rows []Row) []Total {
	var out []Total
	for _, r := range rows {
		i := slices.IndexFunc(out, func(t Total) bool { return t.Arm == r.Arm && t.Keep == r.Keep })
		if i < 0 {
			i = len(out)
			out = append(out, Total{Arm: r.Arm, Keep: r.Keep})
		}
		t := &out[i]
		t.Rows++
		t.Needed, t.Survived, t.Bare = t.Needed+r.Needed, t.Survived+r.Survived, t.Bare+r.Bare
		t.History, t.Kept, t.Index = t.History+r.History, t.Kept+r.Kept, t.Index+r.Index
		t.Worst = max(t.Worst, percent(r.Index, r.History, 0))
	}
	slices.SortStableFunc(out, func(a, b Total) int { return cmp.Compare(b.Keep, a.Keep) })
	return out
}

// Table writes totals as a Markdown table.
func Table(totals []Total) string {
	var b strings.Builder
	b.WriteString("| asked to keep | arm | kept | survival | without the index | index | needed |\n|---|---|---|---|---|---|---|\n")
	for _, t := range totals {
		fmt.Fprintf(&b, "| %.0f %% | %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %d |\n",
			100*t.Keep, t.Arm, t.KeptShare(), t.Survival(), t.WithoutIndex(), t.IndexShare(), t.Needed)
	}
	return b.String()
}
