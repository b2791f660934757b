package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestForgetBehindAFailedCall: what a call could not publish the engine holds in memory alone; an erasure takes what is erased out of the view that the store still has.
func TestForgetBehindAFailedCall(t *testing.T) {
	other := core.SessionID{Agent: "main", Session: "other"}
	host := []message.Message{user("where is the zebra"), assistant("one"), user("the zebra again")}
	asked := func(budget int, list ...message.Message) func(f *fixture) error {
		return func(f *fixture) error {
			req := core.AssembleRequest{Session: f.id, Budget: budget, Call: core.CallPrompt}
			if len(list) > 0 {
				req.Transcript = &core.Transcript{Messages: list}
			}
			_, err := f.engine.Assemble(t.Context(), req)
			return err
		}
	}
	for name, call := range map[string]func(f *fixture) error{
		"no room for it":  asked(19),
		"a tiny budget":   asked(4),
		"a longer list":   asked(1000, append(host[:3:3], assistant("two"))...),
		"a rewind":        asked(1000, host[0]),
		"a reset":         asked(1000, user("anew")),
		"another system":  asked(1000, append([]message.Message{system("other rules")}, host...)...),
		"nothing, nobody": asked(1000, user("anew"), assistant("yes"), user("on")),
		"ingest": func(f *fixture) error {
			_, err := f.engine.Ingest(t.Context(), core.IngestRequest{Session: f.id, Message: user("one more")})
			return err
		},
	} {
		for _, said := range []bool{false, true} { // whether the session that recalls has messages of its own
			if !said && strings.HasPrefix(name, "a re") {
				continue
			}
			for at, struck := 1, true; struck; at++ {
				struck = false
				for i := range 8 {
					store, p := &struckStore{Store: memory.New(), lost: i%2 == 0}, &proposer{}
					f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
						c.Recall.AcrossSessions, c.Recall.Gate, parts.Retriever, parts.Store = true, false, p, alone{store, store}
						if i&2 != 0 {
							parts.Store = store
						}
					})
					f.store = store.Store
					f.say(other, false, user("my code is "+secret))
					f.everything(p, "main")
					full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
					if said {
						f.assemble(1000, transcript("", host...), full)
					}
					if !strings.Contains(shown(f.assemble(1000, full)), secret) {
						t.Fatalf("%s, said %t: nothing is recalled", name, said)
					}
					store.calls, store.at = 0, at
					err := call(f)
					store.at = 0
					if store.what == "" {
						continue
					}
					struck = true
					text := fmt.Sprintf("%s, said %t, call %d (%s, done %t, alone %t): %v", name, said, at, store.what, store.lost, i&2 == 0, err)
					f.forget(engine.ForgetRequest{Scope: other.Scope(), Entries: []string{p.candidates[0].Entry.ID}})
					if i&4 != 0 { // which publishes what is owed
						if got := shown(f.assemble(1000, full)); strings.Contains(got, secret) {
							t.Errorf("%s: shown\n%s", text, got)
						}
					}
					f.restart()
					if got := shown(f.assemble(1000, full)); strings.Contains(got, secret) {
						t.Errorf("%s: shown by the next process\n%s", text, got)
					}
				}
			}
		}
	}
}
