package builtin_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestRunningSessionsStayInTheirArm: weights decide about new sessions only, in every process, and a subagent belongs to its parent's arm.
func TestRunningSessionsStayInTheirArm(t *testing.T) {
	dir := t.TempDir()
	const two = `
store: {type: sqlite, path: %q}
arms:
  - {name: small, weight: %d, override: {recentMessages: 4}}
  - {name: apart, weight: %d, override: {store: {type: sqlite, path: %q}, recentMessages: 8}}
`
	begin := func(small, apart int) *registry.Instance {
		t.Helper()
		reg := builtin.New()
		cfg, err := reg.Load(registry.Bytes("two", "yaml", fmt.Appendf(nil, two, filepath.Join(dir, "a.db"), small, apart, filepath.Join(dir, "b.db"))))
		if err != nil {
			t.Fatal(err)
		}
		instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return instance
	}
	const sessions = 60
	turn := func(instance *registry.Instance, session string, n int) string {
		t.Helper()
		eng, arm, err := instance.Engine(t.Context(), "main", session)
		if err != nil {
			t.Fatal(err)
		}
		_, err = eng.(core.TurnCommitter).CommitTurn(t.Context(), core.CommitTurnRequest{
			Session: core.SessionID{Agent: "main", Session: session}, AdvancementKey: fmt.Sprint(session, n),
			Messages: []message.Message{message.New(message.User, "hello"), message.New(message.Assistant, "hi")},
		})
		if err != nil {
			t.Fatal(err)
		}
		return arm.Name
	}
	first := map[string]string{}
	count := map[string]int{}
	instance := begin(1, 1)
	for i := range sessions {
		s := fmt.Sprintf("s%d", i)
		first[s] = turn(instance, s, 0)
		count[first[s]]++
	}
	if count["small"] < sessions/4 || count["apart"] < sessions/4 {
		t.Fatalf("arms got %v", count)
	}
	if err := instance.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round, weights := range [][2]int{{1, 99}, {99, 1}, {1, 0}, {0, 0}} {
		instance := begin(weights[0], weights[1])
		for s, arm := range first {
			if got := turn(instance, s, round+1); got != arm {
				t.Errorf("weights %v move %s from %s to %s", weights, s, arm, got)
			}
		}
		if weights[1] == 0 {
			if _, arm, err := instance.Engine(t.Context(), "main", "new"); err != nil || arm.Name == "apart" {
				t.Errorf("weights %v: a new session is given %+v, %v", weights, arm, err)
			}
		}
		if err := instance.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	instance = begin(1, 1)
	t.Cleanup(func() { _ = instance.Close(t.Context()) })
	for s, arm := range first {
		eng, _, err := instance.Engine(t.Context(), "main", s)
		if err != nil {
			t.Fatal(err)
		}
		child := core.SessionID{Agent: "main", Session: s + "-child"}
		if _, err := eng.(core.SubagentHost).PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: core.SessionID{Agent: "main", Session: s}, Child: child}); err != nil {
			t.Fatal(err)
		}
		if _, got, err := instance.Engine(t.Context(), "main", child.Session); err != nil || got.Name != arm {
			t.Errorf("the subagent of %s is in %q, want %q (%v)", s, got.Name, arm, err)
		}
		named := 0
		for entry, err := range core.All(t.Context(), eng.(interface{ Store() core.Store }).Store(), core.Scope{Agent: "main", Session: s}, false) {
			if err != nil {
				t.Fatal(err)
			}
			if entry.Meta["arm"] != "" && entry.Meta["arm"] != arm {
				t.Errorf("a turn of %s names the arm %q, want %q", s, entry.Meta["arm"], arm)
			}
			if entry.Role == message.User && entry.Meta["arm"] == arm {
				named++
			}
		}
		if named != 5 {
			t.Errorf("%d of 5 turns of %s name their arm", named, s)
		}
	}
}

// TestOutcomes: what is said of a turn is kept with the session's arm, the newest word counts, and none of it is ever shown.
func TestOutcomes(t *testing.T) {
	reg := builtin.New()
	cfg, err := reg.Load(registry.Bytes("arms", "yaml", []byte("store: memory\narms: [{name: only}]")))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close(t.Context()) })
	eng, _, err := instance.Engine(t.Context(), "main", "s")
	if err != nil {
		t.Fatal(err)
	}
	scorer := eng.(engine.Scorer)
	id := core.SessionID{Agent: "main", Session: "s"}
	for _, o := range []engine.Outcome{{Session: id, Turn: 1, Name: "helpful", Value: 1}, {Session: id, Name: "resolved", Value: 0}, {Session: id, Name: "resolved", Value: 1}} {
		if err := scorer.Score(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	got, err := scorer.Outcomes(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Value != 1 || got[0].Turn != 1 || got[1].Value != 1 || got[1].Arm != "only" {
		t.Errorf("outcomes are %+v", got)
	}
	if err := scorer.Score(t.Context(), engine.Outcome{Session: id, Name: "has blanks", Value: 1}); err == nil {
		t.Error("a name with a blank is accepted")
	}
}
