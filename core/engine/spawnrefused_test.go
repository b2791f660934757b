package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestArgumentsOfCalls: what an engine may not be asked is ErrInvalid, which names what is wrong, and nothing is made of it.
func TestArgumentsOfCalls(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("hi"))
	child := core.SessionID{Agent: "main", Session: "child"}
	spawn := func(req core.SpawnRequest) error { return second(f.engine.PrepareSubagentSpawn(t.Context(), req)) }
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"no parent":          {spawn(core.SpawnRequest{Child: child}), "agent"},
		"no child":           {spawn(core.SpawnRequest{Parent: f.id}), "agent"},
		"its own child":      {spawn(core.SpawnRequest{Parent: f.id, Child: f.id}), "another session than the parent"},
		"no time":            {spawn(core.SpawnRequest{Parent: f.id, Child: child, TTL: -time.Nanosecond}), "ttl"},
		"another mode":       {spawn(core.SpawnRequest{Parent: f.id, Child: child, Mode: "copy"}), "contextMode"},
		"nobody ended":       {f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{}), "agent"},
		"of half a parent":   {f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Parent: core.SessionID{Agent: "main"}}), "session"},
		"behind the list":    {f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, PrePrompt: 1}), "prePromptMessageCount"},
		"in front of it":     {f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, PrePrompt: -1}), "prePromptMessageCount"},
		"nothing to look at": {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: " "})), "query"},
		"too long":           {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: strings.Repeat("x", 16<<10+1)})), "query"},
		"too many":           {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Limit: engine.MaxFound + 1})), "limit"},
		"too few":            {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Limit: -1})), "limit"},
		"before the first":   {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Offset: -1})), "offset"},
		"too much":           {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Tokens: engine.MaxAnswer + 1})), "tokens"},
		"too little":         {second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "x", Tokens: -1})), "tokens"},
	} {
		if !errors.Is(c.err, core.ErrInvalid) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: error %v, want ErrInvalid that names %q", name, c.err, c.says)
		}
	}
	for name, err := range map[string]error{
		"most hits, tokens and bytes": second(f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: strings.Repeat("x", 16<<10), Limit: engine.MaxFound, Tokens: engine.MaxAnswer})),
		"all of the list is before":   f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: one(user("x")), PrePrompt: 1}),
		"the shortest time":           spawn(core.SpawnRequest{Parent: f.id, Child: child, TTL: time.Nanosecond}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.engine.Info().Health) > 0 {
		t.Errorf("health %+v: what is asked wrongly is no problem of the engine", f.engine.Info().Health)
	}
}

// TestMaintainOfASessionThatIsSetAside: nothing is maintained of what is set aside.
func TestMaintainOfASessionThatIsSetAside(t *testing.T) {
	f, _ := newSick(t)
	f.id.Session = "bad"
	for range 3 {
		if err := operations(f)["ingest"](); err == nil {
			t.Fatal("the store does not fail")
		}
	}
	if _, err := f.engine.Maintain(t.Context(), core.MaintainRequest{Session: f.id}); !errors.Is(err, core.ErrQuarantined) {
		t.Errorf("error %v, want that it is set aside", err)
	}
}
