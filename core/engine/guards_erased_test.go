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
