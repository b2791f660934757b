package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

func loopCall(r *core.AssembleRequest) { r.Call = core.CallLoop }

// TestTurnBudgetOfAFailedCall: a budget in which nothing fitted is no turn's budget; the next call of the turn may use what it is granted.
func TestTurnBudgetOfAFailedCall(t *testing.T) {
	long := assistant("read")
	long.Parts = append(long.Parts, message.Part{Kind: message.ToolCall, CallID: "1", Name: "read", Args: `{"a":"` + strings.Repeat("w ", 300) + `"}`})
	host := []message.Message{user("go"), long}
	for name, first := range map[string][]func(*core.AssembleRequest){
		"prompt": {transcript("next", host...)},
		"loop":   {transcript("next", host...), loopCall},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			req := core.AssembleRequest{Session: f.id, Budget: 50, PromptMode: core.PromptNone}
			for _, change := range first {
				change(&req)
			}
			if _, err := f.engine.Assemble(t.Context(), req); !errors.Is(err, core.ErrBudget) {
				t.Fatalf("err = %v, want ErrBudget", err)
			}
			if got := shown(f.assemble(2000, transcript("next", host...), loopCall)); !strings.Contains(got, "read") {
				t.Errorf("shown: %s", got)
			}
		})
	}
}

// TestTurnBudgetEndsWithTheTurn: a call of an earlier turn, with another budget, says nothing about this one.
func TestTurnBudgetEndsWithTheTurn(t *testing.T) {
	question := user(strings.Repeat("word ", 300))
	for _, c := range []struct {
		name, before string
		commit       bool
	}{{"committed", "next", true}, {"another prompt", "before", false}, {"between turns", "", false}} {
		f := newFixture(t)
		f.assemble(100, transcript(c.before))
		if c.commit {
			if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{question}}); err != nil {
				t.Fatal(err)
			}
		}
		if res := f.assemble(2000, transcript("next", question), loopCall); res.EstimatedTokens < 300 {
			t.Errorf("%s: %d tokens of 2000 are used: %s", c.name, res.EstimatedTokens, shown(res))
		}
	}
}

// TestTurnBudgetTooSmall: what the host grants now counts for more than what the turn began with, when nothing fits the latter.
func TestTurnBudgetTooSmall(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("go")}
	f.assemble(50, transcript("next", host...))
	call := assistant("write")
	call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "1", Name: "write", Args: `{"a":"` + strings.Repeat("w ", 300) + `"}`})
	if res := f.assemble(2000, transcript("next", append(host, call)...), loopCall); !strings.Contains(shown(res), "write") {
		t.Errorf("shown: %s", shown(res))
	}
	// Where it fits, the turn's own budget holds.
	f = newFixture(t)
	f.assemble(100, transcript("next", host...))
	for range 30 {
		host = append(host, assistant("a step of some words"))
	}
	if res := f.assemble(2000, transcript("next", host...), loopCall); res.EstimatedTokens > 100 {
		t.Errorf("%d tokens, the turn has 100", res.EstimatedTokens)
	}
}

// TestNothingIsLeftOfTheTurnsBudget: where what the host appended took all that the turn began with, and more, the call has what the host grants, and its window
// is not read again for it.
func TestNothingIsLeftOfTheTurnsBudget(t *testing.T) {
	for _, over := range []int{0, 1, 100} {
		store := &countedStore{Store: memory.New()}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		host := []message.Message{user("go on"), assistant("well")}
		want := shown(f.assemble(1000, transcript("", host...)))
		store.reset()
		got := shown(f.assemble(1000, transcript("", host...), loopCall, func(r *core.AssembleRequest) { r.Settings.ContextWindow = 2000 + over }))
		if got != want {
			t.Errorf("%d over: shown %q, want %q", over, got, want)
		}
		if n := store.scans.Load() + store.gets.Load(); n > 0 {
			t.Errorf("%d over: %d scans and gets, want none", over, n)
		}
	}
}
