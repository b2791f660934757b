package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestAnyTwoOperations: an operation of one process that happens between any two store calls of another one, in another process: both succeed, and what was said is stored
// once, and shown the same by everybody.
func TestAnyTwoOperations(t *testing.T) {
	kid := core.SessionID{Agent: "main", Session: "kid"}
	say := func(m message.Message, id string) message.Message { m.ID = id; return m }
	host := []message.Message{
		say(user("first"), "1"), say(assistant("one"), "2"), say(user("second"), "3"), say(assistant("two"), "4"), say(user("third"), "5"), say(assistant("three"), "6"),
	}
	type op struct {
		do func(f *fixture, e *engine.Engine, who string) error
		// adds are the messages it says, by who does.
		adds []string
		// takes says that it takes something back, as a list does that does not have what another process was told meanwhile.
		takes bool
	}
	assemble := func(list func(who string) []message.Message) func(f *fixture, e *engine.Engine, who string) error {
		return func(f *fixture, e *engine.Engine, who string) error {
			req := core.AssembleRequest{Session: f.id, Budget: 400}
			if list != nil {
				req.Transcript = &core.Transcript{Messages: list(who)}
			}
			_, err := e.Assemble(f.t.Context(), req)
			return err
		}
	}
	ops := map[string]op{
		"ingest": {do: func(f *fixture, e *engine.Engine, who string) error {
			_, err := e.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: say(user(who+" said"), who)})
			return err
		}, adds: []string{" said"}},
		"batch": {do: func(f *fixture, e *engine.Engine, who string) error {
			_, err := e.IngestBatch(f.t.Context(), core.IngestBatchRequest{Session: f.id, Messages: []message.Message{say(user(who+" said"), who), say(assistant(who+" more"), who+"2")}})
			return err
		}, adds: []string{" said", " more"}},
		"timer": {do: func(f *fixture, e *engine.Engine, who string) error {
			_, err := e.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: say(user(who+" ticks"), who), Heartbeat: true})
			return err
		}},
		"commit": {do: func(f *fixture, e *engine.Engine, who string) error {
			_, err := e.CommitTurn(f.t.Context(), core.CommitTurnRequest{
				Session: f.id, AdvancementKey: who, Messages: []message.Message{say(user(who+" asks"), who), say(assistant(who+" answers"), who+"2")},
			})
			return err
		}, adds: []string{" asks", " answers"}},
		"same commit": {do: func(f *fixture, e *engine.Engine, _ string) error {
			_, err := e.CommitTurn(f.t.Context(), core.CommitTurnRequest{
				Session: f.id, AdvancementKey: "same", Messages: []message.Message{user("both ask"), assistant("both answer")},
			})
			return err
		}, adds: []string{"=both ask", "=both answer"}},
		"after turn": {do: func(f *fixture, e *engine.Engine, who string) error {
			all := append(slices.Clip(host), say(user(who+" asks"), who), say(assistant(who+" answers"), who+"2"))
			return e.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: all, PrePrompt: len(host)})
		}, adds: []string{" asks", " answers"}},
		"assemble":        {do: assemble(nil)},
		"same transcript": {do: assemble(func(string) []message.Message { return host }), takes: true},
		"growing":         {do: assemble(func(string) []message.Message { return append(slices.Clip(host), say(user("grown"), "g")) }), adds: []string{"=grown"}, takes: true},
		"nameless growth": {do: assemble(func(string) []message.Message { return append(slices.Clip(host), user("grown")) }), adds: []string{"=grown"}, takes: true},
		"shorter":         {do: assemble(func(string) []message.Message { return host[2:] }), takes: true},
		"rewound":         {do: assemble(func(string) []message.Message { return host[:4] }), takes: true},
		"reset":           {do: assemble(func(who string) []message.Message { return []message.Message{say(user(who+" anew"), who)} }), takes: true},
		"compact": {do: func(f *fixture, e *engine.Engine, _ string) error {
			_, err := e.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: 12, Force: true})
			return err
		}},
		"forget": {do: func(f *fixture, e *engine.Engine, _ string) error {
			ids := f.ids("second")
			if len(ids) == 0 {
				return nil // it would be all of the session
			}
			_, err := e.Forget(f.t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: ids})
			return err
		}, takes: true},
		"fork": {do: func(f *fixture, e *engine.Engine, who string) error {
			_, err := e.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: core.SessionID{Agent: "main", Session: "kid of " + who}, Mode: core.SpawnFork})
			return err
		}},
		"ended": {do: func(f *fixture, e *engine.Engine, who string) error {
			return e.OnSubagentEnded(f.t.Context(), core.SubagentEnded{Parent: f.id, Child: kid, Reason: "completed", Result: who + " found"})
		}, adds: []string{" found"}},
	}
	for first, a := range ops {
		for second, b := range ops {
			for _, views := range []bool{true, false} {
				for at := int64(1); ; at++ {
					store := &numbered{Store: memory.New(), at: at}
					store.off.Store(true)
					f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
						if p.Store = store; !views {
							p.Store = &remote{viewless: viewless{store}, changes: make(map[string]uint64)}
						}
					})
					f.store = store.Store
					hooked := f.engine
					f.restart()
					f.assemble(400, transcript("next", host...))
					for _, e := range []*engine.Engine{hooked, f.engine} {
						if err := assemble(nil)(f, e, ""); err != nil {
							t.Fatal(err)
						}
					}
					came := false
					var inner error
					store.do = func() { came = true; inner = b.do(f, f.engine, "B") }
					store.off.Store(false)
					outer := a.do(f, hooked, "A")
					store.off.Store(true)
					if !came {
						break
					}
					text := fmt.Sprintf("%s, before call %d of it %s, views %v", first, at, second, views)
					if outer != nil || inner != nil {
						t.Errorf("%s: %v, %v", text, outer, inner)
					}
					want := map[string]bool{}
					for _, m := range host {
						want[m.Text()] = first != "forget" && second != "forget" || m.Text() != "second"
					}
					for who, o := range map[string]op{"A": a, "B": b} {
						for _, s := range o.adds {
							if same, ok := strings.CutPrefix(s, "="); ok {
								want[same] = true
							} else {
								want[who+s] = true
							}
						}
					}
					stored := map[string]int{}
					for entry, err := range core.All(t.Context(), f.store, f.id.Scope(), false) {
						if err != nil {
							t.Fatal(err)
						}
						if entry.Type == core.TypeMessage || entry.Type == core.TypeSubagent {
							stored[entry.Message.Text()]++
						}
					}
					for said, must := range want {
						// What has no name, and another list takes back before it is published, is said once more.
						again := first == "nameless growth" && b.takes && said == "grown"
						if n := stored[said]; n > 1 && !again || must && n == 0 {
							t.Errorf("%s: %q is stored %d times", text, said, n)
						}
					}
					fresh, err := engine.New(f.parts, f.cfg)
					if err != nil {
						t.Fatal(err)
					}
					windows := map[string]string{}
					for n, e := range map[string]*engine.Engine{"first": hooked, "second": f.engine, "fresh": fresh} {
						res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 400})
						if err != nil {
							t.Errorf("%s: %v", text, err)
						}
						windows[n] = shown(res)
					}
					if !views {
						continue // of what was taken back, or pinned, a store without views knows nothing
					}
					if windows["first"] != windows["second"] || windows["first"] != windows["fresh"] {
						t.Errorf("%s: windows differ: %q", text, windows)
					}
					for said, must := range want {
						if n := strings.Count(windows["fresh"], said); n > 1 || must && n == 0 && !a.takes && !b.takes && first != "compact" && second != "compact" {
							t.Errorf("%s: %q is shown %d times: %s", text, said, n, windows["fresh"])
						}
					}
				}
			}
		}
	}
}

// ids returns the ids of the entries that say something.
func (f *fixture) ids(text string) []string {
	f.t.Helper()
	var out []string
	for entry, err := range core.All(f.t.Context(), f.store, f.id.Scope(), false) {
		if err != nil {
			f.t.Fatal(err)
		}
		if entry.Message.Text() == text {
			out = append(out, entry.ID)
		}
	}
	return out
}
