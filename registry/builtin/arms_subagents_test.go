package builtin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestSubagentsAndPatterns: a subagent belongs to its parent's arm, whatever patterns say about its key; of a parent outside of all arms, to the arm that its
// own key is given. It reaches what its parent said wherever both keep things in the same store. Another process knows of it what is in the stores.
func TestSubagentsAndPatterns(t *testing.T) {
	for _, c := range []struct {
		name, arms, parent, arm, childArm, later string
		reaches                                  bool
	}{
		{"the parent's arm counts", "{name: talks, sessions: ['agent:*:direct:*'], override: {recentMessages: 4}}, {name: subs, sessions: ['agent:*:subagent:*']}", "agent:main:direct:ann", "talks", "talks", "talks", true},
		{"also one of which nothing is kept", "{name: passing, sessions: ['agent:*:cron:*'], override: {store: memory}}", "agent:main:cron:daily", "passing", "passing", "", true},
		{"no arm, no pattern", "{name: passing, sessions: ['agent:*:cron:*'], override: {store: memory}}", "agent:main:main", "", "", "", true},
		{"no arm, and a pattern for its key", "{name: subs, sessions: ['agent:*:subagent:*'], override: {recentMessages: 4}}", "agent:main:main", "", "subs", "subs", true},
		{"no arm, and a pattern with another store", "{name: subs, sessions: ['agent:*:subagent:*'], override: {store: memory}}", "agent:main:main", "", "subs", "subs", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg := builtin.New()
			cfg, err := reg.Load(registry.Bytes("arms", "yaml", fmt.Appendf(nil, "store: {type: sqlite, path: %q}\narms: [%s]\n", filepath.Join(t.TempDir(), "a.db"), c.arms)))
			if err != nil {
				t.Fatal(err)
			}
			begin := func() *registry.Instance {
				t.Helper()
				instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = instance.Close(context.WithoutCancel(t.Context())) })
				return instance
			}
			instance := begin()
			parent, child := core.SessionID{Agent: "main", Session: c.parent}, core.SessionID{Agent: "main", Session: "agent:main:subagent:2b9e"}
			eng, arm, err := instance.Engine(t.Context(), parent.Agent, parent.Session)
			if err != nil || arm.Name != c.arm {
				t.Fatalf("the parent is in %q, want %q (%v)", arm.Name, c.arm, err)
			}
			for i, said := range []string{"The code of the locker is 8471.", "Find the locker, please."} {
				if _, err := eng.(core.TurnCommitter).CommitTurn(t.Context(), core.CommitTurnRequest{
					Session: parent, AdvancementKey: fmt.Sprint(i), Messages: []message.Message{message.New(message.User, said), message.New(message.Assistant, "Fine.")},
				}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := eng.(core.SubagentHost).PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child}); err != nil {
				t.Fatal(err)
			}
			sub, arm, err := instance.Engine(t.Context(), child.Agent, child.Session)
			if err != nil || arm.Name != c.childArm {
				t.Fatalf("the subagent is in %q, want %q (%v)", arm.Name, c.childArm, err)
			}
			res, err := sub.Assemble(t.Context(), core.AssembleRequest{Session: child, Budget: 4000, Prompt: "What is the code of the locker?"})
			if err != nil {
				t.Fatal(err)
			}
			var shown strings.Builder
			for _, m := range res.Messages {
				shown.WriteString(m.Text())
			}
			if strings.Contains(shown.String(), "8471") != c.reaches {
				t.Errorf("the subagent reaches what its parent said: %t, want %t\n%s", !c.reaches, c.reaches, shown.String())
			}
			if err := instance.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, arm, err := begin().Engine(t.Context(), child.Agent, child.Session); err != nil || arm.Name != c.later {
				t.Errorf("in another process the subagent is in %q, want %q (%v)", arm.Name, c.later, err)
			}
		})
	}
}

// TestSubagentsOfSessionsLeftToTheHost: the host's own engine records no arm, so that a subagent of such a session goes by its own key.
func TestSubagentsOfSessionsLeftToTheHost(t *testing.T) {
	reg := builtin.New()
	const arms = "store: memory\narms: [{name: left, sessions: ['agent:*:cron:*', 'agent:*:subagent:left-*'], override: {engine: legacy}}]"
	cfg, err := reg.Load(registry.Bytes("arms", "yaml", []byte(arms)))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close(context.WithoutCancel(t.Context())) })
	for session, want := range map[string]string{"agent:main:cron:daily": "left", "agent:main:subagent:2b9e": "", "agent:main:subagent:left-1": "left"} {
		if _, arm, err := instance.Engine(t.Context(), "main", session); err != nil || arm.Name != want {
			t.Errorf("%s is in %q, want %q (%v)", session, arm.Name, want, err)
		}
	}
}
