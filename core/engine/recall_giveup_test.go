package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestRecallGivesWay: a block that was recalled for a larger budget is taken out where the window has no room for it any more. The call says that it is a step, and
// the calls after that, which find nothing to do, do not.
func TestRecallGivesWay(t *testing.T) {
	for _, mode := range []core.PromptMode{core.PromptFull, core.PromptNone} {
		t.Run(string(mode), func(t *testing.T) {
			k := newQuoting(t, nil, user("what "+strings.Repeat("word ", 120)+"it was"))
			k.propose([]float64{1}, 0)
			ask := func(budget int, mode core.PromptMode) core.AssembleResult {
				return k.assemble(budget, transcript("what was it?", user("hello"), assistant("hi")), loopCall, func(r *core.AssembleRequest) { r.PromptMode = mode })
			}
			before := ask(4000, core.PromptFull)
			if before.RecallLen == 0 {
				t.Fatalf("shown: %q: nothing is recalled", shown(before))
			}
			first := ask(100, mode)
			if first.RecallLen > 0 || !first.Stepped || first.Epoch <= before.Epoch {
				t.Errorf("shown: %q, stepped: %t, epoch %d, before %d", shown(first), first.Stepped, first.Epoch, before.Epoch)
			}
			for range 2 {
				if again := ask(100, mode); shown(again) != shown(first) || again.Stepped || again.Epoch != first.Epoch {
					t.Errorf("again: shown %q, stepped: %t, epoch %d, want %d", shown(again), again.Stepped, again.Epoch, first.Epoch)
				}
			}
		})
	}
}
