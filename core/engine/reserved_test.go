package engine_test

import (
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestReservedSessions: the names under which the engine keeps its own records are nobody's session, for any call.
func TestReservedSessions(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"contextengine-outcomes", "contextengine-receipts"} {
		f.id.Session = name
		_, ingest := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: []message.Message{user("x")}})
		_, assemble := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 100})
		_, forget := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope()})
		_, purge := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
		_, spawn := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: core.SessionID{Agent: "main", Session: "s1"}, Child: f.id})
		ordinary := core.SessionID{Agent: "main", Session: "s1"}
		child := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: ordinary, Child: f.id, Result: "x"})
		parent := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: ordinary, Result: "x"})
		for call, err := range map[string]error{
			"ingest": ingest, "assemble": assemble, "forget": forget, "purge": purge, "spawn": spawn, "subagent ended": child, "ended for a parent": parent,
		} {
			if !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%s in %q: error %v, want core.ErrInvalid", call, name, err)
			}
		}
	}
}

// TestReservedEntries: an erasure that names one of the engine's own records is refused, and erases nothing else that it names.
func TestReservedEntries(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("one"), user("two"))
	rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("one").ID}})
	_, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent}, Entries: []string{f.entry("two").ID, rec.ID}})
	if !errors.Is(err, core.ErrInvalid) {
		t.Errorf("error %v, want core.ErrInvalid", err)
	}
	if f.entry("two").Type != core.TypeMessage {
		t.Error("the other one is erased")
	}
}
