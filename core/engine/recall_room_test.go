package engine_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
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

// TestNothingRecalledGivesWay: a message that takes what a window keeps in reserve is shown as it is, call after call, where nothing was recalled for its turn: there
// is nothing to take out, so no call is a step.
func TestNothingRecalledGivesWay(t *testing.T) {
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Retriever = &proposer{} })
	f.ingest(user(strings.Repeat("word ", 95)))
	first := f.assemble(100, full)
	if first.EstimatedTokens != 100 {
		t.Fatalf("%d tokens of 100: nothing is tested", first.EstimatedTokens)
	}
	for range 2 {
		if again := f.assemble(100, full); again.Stepped || again.Epoch != first.Epoch || shown(again) != shown(first) {
			t.Errorf("again: stepped %t, epoch %d, before %d, shown %q", again.Stepped, again.Epoch, first.Epoch, shown(again))
		}
	}
}

// TestRecallStaysInsideATurn: where the window grows in the midst of a turn so far that what was recalled in earlier turns gives way, and that is not enough, the
// oldest messages leave too: what was recalled for this turn stays.
func TestRecallStaysInsideATurn(t *testing.T) {
	k := newQuoting(t, nil, user("what "+strings.Repeat("one ", 40)+"it was"), user("who "+strings.Repeat("two ", 40)+"it was"))
	k.ingest(user("begin "+strings.Repeat("word ", 300)), assistant("so"))
	for n := range k.memories {
		k.propose([]float64{1}, n)
		if got, _ := k.quotes(600, "what was it?"); len(got) != 1 {
			t.Fatalf("turn %d: %d quoted: nothing is tested", n, len(got))
		}
	}
	for n, words := range []int{5, 232, 5} {
		k.ingest(calling(strconv.Itoa(n)), resulting(strconv.Itoa(n), strings.Repeat("word ", words)))
		res := k.assemble(600, loopCall, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was it?" })
		got := shown(res)
		if strings.Contains(got, "one one") != (n == 0) || strings.Contains(got, "begin") != (n == 0) || res.Stepped != (n == 1) {
			t.Errorf("call %d: stepped %t, shown %q", n, res.Stepped, got)
		}
		if !strings.Contains(got, "two two") {
			t.Errorf("call %d: what was recalled for the turn is gone: %q", n, got)
		}
	}
}
