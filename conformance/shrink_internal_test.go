package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanShrinks: the smallest example of a fault that any prompt has is one step, and everything around it is as plain as it can be.
func TestPlanShrinks(t *testing.T) {
	text, smallest, found := forAll(7, 50, true, genPlan, planShrinker(), func(p plan) string {
		if slices.ContainsFunc(p.Ops, func(o op) bool { return o.Kind == opAssemble }) {
			return "broken"
		}
		return ""
	})
	want := plan{Budget: 300, Ops: []op{{Kind: opAssemble}}}
	smallest.Ops[0].Size = 0 // 0 or 1
	if d := cmp.Diff(want, smallest); !found || text != "broken" || d != "" {
		t.Errorf("found %v, text %q: %s", found, text, d)
	}
}

// TestMostFundamental: of several rules that break in one step the one that explains the others is reported.
func TestMostFundamental(t *testing.T) {
	for _, c := range []struct {
		order []string
		want  string
	}{
		{[]string{"cache.prefix", "order.tail", "lost.shown"}, "lost.shown"},
		{[]string{"recall.quoted", "budget.recount"}, "budget.recount"},
		{[]string{"lost.shown", "failure.spurious"}, "failure.spurious"},
		{[]string{"cache.loop", "order.tail"}, "order.tail"},
	} {
		d := &driver{checks: map[string]Check{}, seen: map[string]string{}, tolerated: map[string]bool{}}
		for _, check := range Checks() {
			d.checks[check.ID] = check
		}
		for _, id := range c.order {
			d.fail(id, "seen of %s", id)
		}
		if d.settle(); d.failed != c.want || d.failure != "seen of "+c.want {
			t.Errorf("%q: %s (%s), want %s", c.order, d.failed, d.failure, c.want)
		}
	}
}
