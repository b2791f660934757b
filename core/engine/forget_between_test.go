package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestForgetBetweenTwoCalls: an erasure that happens between any two store calls of another operation, or has it happen between two of its own, leaves nothing: not in the
// store, and not in any window afterwards.
func TestForgetBetweenTwoCalls(t *testing.T) {
	kid := core.SessionID{Agent: "main", Session: "kid"}
	said := user("my code is " + secret)
	var ids []string // of what is said
	host := []message.Message{said, assistant("noted"), user("what else"), assistant("nothing"), user("and now"), assistant("still nothing")}
	ops := map[string]func(f *fixture, e *engine.Engine) error{
		"ingest": func(f *fixture, e *engine.Engine) error {
			_, err := e.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: user("one more")})
			return err
		},
		"a timer": func(f *fixture, e *engine.Engine) error {
			_, err := e.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: user("tick"), Heartbeat: true})
			return err
		},
		"commit": func(f *fixture, e *engine.Engine) error {
			_, err := e.CommitTurn(f.t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: []message.Message{user("one more"), assistant("yes")}})
			return err
		},
		"after turn": func(f *fixture, e *engine.Engine) error {
			all := append(slices.Clip(host), user("one more"), assistant("yes"))
			return e.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: all, PrePrompt: len(host)})
		},
		"assemble": func(f *fixture, e *engine.Engine) error {
			_, err := e.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 40, Prompt: "what was my code?"})
			return err
		},
		"assemble, the whole transcript": func(f *fixture, e *engine.Engine) error {
			_, err := e.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 40, Prompt: "what was my code?", Transcript: &core.Transcript{Messages: host}})
			return err
		},
		"assemble, rewound": func(f *fixture, e *engine.Engine) error {
			_, err := e.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 40, Prompt: "what was my code?", Transcript: &core.Transcript{Messages: host[:4]}})
			return err
		},
		"assemble, reset": func(f *fixture, e *engine.Engine) error {
			_, err := e.Assemble(f.t.Context(), core.AssembleRequest{Session: f.id, Budget: 40, Prompt: "what was my code?", Transcript: &core.Transcript{Messages: []message.Message{user("anew")}}})
			return err
		},
		"fork": func(f *fixture, e *engine.Engine) error {
			_, err := e.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: kid, Mode: core.SpawnFork})
			return err
		},
		"fork of another agent": func(f *fixture, e *engine.Engine) error {
			_, err := e.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: core.SessionID{Agent: "eve", Session: "kid"}, Mode: core.SpawnFork})
			return err
		},
		"compact": func(f *fixture, e *engine.Engine) error {
			_, err := e.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: 30, Force: true})
			return err
		},
		"forget another": func(f *fixture, e *engine.Engine) error {
			_, err := e.Forget(f.t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: ids[3:4]})
			return err
		},
	}
	for name, op := range ops {
		for way := range 8 {
			inside, purge, views := way&1 > 0, way&2 > 0, way&4 == 0
			if purge && (strings.Contains(name, "transcript") || strings.Contains(name, "rewound")) {
				continue // what the host still has comes back
			}
			for at := int64(1); ; at++ {
				text := fmt.Sprintf("%s, the erasure first %v, purge %v, views %v, before call %d", name, inside, purge, views, at)
				store := &numbered{Store: memory.New(), at: at}
				store.off.Store(true)
				f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
					p.Compactor, p.Retriever = retold{}, &allEntries{store: store.Store}
					if p.Store = store; !views {
						p.Store = &remote{viewless: viewless{store}, changes: make(map[string]uint64)}
					}
				})
				f.store = store.Store
				hooked := f.engine
				f.restart() // the engine of the fixture is another process
				ids = nil
				for _, m := range host {
					ids = append(ids, f.ingest(m).IDs...)
				}
				f.compact(30)
				for _, e := range []*engine.Engine{hooked, f.engine} {
					if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 40, Prompt: "and my code?"}); err != nil {
						t.Fatal(err)
					}
				}
				req := engine.ForgetRequest{Scope: f.id.Scope(), Purge: purge}
				if !purge {
					req.Entries = []string{f.entry(secret).ID}
				}
				forget := func(e *engine.Engine) error { _, err := e.Forget(t.Context(), req); return err }
				do, between := func(e *engine.Engine) error { return op(f, e) }, forget
				if inside {
					do, between = forget, do
				}
				came := false
				var second error
				store.do = func() { came = true; second = between(f.engine) }
				store.off.Store(false)
				first := do(hooked)
				store.off.Store(true)
				if !came {
					break
				}
				for _, err := range []error{first, second} {
					if err != nil && !purge {
						t.Errorf("%s: %v", text, err)
					}
				}
				f.nothingLeft(text, hooked, kid)
			}
		}
	}
}

// nothingLeft looks at all that is stored, and at the windows that a person's question for the secret gets.
func (f *fixture) nothingLeft(text string, other *engine.Engine, kid core.SessionID) {
	f.t.Helper()
	for _, agent := range []string{f.id.Agent, "eve"} {
		id := f.id
		f.id.Agent = agent
		if got := f.traces(); got != nil {
			f.t.Errorf("%s: still there: %q", text, got)
		}
		f.id = id
	}
	fresh, err := engine.New(f.parts, f.cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	for n, e := range []*engine.Engine{other, f.engine, fresh} {
		for _, id := range []core.SessionID{f.id, kid, {Agent: "eve", Session: "kid"}} {
			res, err := e.Assemble(f.t.Context(), core.AssembleRequest{Session: id, Budget: 400, Prompt: "what was my code?"})
			if err != nil {
				f.t.Errorf("%s: engine %d: %v", text, n, err)
			}
			if got := shown(res); strings.Contains(got, secret) {
				f.t.Errorf("%s: engine %d shows in %s: %s", text, n, id, got)
			}
		}
	}
}

var _ core.Store = (*numbered)(nil)

func (s *numbered) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.call()
	return s.Store.Append(ctx, entries)
}

func (s *numbered) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	s.call()
	return s.Store.Get(ctx, scope, ids)
}

func (s *numbered) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	s.call()
	return s.Store.Delete(ctx, scope, ids)
}
