package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// clock is a host whose time stands still.
type clock struct {
	core.NoHost
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

// TestSubagentWithoutAResult: a fork whose host has copies of what it inherited never hands its parent's words back as its own, also when the grant is over.
func TestSubagentWithoutAResult(t *testing.T) {
	parent := []message.Message{user("question"), assistant("done"), user("more"), assistant("parent's words")}
	for name, c := range map[string]struct {
		said []message.Message
		want string
	}{
		"nothing":                 {nil, ""},
		"an answer":               {[]message.Message{user("task"), assistant("found it")}, "found it"},
		"what the parent said":    {[]message.Message{user("task"), assistant("done")}, "done"},
		"an answer and a blank":   {[]message.Message{user("task"), assistant("found it"), assistant(" \n")}, "found it"},
		"a blank":                 {[]message.Message{user("task"), assistant(" \n")}, ""},
		"a question of the child": {[]message.Message{user("task")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
			f.assemble(1000, transcript("next", parent...))
			child := core.SessionID{Agent: "main", Session: "child"}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			host.now = host.now.Add(2 * time.Hour)
			for range 2 { // in two processes
				f.assemble(1000, transcript("next", slices.Concat(parent, c.said)...), func(r *core.AssembleRequest) { r.Session = child })
				f.restart()
			}
			for _, nothing := range []string{"", " \t"} {
				if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Result: nothing, Reason: "completed"}); err != nil {
					t.Fatal(err)
				}
			}
			_, got, _ := strings.Cut(shown(f.assemble(1000)), "<subagent")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "parent's words") {
				t.Errorf("handed back: %q, want %q", got, c.want)
			}
		})
	}
}

// TestGrantEndsInsideATurn: what a fork showed shortened of its parent is the host's own once the grant is over, also inside a turn: it says it, and nobody else does.
func TestGrantEndsInsideATurn(t *testing.T) {
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
	long := user("begin " + strings.Repeat("word ", 2000) + "end")
	f.assemble(400, transcript("", long))
	child := core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	of := func(r *core.AssembleRequest) { r.Session = child }
	before := f.assemble(400, transcript("", message.New(message.System, "rules of the child"), long), of)
	if got := shown(before); !strings.Contains(got, "shortened") {
		t.Fatalf("the fork shows %q, want it shortened", got)
	}
	host.now = host.now.Add(2 * time.Hour)
	inside := func(r *core.AssembleRequest) { r.Session, r.Call = child, core.CallLoop }
	if got, want := shown(f.assemble(400, transcript("", before.Messages...), inside)), "begin"; !strings.Contains(got, want) {
		t.Errorf("when the grant is over %q is shown, want what the host handed over", got)
	}
}
