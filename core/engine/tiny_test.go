package engine_test

import (
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestTinyBudgets: a budget that has no room for the engine's own addition gets the messages without it, and one without room for those the typed error; never
// is a prompt over budget.
func TestTinyBudgets(t *testing.T) {
	full := wordCounter(engine.SystemPromptAddition)
	for _, empty := range []bool{true, false} {
		gaveUp := 0
		for budget := 1; budget < full+40; budget++ {
			f := newFixture(t)
			if !empty {
				f.ingest(user("one two three four"), assistant("five six seven"), user("eight nine"))
			}
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: budget})
			if err != nil {
				if !errors.Is(err, core.ErrBudget) {
					t.Errorf("budget %d: error %v, want core.ErrBudget", budget, err)
				}
				if res.SystemPromptAddition != "" || len(res.Messages) > 0 || empty || budget > 20 {
					t.Errorf("budget %d: %v, although there is room for the newest message", budget, err)
				}
				continue
			}
			cost := wordCounter(res.SystemPromptAddition)
			for _, m := range res.Messages {
				cost += wordCounter(m.Text()) + wordCounter(string(m.Role)) + 4
			}
			if cost > budget || res.EstimatedTokens > budget {
				t.Errorf("budget %d: the prompt costs %d, the engine says %d", budget, cost, res.EstimatedTokens)
			}
			if res.SystemPromptAddition == "" {
				gaveUp++
			}
		}
		if gaveUp == 0 {
			t.Errorf("empty %v: the addition was never given up", empty)
		}
	}
}
