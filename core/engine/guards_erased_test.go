package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestWhatARetrieverRemembersOfAnErasedMessage: it has not heard of the erasure yet. That is no lie, so that there is no warning either.
func TestWhatARetrieverRemembersOfAnErasedMessage(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	f.say(core.SessionID{Agent: "main", Session: "other"}, false, user("my code is "+secret), user("my name is Ann"))
	f.say(f.id, false, user("first question"))
	f.everything(p, "main")
	for i := range p.candidates {
		if entry := &p.candidates[i].Entry; strings.Contains(entry.Text(), secret) {
			f.forget(engine.ForgetRequest{Scope: entry.SessionID().Scope(), Entries: []string{entry.ID}})
		}
	}
	res := f.assemble(4000, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was it?" })
	if got := shown(res); strings.Contains(got, secret) || !strings.Contains(got, "Ann") {
		t.Errorf("shown %q", got)
	}
	if len(res.Warnings) > 0 {
		t.Errorf("warnings: %q", res.Warnings)
	}
}

// TestErasedInAForkOfAParentThatWentOn: the parent was reset, so that its own view shows nothing of what is erased; a fork of another agent does.
func TestErasedInAForkOfAParentThatWentOn(t *testing.T) {
	f := newFixture(t)
	origin, child := core.SessionID{Agent: "main", Session: "origin"}, core.SessionID{Agent: "helper", Session: "child"}
	for _, id := range []core.SessionID{f.id, child} { // a fork of a fork: what is erased belongs to neither
		parent := origin
		if id == child {
			parent = f.id
		} else {
			f.say(origin, false, user("my code is "+secret), assistant("noted"))
		}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: id, Mode: core.SpawnFork}); err != nil {
			t.Fatal(err)
		}
	}
	f.say(child, false, user("task"))
	f.assemble(1000, transcript("next", user("begun anew")))
	f.restart()
	f.forget(engine.ForgetRequest{Scope: origin.Scope()})
	if got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Session = child })); strings.Contains(got, secret) || !strings.Contains(got, "task") {
		t.Errorf("the fork shows %q", got)
	}
}
