package engine_test

import (
	"errors"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestSpawnAfterALostAnswer: a subagent whose preparation failed at any call of the store, done or not, can be prepared again, and taken back.
func TestSpawnAfterALostAnswer(t *testing.T) {
	for _, mode := range []core.SpawnMode{core.SpawnFork, core.SpawnIsolated} {
		for _, restart := range []bool{false, true} {
			for _, lost := range []bool{false, true} {
				for at := 1; spawnsAgain(t, mode, restart, lost, at); at++ {
				}
			}
		}
	}
}

// spawnsAgain reports false when there was no call that could fail.
func spawnsAgain(t *testing.T, mode core.SpawnMode, restart, lost bool, at int) bool {
	t.Helper()
	store := &struckStore{Store: memory.New()}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = engine.FailStrict, store })
	f.store = store.Store
	f.ingest(user("hello"))
	req := core.SpawnRequest{Parent: f.id, Child: core.SessionID{Agent: f.id.Agent, Session: "child"}, Mode: mode}
	store.at, store.lost = store.calls+at, lost
	_, err := f.engine.PrepareSubagentSpawn(t.Context(), req)
	if store.calls < store.at {
		return false
	}
	if err != nil && !errors.Is(err, errStruck) {
		t.Errorf("first: %v", err)
	}
	if restart {
		f.restart()
	}
	sp, err := f.engine.PrepareSubagentSpawn(t.Context(), req)
	if err == nil {
		err = sp.Rollback(t.Context())
	}
	if err != nil {
		t.Fatalf("mode %s, restart %t, call %d (%s) done %t: the same call again: %v", mode, restart, at, store.what, lost, err)
	}
	for _, id := range []core.SessionID{req.Child, req.Parent} {
		v, err := f.store.LoadView(t.Context(), id)
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			t.Fatal(err)
		}
		if len(v.Grants) > 0 || id == req.Child && (v.Len() > 0 || v.Parent != nil) {
			t.Errorf("mode %s, restart %t, call %d (%s) done %t: %d messages and %d grants stay in %s when it was taken back", mode, restart, at, store.what, lost, v.Len(), len(v.Grants), id)
		}
	}
	if _, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: req.Child, Message: user("now")}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), req); !errors.Is(err, core.ErrConflict) {
		t.Errorf("a child that said something was prepared: %v", err)
	}
	return true
}

// TestSpawnTwiceTakenBack: the answer of a preparation is lost on its way and the host prepares again; when the launch fails, neither session opens anything to the other.
func TestSpawnTwiceTakenBack(t *testing.T) {
	for _, mode := range []core.SpawnMode{core.SpawnFork, core.SpawnIsolated} {
		f := newFixture(t)
		f.ingest(user("hello"))
		req := core.SpawnRequest{Parent: f.id, Child: core.SessionID{Agent: "other", Session: "child"}, Mode: mode}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		spawn, err := f.engine.PrepareSubagentSpawn(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := spawn.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.say(req.Child, false, user("the kestrel is private"))
		res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "kestrel"})
		if err != nil || len(res.Found) > 0 {
			t.Errorf("mode %q: the parent finds %+v, error %v", mode, res.Found, err)
		}
		f.sound()
	}
}
