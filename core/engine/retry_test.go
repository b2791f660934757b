package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// crowded is a store that others write to: meanwhile is called before a view is published or an entry of the engine's own is stored, with the number of times that it was.
type crowded struct {
	*memory.Store
	meanwhile func(n int) error
	n         int
}

func (s *crowded) others() error {
	do := s.meanwhile
	if do == nil {
		return nil
	}
	s.n++
	s.meanwhile = nil // what others do is not disturbed
	defer func() { s.meanwhile = do }()
	return do(s.n)
}

func (s *crowded) SwapView(ctx context.Context, v core.View) error {
	if err := s.others(); err != nil {
		return err
	}
	return s.Store.SwapView(ctx, v)
}

func (s *crowded) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if core.Reserved(entries[0].Session) {
		if err := s.others(); err != nil {
			return core.AppendResult{}, err
		}
	}
	return s.Store.Append(ctx, entries)
}

// crowdedFixture is a fixture over such a store with two messages, and another one over what is behind it.
func crowdedFixture(t *testing.T) (f, other *fixture, store *crowded) {
	t.Helper()
	store = &crowded{Store: memory.New()}
	f = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	other = newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store.Store })
	f.store, other.store = store.Store, store.Store
	f.ingest(user("a"), assistant("b"))
	return f, other, store
}

// TestOthersAreAlwaysFirst: a call in whose session others are always first tries again as long as they change it, and until its context ends; it pauses in between.
func TestOthersAreAlwaysFirst(t *testing.T) {
	const times = 60
	calls := map[string]func(context.Context, *fixture) error{
		"ingest": func(ctx context.Context, f *fixture) error {
			_, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("mine")})
			return err
		},
		"a receipt": func(ctx context.Context, f *fixture) error {
			_, err := f.engine.Forget(ctx, engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent, Session: "none"}})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, other, store := crowdedFixture(t)
				store.meanwhile = func(n int) error {
					if n <= times {
						other.ingest(user(fmt.Sprint("theirs ", n)))
						other.forget(engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent, Session: "none"}})
					}
					return nil
				}
				began := time.Now()
				if err := call(t.Context(), f); err != nil || store.n != times+1 {
					t.Errorf("after %d tries: %v, want it done after %d", store.n, err, times+1)
				}
				if took := time.Since(began); took < times*10*time.Millisecond || took > times*200*time.Millisecond {
					t.Errorf("%s of pauses in %d tries", took, times)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store.n = 0
				store.meanwhile = func(n int) error {
					if n == 5 {
						cancel()
					}
					other.ingest(user(fmt.Sprint("theirs again ", n)))
					other.forget(engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent, Session: "none"}})
					return nil
				}
				if err := call(ctx, f); !errors.Is(err, context.Canceled) || store.n > 6 {
					t.Errorf("cancelled at the fifth try, after %d: %v, want that it was cancelled", store.n, err)
				}
			})
		})
	}
}

// TestConflictThatStays: a call that conflicts with something that nobody changes ends and says so, and is tried some times before.
func TestConflictThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _, store := crowdedFixture(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		store.meanwhile = func(int) error { return fmt.Errorf("the store: %w", core.ErrConflict) }
		for name, call := range map[string]func() error{
			"ingest": func() error {
				_, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("mine")})
				return err
			},
			"assemble": func() error {
				_, err := f.engine.Assemble(ctx, core.AssembleRequest{Session: f.id, Budget: 1000})
				return err
			},
			"a receipt": func() error {
				_, err := f.engine.Forget(ctx, engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent, Session: "none"}})
				return err
			},
		} {
			store.n = 0
			if err := call(); !errors.Is(err, core.ErrConflict) || store.n < 5 || store.n > 30 {
				t.Errorf("%s: after %d tries %v, want ErrConflict after some", name, store.n, err)
			}
		}
	})
}

// TestReceiptsStandInTheirOrder: receipts are listed as they were given, whoever gave them.
func TestReceiptsStandInTheirOrder(t *testing.T) {
	f, other, _ := crowdedFixture(t)
	var want []string
	for n := range 6 {
		want = append(want, []*fixture{f, other}[n%2].forget(engine.ForgetRequest{Scope: f.id.Scope(), Reason: fmt.Sprint(n)}).ID)
	}
	got, err := f.engine.Receipts(t.Context(), f.id.Agent)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d receipts, %v", len(got), err)
	}
	for n, r := range got {
		if r.ID != want[n] || r.Request.Reason != fmt.Sprint(n) {
			t.Errorf("receipt %d is %q for %q", n, r.ID, r.Request.Reason)
		}
	}
}

// TestReadWhileOthersPublish: a call that reads a session, and takes up what was stored without a view, reads it again when others publish meanwhile.
func TestReadWhileOthersPublish(t *testing.T) {
	for name, call := range map[string]func(f *fixture) error{
		"a spawn": func(f *fixture) error {
			child := core.SessionID{Agent: f.id.Agent, Session: "child"}
			_, err := f.engine.PrepareSubagentSpawn(f.t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork})
			return err
		},
		"maintenance": func(f *fixture) error {
			_, err := f.engine.Maintain(f.t.Context(), core.MaintainRequest{Session: f.id, Budget: 1000})
			return err
		},
		"a refresh": func(f *fixture) error { return f.engine.Refresh(f.t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			f, other, store := crowdedFixture(t)
			m := user("stored without a view")
			if _, err := f.store.Append(t.Context(), []core.Entry{{
				ID: "late", Agent: f.id.Agent, Session: f.id.Session, Seq: 2, Role: m.Role, Type: core.TypeMessage, Key: "late", Fingerprint: "late", Message: m, Tokens: 2,
			}}); err != nil {
				t.Fatal(err)
			}
			store.meanwhile = func(n int) error {
				if n <= 3 {
					other.ingest(user(fmt.Sprint("theirs ", n)))
				}
				return nil
			}
			if err := call(f); err != nil || store.n == 0 {
				t.Errorf("after %d tries: %v", store.n, err)
			}
		})
	}
}
