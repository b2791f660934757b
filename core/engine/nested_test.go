package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// nested is a session, a fork of it, and a fork of that.
type nested struct {
	*fixture
	host            *clock
	child, youngest core.SessionID
}

func newNested(t *testing.T, agents [2]string, mode core.SpawnMode, lasts [2]time.Duration) *nested {
	t.Helper()
	n := &nested{host: &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	n.fixture = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = n.host })
	n.child, n.youngest = core.SessionID{Agent: agents[0], Session: "child"}, core.SessionID{Agent: agents[1], Session: "youngest"}
	n.ingest(user("the grandparent speaks of saffron"), assistant("noted"))
	n.spawn(n.id, n.child, mode, lasts[0])
	n.say(n.child, false, user("the parent speaks of cinnamon"))
	n.spawn(n.child, n.youngest, core.SpawnFork, lasts[1])
	n.say(n.youngest, false, user("the youngest speaks of pepper"))
	return n
}

func (n *nested) spawn(parent, child core.SessionID, mode core.SpawnMode, lasts time.Duration) {
	n.t.Helper()
	if _, err := n.engine.PrepareSubagentSpawn(n.t.Context(), core.SpawnRequest{Parent: parent, Child: child, Mode: mode, TTL: lasts}); err != nil {
		n.t.Fatal(err)
	}
}

// shows checks which spices the youngest shows.
func (n *nested) shows(when string, want ...string) {
	n.t.Helper()
	got := shown(n.assemble(1000, func(r *core.AssembleRequest) { r.Session = n.youngest }))
	for _, spice := range []string{"saffron", "cinnamon", "pepper"} {
		wanted := false
		for _, w := range want {
			wanted = wanted || w == spice
		}
		if strings.Contains(got, spice) != wanted {
			n.t.Errorf("%s: %q is shown: %t, want %t: %s", when, spice, !wanted, wanted, got)
		}
	}
}

// TestForkOfAFork: a fork of a fork shows what its parent shows, of everybody, each as long as its grants last; an isolated child hands on no more than it shows.
func TestForkOfAFork(t *testing.T) {
	for name, agents := range map[string][2]string{"of one agent": {"main", "main"}, "of three": {"other", "third"}} {
		t.Run(name, func(t *testing.T) {
			n := newNested(t, agents, core.SpawnFork, [2]time.Duration{2 * time.Hour, 4 * time.Hour})
			n.shows("at once", "saffron", "cinnamon", "pepper")
			n.restart()
			n.shows("after a restart", "saffron", "cinnamon", "pepper")
			n.host.now = n.host.now.Add(3 * time.Hour)
			n.shows("when the parent's grant is over", "cinnamon", "pepper")
			n.host.now = n.host.now.Add(3 * time.Hour)
			n.shows("when its own is over", "pepper")

			n = newNested(t, agents, core.SpawnFork, [2]time.Duration{4 * time.Hour, 2 * time.Hour})
			n.host.now = n.host.now.Add(3 * time.Hour)
			n.shows("when its own grant is over before the parent's", "pepper")

			n = newNested(t, agents, core.SpawnFork, [2]time.Duration{4 * time.Hour, 4 * time.Hour})
			if err := n.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: n.child, Child: n.youngest, Result: "done", Reason: "completed"}); err != nil {
				t.Fatal(err)
			}
			n.shows("when it has ended", "pepper")

			n = newNested(t, agents, core.SpawnIsolated, [2]time.Duration{4 * time.Hour, 4 * time.Hour})
			n.shows("of an isolated child", "cinnamon", "pepper")
		})
	}
}

// TestForkOfAForkAfterAnErasure: what is erased of a grandparent is gone from a fork's fork, whoever they belong to.
func TestForkOfAForkAfterAnErasure(t *testing.T) {
	for name, agents := range map[string][2]string{
		"of one agent": {"main", "main"}, "of three": {"other", "third"}, "two of another": {"other", "other"}, "back again": {"other", "main"},
	} {
		for _, restarted := range []bool{false, true} {
			n := newNested(t, agents, core.SpawnFork, [2]time.Duration{time.Hour, time.Hour})
			n.shows(name, "saffron", "cinnamon", "pepper")
			if restarted {
				n.restart()
			}
			said := n.entry("the grandparent speaks of saffron").ID
			n.forget(engine.ForgetRequest{Scope: n.id.Scope(), Entries: []string{said}})
			n.shows(name+", erased", "cinnamon", "pepper")
		}
	}
}

// TestForkDoesNotSearchItsParentsSubagents: what a parent may search of another subagent is not handed on to a fork of it.
func TestForkDoesNotSearchItsParentsSubagents(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("the parent speaks of saffron"), assistant("noted"))
	helper, fork := core.SessionID{Agent: "helper", Session: "child"}, core.SessionID{Agent: "main", Session: "fork"}
	for _, req := range []core.SpawnRequest{{Parent: f.id, Child: helper, Mode: core.SpawnIsolated}, {Parent: f.id, Child: fork, Mode: core.SpawnFork}} {
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if req.Child == helper {
			f.say(helper, false, user("the helper speaks of cinnamon"))
		}
	}
	for id, want := range map[core.SessionID]int{f.id: 1, fork: 0} {
		res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: id, Query: "cinnamon"})
		if err != nil || len(res.Found) != want {
			t.Errorf("%s finds %d of cinnamon, want %d: %v", id, len(res.Found), want, err)
		}
	}
}
