package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestAdditionGoesBeforeTheQuestion: where a budget has no room for what is said behind the system prompt beside what the user asked and the newest call with its
// result, the addition is given up, not the question; in the call itself, in a new process, and where budgets shrink inside the turn or grow again.
func TestAdditionGoesBeforeTheQuestion(t *testing.T) {
	const question, result = 28, 10
	for section := 5; section <= 80; section += 5 {
		for _, restart := range []bool{false, true} {
			f := newFixture(t)
			f.ingest(user("hello"), assistant("hello"), user("Q#1."+strings.Repeat(" word", question-1)))
			full := func(r *core.AssembleRequest) {
				r.PromptMode, r.Call = core.PromptFull, core.CallLoop
				r.Memory = core.MemoryPrompt{Sections: []string{strings.Repeat("section ", section)}}
			}
			for n, budget := range []int{200, 150, 120, 110, 100, 96, 94, 96, 100, 120, 150, 200} {
				id := string(rune('a' + n))
				f.ingest(calling(id), resulting(id, strings.Repeat("found ", result)))
				res := f.assemble(budget, full)
				if !strings.Contains(shown(res), "Q#1.") {
					t.Errorf("section of %d words, budget %d, step %d, restarts %t: the question is not shown; the window costs %d with %d words of addition",
						section, budget, n, restart, res.EstimatedTokens, wordCounter(res.SystemPromptAddition))
				}
				if restart {
					f.restart()
				}
			}
			f.sound()
		}
	}
}

// TestWhatWasLeftOutStaysOut: what had no room when a turn began does not come back, and nothing goes for it, where an engine that was started in the middle of the
// turn is handed its own output with a larger budget.
func TestWhatWasLeftOutStaysOut(t *testing.T) {
	for section := 0; section <= 40; section += 4 {
		for budget := 16; budget <= 120; budget += 2 {
			full := func(r *core.AssembleRequest) {
				r.PromptMode = core.PromptFull
				if section > 0 {
					r.Memory = core.MemoryPrompt{Sections: []string{strings.Repeat("section ", section)}}
				}
			}
			f := newFixture(t)
			f.ingest(user("hello"), assistant("hello"), user("what is asked here"), assistant("a step of some"), assistant("so"))
			req := core.AssembleRequest{Session: f.id, Budget: budget}
			full(&req)
			was, err := f.engine.Assemble(t.Context(), req)
			if errors.Is(err, core.ErrBudget) {
				continue
			}
			f.restart()
			now := f.assemble(300, full, inLoop, transcript("", was.Messages...))
			if shown(now) != shown(was) || now.SystemPromptAddition != was.SystemPromptAddition {
				t.Errorf("section of %d words, budget %d: shown %q with %q, then %q with %q", section, budget, shown(was), was.SystemPromptAddition, shown(now), now.SystemPromptAddition)
			}
		}
	}
}

// TestAdditionGivenUpCostsNoCall: no call fails for an addition that was given up because it has no room at all.
func TestAdditionGivenUpCostsNoCall(t *testing.T) {
	for _, provider := range []string{"", "anthropic"} {
		for budget := 60; budget <= 120; budget += 4 {
			for question := 10; question < budget; question += 5 {
				for _, found := range []int{5, 20, 40} {
					var errs [2]error
					for with := range errs {
						f := newFixture(t)
						req := core.AssembleRequest{Session: f.id, Budget: budget, Settings: core.RuntimeSettings{Provider: provider}}
						if with == 1 {
							req.Memory = core.MemoryPrompt{Sections: []string{strings.Repeat("section ", budget+2)}}
						}
						f.ingest(user("Q#1." + strings.Repeat(" word", question-1)))
						for _, id := range []string{"a", "b", "c"} {
							_, _ = f.engine.Assemble(t.Context(), req) // the last one counts
							f.ingest(calling(id), resulting(id, strings.Repeat("found ", found)))
							req.Call = core.CallLoop
						}
						_, errs[with] = f.engine.Assemble(t.Context(), req)
					}
					if errs[0] == nil && errs[1] != nil {
						t.Errorf("provider %q, budget %d, question of %d, results of %d: error %v with an addition alone", provider, budget, question, found, errs[1])
					}
				}
			}
		}
	}
}
