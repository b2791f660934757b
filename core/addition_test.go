package core_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestAdditionComesBackWhereThereIsRoom: the engine's addition, once given up because a budget had no room for it, does not come and go with the budgets: it
// comes back when it and what must stay take at most half of one, at the beginning of a turn. Both are steps, and outlive the process.
func TestAdditionComesBackWhereThereIsRoom(t *testing.T) {
	f := newFixture(t)
	const said = 10
	must := wordCounter(core.SystemPromptAddition) + said + 5 // with what a message costs besides its words
	for i, turn := range []struct {
		budget       int
		answer, want bool
	}{
		{must, false, true},
		{must - 1, false, false},
		{must + 1, false, false},
		{2*must - 2, false, false},
		{2*must + 20, true, false}, // in the midst of a turn
		{2*must + 20, false, true},
		{must, false, true},
		{must - 1, false, false},
	} {
		req := core.AssembleRequest{Session: f.id, Budget: turn.budget}
		f.ingest(user(strings.TrimSpace(strings.Repeat("word ", said))))
		if turn.answer {
			f.ingest(assistant("so"))
			req.Call = core.CallLoop
		}
		for again := range 2 {
			res, err := f.engine.Assemble(t.Context(), req)
			if err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
			if got := res.SystemPromptAddition != ""; got != turn.want {
				t.Errorf("turn %d, call %d: the addition is there: %t, want %t", i, again, got, turn.want)
			}
			if again > 0 && res.Stepped {
				t.Errorf("turn %d: the same call again steps", i)
			}
			f.restart()
		}
	}
}
