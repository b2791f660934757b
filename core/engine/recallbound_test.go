package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestBlockLastsAsLongAsItsOwnGrant: a block that quotes what a grant opens lasts as long as that grant, whatever else is open to the session, or opened to others, for a shorter
// or a longer time.
func TestBlockLastsAsLongAsItsOwnGrant(t *testing.T) {
	p, host := &proposer{}, &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever, parts.Host = p, host })
	id := func(name string) core.SessionID { return core.SessionID{Agent: "main", Session: name} }
	spawn := func(parent, child string, mode core.SpawnMode, lasts time.Duration) {
		t.Helper()
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: id(parent), Child: id(child), Mode: mode, TTL: lasts}); err != nil {
			t.Fatal(err)
		}
	}
	f.say(id("grandparent"), false, user("saffron of the grandparent"))
	spawn("grandparent", "parent", core.SpawnIsolated, 10*time.Minute)
	f.say(id("parent"), false, user("the task"))
	spawn("parent", "youngest", core.SpawnFork, time.Hour) // it has the grant of ten minutes, too
	f.say(id("parent"), false, user("cinnamon of the parent"))
	f.say(id("youngest"), false, user("my task"))
	spawn("youngest", "kid", core.SpawnIsolated, 5*time.Minute) // whom it may search
	f.say(id("kid"), false, user("pepper of the kid"))
	for name, want := range map[string]time.Duration{"parent": time.Hour, "grandparent": 10 * time.Minute} {
		p.candidates = []core.Candidate{{Entry: f.entryOf(id(name)), Score: 1, Source: "proposer"}}
		f.assemble(4000, full, func(r *core.AssembleRequest) { r.Session, r.Prompt = id("youngest"), "what did the "+name+" say?" })
		v, err := f.store.LoadView(t.Context(), id("youngest"))
		if err != nil || v.Recall == nil || !strings.Contains(v.Recall.Text, "of the "+name) {
			t.Fatalf("%s: nothing is recalled, error %v: %+v", name, err, v.Recall)
		}
		if got := v.Recall.Until.Sub(host.now); got != want {
			t.Errorf("%s: the block lasts %v, want %v", name, got, want)
		}
	}
}

// TestNothingIsCarriedAnyMore: where nothing of what was before a reset is to be given any more, and nothing is recalled, another prompt is nothing that has to be kept.
func TestNothingIsCarriedAnyMore(t *testing.T) {
	store := &countedStore{Store: memory.New()}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.ResetMessages, c.Recall.Share, p.Store, p.Retriever = 2, 0, store, &proposer{}
	})
	f.assemble(4000, full, transcript("now", chatter(0, 3)...))
	f.assemble(4000, full, transcript("now", chatter(3, 4)...))
	if v, err := store.LoadView(t.Context(), f.id); err != nil || v.Reset == nil {
		t.Fatalf("no reset is known, error %v", err)
	}
	f.cfg.Recall.ResetMessages = 0
	f.restart()
	f.assemble(4000, full, transcript("and now", chatter(3, 4)...))
	store.reset()
	f.assemble(4000, full, transcript("and then", chatter(3, 4)...))
	if n := store.swaps.Load(); n != 0 {
		t.Errorf("the view was stored %d times", n)
	}
}
