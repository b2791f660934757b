package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestAdditionComesBackWhereThereIsRoom: the engine's addition, once given up because a budget had no room for it, does not come and go with the budgets: it
// comes back when it and what must stay take at most half of one, at the beginning of a turn. Both are steps, and outlive the process.
func TestAdditionComesBackWhereThereIsRoom(t *testing.T) {
	f := newFixture(t)
	const said = 10
	must := wordCounter(engine.SystemPromptAddition) + said + 5 // with what a message costs besides its words
	const note = 24                                             // what the engine reckons for it
	leave(f, 2*(must+note))
	for i, turn := range []struct {
		budget       int
		answer, want bool
	}{
		{must, false, true},
		{must - 1, false, false},
		{must + 1, false, false},
		{2*must - 2, false, false},
		{2 * (must + note), true, false}, // in the midst of a turn
		{2 * (must + note), false, true},
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

// TestAdditionWaitsForTheTurnsEnd: where the window's step left no room for the engine's own text, it does not come in the middle of the turn, whatever a
// process that was started meanwhile may use.
func TestAdditionWaitsForTheTurnsEnd(t *testing.T) {
	f := newFixture(t)
	full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
	var host []message.Message
	for range 30 {
		host = append(host, user("one two three four five six seven eight nine ten"), assistant("so"))
	}
	first := f.assemble(120, transcript("next", host...), full)
	if !first.Stepped || first.SystemPromptAddition != "" {
		t.Fatalf("the window did not step, or with the text: %+v", first)
	}
	f.restart()
	if res := f.assemble(170, transcript("next", host...), full, loopCall); res.SystemPromptAddition != "" || res.Stepped || shown(res) != shown(first) {
		t.Errorf("inside the turn: stepped %t, %q, %s", res.Stepped, res.SystemPromptAddition, shown(res))
	}
	host = append(host, user("next"), assistant("done"))
	if res := f.assemble(170, transcript("and now", host...), full); res.SystemPromptAddition == "" {
		t.Error("the text did not come with the next turn")
	}
}

// leave lets the beginning of a session leave the window under a budget.
func leave(f *fixture, budget int) {
	f.t.Helper()
	for range 30 {
		f.ingest(user("one two three four five six seven eight nine ten"))
	}
	if res, err := f.engine.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: budget}); err != nil || !res.Stepped || res.SystemPromptAddition == "" {
		f.t.Fatalf("the window did not step, or not with the addition: %+v, %v", res, err)
	}
}

// TestAdditionComesWithTheFirstStep: the engine's own text is not there as long as all of a session is shown; what the host wants said is. It comes when
// something leaves, in that call, and stays, also in a new process and a fork.
func TestAdditionComesWithTheFirstStep(t *testing.T) {
	f := newFixture(t)
	const budget = 400
	req := core.AssembleRequest{Session: f.id, Budget: budget, Memory: core.MemoryPrompt{Sections: []string{"the host's section"}, AvailableTools: []string{core.ToolSearch}}}
	ask := func(i int) core.AssembleResult {
		res, err := f.engine.Assemble(t.Context(), req)
		if err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		return res
	}
	came := -1
	for i := range 40 {
		f.ingest(user("one two three four five six seven eight nine ten"))
		res := ask(i)
		text := res.SystemPromptAddition
		switch own := strings.Contains(text, engine.SystemPromptAddition); {
		case !strings.Contains(text, "the host's section"):
			t.Fatalf("turn %d: the host's section is missing: %q", i, text)
		case own != strings.Contains(text, core.ToolSearch):
			t.Fatalf("turn %d: half of the engine's text: %q", i, text)
		case !own && (came >= 0 || len(res.Messages) <= i):
			t.Fatalf("turn %d: %d messages are shown, and nothing is said about the rest", i, len(res.Messages))
		case own && came < 0:
			if came = i; !res.Stepped {
				t.Fatalf("turn %d: the text came, and the window did not step", i)
			}
		}
		if again := ask(i); again.Stepped || again.SystemPromptAddition != text {
			t.Fatalf("turn %d: the same call again steps, or says %q", i, again.SystemPromptAddition)
		}
		f.restart()
	}
	if came < 5 {
		t.Fatalf("the text came in turn %d", came)
	}
	child := core.SessionID{Agent: f.id.Agent, Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
		t.Fatal(err)
	}
	req.Session = child
	if res := ask(40); !strings.Contains(res.SystemPromptAddition, engine.SystemPromptAddition) {
		t.Errorf("a fork does not begin as its parent: %q", res.SystemPromptAddition)
	}
}

// TestAdditionComesWithAStepForRecall: where the window steps to make room for what is recalled, and leaves out with it a long message that left no room for the
// engine's own text, the text comes in that call, and not in the next.
func TestAdditionComesWithAStepForRecall(t *testing.T) {
	cfg := engine.DefaultConfig()
	cfg.Recall.AcrossSessions = true
	k := newChatWith(t, cfg, &ranked{allEntries: &allEntries{}, score: func(int) float64 { return 1 }}, "the vault phrase is saffron")
	k.ask("go on") // stores what the other session recalls
	k.id, k.host = core.SessionID{Agent: "ada", Session: "t"}, []message.Message{message.New(message.User, strings.Repeat("w ", 460))}
	var before core.AssembleResult
	for i := 0; len(before.Messages) == len(k.host) || before.EstimatedTokens < 770; i++ {
		if i > 100 {
			t.Fatal("the window does not fill")
		}
		k.host = append(k.host, message.New(message.Assistant, fmt.Sprintf("%d says the pier %s", i, strings.Repeat("w ", 12))))
		before = k.ask("go on")
	}
	k.say("now the next")
	first, second := k.ask("What was the phrase?"), k.ask("What was the phrase?")
	if before.SystemPromptAddition != "" || !first.Stepped || first.RecallLen == 0 {
		t.Fatalf("the window did not step for what is recalled: %q, %t, %d", before.SystemPromptAddition, first.Stepped, first.RecallLen)
	}
	if first.SystemPromptAddition == "" || second.SystemPromptAddition != first.SystemPromptAddition || second.Stepped {
		t.Errorf("the addition is %q; in the same call again %q, stepped %t", first.SystemPromptAddition, second.SystemPromptAddition, second.Stepped)
	}
}

// TestAdditionSaysHowToCite: whoever is to cite, and has what entries are looked up with, is told how; nobody else is.
func TestAdditionSaysHowToCite(t *testing.T) {
	for name, c := range map[string]struct {
		memory core.MemoryPrompt
		want   bool
	}{
		"on":            {core.MemoryPrompt{CitationMode: "on", AvailableTools: []string{core.ToolSearch}}, true},
		"off":           {core.MemoryPrompt{CitationMode: "off", AvailableTools: []string{core.ToolSearch}}, false},
		"not said":      {core.MemoryPrompt{AvailableTools: []string{core.ToolSearch}}, false},
		"without tools": {core.MemoryPrompt{CitationMode: "on"}, false},
	} {
		f := newFixture(t)
		for range 40 {
			f.ingest(user("one two three four five six seven eight nine ten"))
		}
		res := f.assemble(400, func(r *core.AssembleRequest) { r.Memory, r.PromptMode = c.memory, core.PromptFull })
		if got := strings.Contains(res.SystemPromptAddition, "Cite"); got != c.want {
			t.Errorf("%s: %t, want %t: %q", name, got, c.want, res.SystemPromptAddition)
		}
	}
}

// TestAdditionBesideANote: the note on what is not shown is part of what must stay, also where it speaks of a single message: the addition comes when it takes at
// most half of the budget with that.
func TestAdditionBesideANote(t *testing.T) {
	const budget, note = 400, 24 // what the engine reckons for one
	room := budget/2 - wordCounter(engine.SystemPromptAddition) - note
	for over, want := range []bool{true, false} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Window.BatchShare = 1 })
		f.ingest(user(strings.Repeat("first ", 350)), user(strings.Repeat("word ", room-5+over))) // with what a message costs besides its words
		res := f.assemble(budget, func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull })
		if got := res.SystemPromptAddition != ""; got != want || !strings.HasPrefix(shown(res), "[1 earlier") {
			t.Errorf("%d tokens too much: the addition is there: %t, want %t; shown %.60q", over, got, want, shown(res))
		}
	}
}
