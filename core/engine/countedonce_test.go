package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestCountedWhileAPathIsLaid: what was counted since a view was stored last is in the view once, also where a transcript gives up something, and the view is stored twice for it.
func TestCountedWhileAPathIsLaid(t *testing.T) {
	a, b, c, d := user("apple"), assistant("pear"), user("plum"), assistant("fig")
	for name, host := range map[string][]message.Message{
		"nothing given up":      {a, b, c, d, user("more")},
		"given up at the end":   {a, b, user("other")},
		"given up and moved":    {d, a, user("other")},
		"moved, nothing is new": {d, a},
		"all given up":          {user("other")},
		"others in front":       {user("other"), c, d},
	} {
		f := newFixture(t)
		if _, err := f.engine.Arm(t.Context(), f.id, func(string) string { return "new" }); err != nil {
			t.Fatal(err)
		}
		f.assemble(1000, transcript("", a, b, c, d))
		if _, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1}); err == nil {
			t.Fatal("a prompt in one token")
		}
		before, err := f.store.LoadView(t.Context(), f.id)
		if err != nil {
			t.Fatal(err)
		}
		f.assemble(1000, func(r *core.AssembleRequest) { r.Transcript = &core.Transcript{Messages: host, Whole: true} })
		f.ingest(user("so that it is stored"))
		v, err := f.store.LoadView(t.Context(), f.id)
		if err != nil || v.Tally.Errors != 1 || v.Tally.Calls != before.Tally.Calls+2 {
			t.Errorf("%s: %+v, before %+v, error %v, want one error and the calls", name, v.Tally, before.Tally, err)
		}
		f.sound()
	}
}

// TestAskedAfterAFault: what a person asked is known the same way after a call in which the store failed once as without that: a block that stood in one message
// before is not taken for one that comes back in message after message.
func TestAskedAfterAFault(t *testing.T) {
	const block = "this is a paragraph of more than sixty bytes which somebody wrote into a message once"
	for at := 1; ; at++ {
		p, store := &promptRetriever{}, newStruck(t, "views")
		f := store.fixture
		f.cfg.Recall.AcrossSessions = false
		f.parts.Retriever, f.parts.Compactor = p, &halver{}
		f.restart()
		f.ingest(user("before\n\n"+block+"\n\nand after"), assistant("yes"))
		f.say(core.SessionID{Agent: "main", Session: "child"}, false, user("hi"))
		f.ingest(user("apple"), assistant("pear"), user("plum"), assistant("fig"))
		f.compact(30) // the path has a gap where the summary is
		f.ingest(user("so"), assistant("it is"))
		f.restart()
		ask := core.AssembleRequest{Session: f.id, Budget: 4000, PromptMode: core.PromptFull, Prompt: "look at this\n\n" + block + "\n\nand say what you think"}
		store.store.calls, store.store.at = 0, at
		_, err := f.engine.Assemble(t.Context(), ask)
		if store.store.what == "" {
			if err != nil || at < 4 {
				t.Errorf("%d calls of the store, error %v", at, err)
			}
			return
		}
		store.store.at = 0
		ask.Prompt = "once more: " + ask.Prompt
		if _, err := f.engine.Assemble(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		if n := len(p.prompts); n == 0 || p.prompts[n-1] != ask.Prompt {
			t.Errorf("call %d (%s): it asks %q, want %q", at, store.store.what, p.prompts, ask.Prompt)
		}
	}
}
