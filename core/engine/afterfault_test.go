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

// alone is a store that one process at a time opens: it does not say what others did.
type alone struct {
	core.Store
	core.ViewStore
}

// TestGoingOnAfterAnyFault: after a call in which the store failed once, and which nobody makes again, the engine shows what the next process shows.
func TestGoingOnAfterAnyFault(t *testing.T) {
	child := core.SessionID{Agent: "main", Session: "child"}
	named := func(m message.Message, id string) message.Message { m.ID = id; return m }
	host := []message.Message{named(user("where is the zebra"), "1"), named(assistant("one"), "2"), named(user("the zebra again"), "3")}
	asked := func(list ...message.Message) func(f *fixture) error {
		return func(f *fixture) error {
			_, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 4000, Transcript: &core.Transcript{Messages: list}})
			return err
		}
	}
	for name, call := range map[string]func(f *fixture) error{
		"ended": func(f *fixture) error {
			return f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Reason: "completed", Result: "it stands in the oven"})
		},
		"ingest": func(f *fixture) error {
			_, err := f.engine.IngestBatch(t.Context(), core.IngestBatchRequest{Session: f.id, Messages: []message.Message{user("one more"), assistant("and two"), host[1]}})
			return err
		},
		"commit": func(f *fixture) error {
			_, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{user("one more"), assistant("and two")}})
			return err
		},
		"after turn": func(f *fixture) error {
			return f.engine.AfterTurn(t.Context(), core.AfterTurnRequest{Session: f.id, Messages: append(host[:3:3], user("one more"), assistant("and two")), PrePrompt: 3})
		},
		"forget": func(f *fixture) error {
			_, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: f.ids("one")})
			return err
		},
		"a longer list":   asked(append(host[:3:3], named(assistant("two"), "4"))...),
		"one in between":  asked(host[0], named(user("meanwhile"), "5"), host[1], host[2]),
		"one said before": asked(host[0], host[1], host[2], named(user("what the child said"), "6"), host[0]),
		"another head":    asked(system("other rules"), host[0], host[1], host[2], named(assistant("two"), "4")),
	} {
		for at := 1; ; at++ {
			struck := false
			for i := range 4 {
				store, p := &struckStore{Store: memory.New(), lost: i%2 == 0}, &proposer{}
				f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
					c.Recall.AcrossSessions, c.Failure, parts.Retriever, parts.Store = true, engine.FailStrict, p, alone{store, store}
					if i > 1 {
						parts.Store = store
					}
				})
				f.store = store.Store
				f.say(child, false, user("look for the zebra"), assistant("it stands in the oven"))
				f.assemble(4000, transcript("", host...))
				f.everything(p, "main")
				if recalled := shown(f.assemble(4000, transcript("", host...), func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull })); !strings.Contains(recalled, "in the oven") {
					t.Fatalf("nothing is recalled: %s", recalled)
				}
				store.calls, store.at = 0, at
				err := call(f)
				store.at = 0
				if store.what == "" {
					continue
				}
				struck = true
				text := fmt.Sprintf("%s, call %d (%s, done %t, alone %t): %v", name, at, store.what, store.lost, i < 2, err)
				got := shown(f.assemble(4000))
				f.restart()
				if want := shown(f.assemble(4000)); got != want {
					t.Errorf("%s: shown\n%s\nby the next process\n%s", text, got, want)
				}
				f.sound()
			}
			if !struck {
				break
			}
		}
	}
}

// TestNextListAfterAFailedCall: a call in which the store failed once, and which nobody makes again, changes nothing of what the next list is: it is shown as it is.
func TestNextListAfterAFailedCall(t *testing.T) {
	for name, lists := range map[string][]string{
		"a reset, and back":        {"u1 a2 u3", "u4", "u1 a2 u3"},
		"a reset, back and on":     {"u1 a2", "u3", "u1 a2 u5"},
		"another answer, and back": {"u1 a2 u3 a4", "u1 a2 u3 a5", "u1 a2 u3 a4"},
		"another question, and on": {"u1 a2 u3", "u1 a2 u4", "u1 a2 u3 a5"},
		"another head, and back":   {"u1 a2 u3", "u4 a2 u3", "u1 a2 u3"},
	} {
		for _, by := range []string{"", "id", "key", "time"} {
			for at := 1; ; at++ {
				struck := false
				for i := range 4 {
					store := &struckStore{Store: memory.New(), lost: i%2 == 0}
					f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = engine.FailStrict, store })
					f.store = store.Store
					ask := func(list string) (string, error) {
						res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, Transcript: &core.Transcript{Messages: called(by, list), Whole: true}})
						return shown(res), err
					}
					if _, err := ask(lists[0]); err != nil {
						t.Fatal(err)
					}
					store.calls, store.at = 0, at
					_, err := ask(lists[1])
					if store.at = 0; store.what == "" {
						continue
					}
					struck = true
					if i > 1 {
						f.restart()
					}
					for _, list := range []string{lists[2], lists[2], lists[2] + " a9"} {
						if got, again := ask(list); got != strings.Join(strings.Fields(list), " | ") || again != nil {
							t.Errorf("%s by %q, call %d (%s, done %t: %v): the host shows %q, the window is %q, error %v", name, by, at, store.what, store.lost, err, list, got, again)
						}
					}
				}
				if !struck {
					break
				}
			}
		}
	}
}
