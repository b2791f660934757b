package conformance

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// progress describes a compaction that achieved nothing although it could.
func (r *compactorRun) progress(c core.Compaction, patches []core.Patch) string {
	saved, reason := r.saves(c, patches), patches[len(patches)-1].Reason
	empty := !slices.ContainsFunc(patches, func(p core.Patch) bool { return !p.Empty() })
	switch {
	case !empty && saved <= 0:
		return fmt.Sprintf("the patch saves %d of %d tokens", saved, c.Tokens)
	case empty && reason == "":
		return "the patch is empty and gives no reason"
	case empty && removable(c) > 2*c.SummaryTokens+200:
		return fmt.Sprintf("the patch is empty (%q) although %d tokens could go", reason, removable(c))
	}
	return r.costly(c, patches)
}

func patchProgress(r *compactorRun) string {
	mark := len(r.pieces)
	if text := r.progresses(mark); text != "" {
		return text
	}
	// Few may go, and each of them is large.
	for _, n := range []int{1, 3} {
		r.pieces = make([]piece, (3*n+1)/2) // the newest third stays
		for i := range r.pieces {
			r.pieces[i].Size = 200 + 600/n
		}
		mark++
		if text := r.progresses(mark); text != "" {
			return fmt.Sprintf("where %d large ones may go: %s", n, text)
		}
	}
	return ""
}

// marksAbove are how many times what a task costs its mark is, where somebody insists: just so, far below it, or no mark at all.
var marksAbove = []int{1, 100, 2, 0, 30, 7}

// progresses asks for less with and without force, above and below the nth of the marks, and with all that a task can have.
func (r *compactorRun) progresses(n int) string {
	for _, t := range []struct {
		force bool
		mark  func(c core.Compaction) int
	}{
		{false, func(c core.Compaction) int { return c.Target }},
		{true, func(c core.Compaction) int { return c.Target }},
		{true, func(c core.Compaction) int { return marksAbove[n%len(marksAbove)] * c.Tokens }},
	} {
		for _, task := range []func(bool) core.Compaction{r.task, r.rich} {
			c := task(t.force)
			c.Target = t.mark(c)
			patches, text := r.run(c)
			if text == "" {
				text = r.progress(c, patches)
			}
			if left := c.Tokens - r.saves(c, patches); text == "" && c.Target > 0 && left > c.Target && !slices.ContainsFunc(patches, func(p core.Patch) bool { return p.Reason != "" }) {
				text = fmt.Sprintf("the patch leaves %d of %d tokens and gives no reason", left, c.Tokens)
			}
			if text != "" {
				return fmt.Sprintf("force %v, target %d, %d earlier summaries, instructions %q: %s", t.force, c.Target, len(c.Summaries), c.Instructions, text)
			}
		}
	}
	return ""
}
