package conformance_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// viewless is a store without views whose tail counts changes and deletions.
type viewless struct {
	core.Store
	memory *memory.Store
	// counts says which changes count; nil is all.
	counts func(op string, c core.Change) bool
	mu     sync.Mutex
	n      map[core.SessionID]uint64
}

func newViewless(counts func(op string, c core.Change) bool) *viewless {
	m := memory.New()
	return &viewless{Store: m, memory: m, counts: counts, n: map[core.SessionID]uint64{}}
}

func (s *viewless) changed(ctx context.Context, scope core.Scope, ids []string, op string, c core.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		got, err := s.memory.Get(context.WithoutCancel(ctx), scope, []string{id})
		if err == nil && (s.counts == nil || s.counts(op, c)) {
			s.n[got[0].SessionID()]++
		}
	}
}

func (s *viewless) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	s.changed(ctx, scope, []string{id}, "update", c)
	return s.Store.Update(ctx, scope, id, c)
}

func (s *viewless) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	s.changed(ctx, scope, ids, "delete", core.Change{})
	return s.Store.Delete(ctx, scope, ids)
}

func (s *viewless) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	t, err := s.memory.Tail(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.View = s.n[id]
	return t, err
}

// TestViewless: a store without views whose tail counts changes is right, whether it counts a session's or an agent's.
func TestViewless(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, func(testing.TB) core.Store { return newViewless(nil) }, conformance.WithCases(5))
}

// TestViewsByClone: a store that copies views with View.Clone is right.
func TestViewsByClone(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, func(testing.TB) core.Store { return keepsViews((*core.View).Clone) }, conformance.WithClaims("copy", "view", "tail"))
}

// keepsViews is a store that holds the last views itself, as clone copies them.
func keepsViews(clone func(*core.View) core.View) *brokenStore {
	s := &brokenStore{Store: memory.New()}
	var mu sync.Mutex
	kept := map[core.SessionID]core.View{}
	s.swap = func(ctx context.Context, v core.View) error {
		mu.Lock()
		defer mu.Unlock()
		err := s.Store.SwapView(ctx, v)
		if err == nil {
			kept[v.Session] = clone(&v)
		}
		return err
	}
	s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
		mu.Lock()
		defer mu.Unlock()
		v, err := s.Store.LoadView(ctx, id)
		if k, ok := kept[id]; err == nil && ok && k.Version == v.Version {
			return clone(&k), nil
		}
		return v, err
	}
	return s
}

func viewlessStores() []broken {
	of := func(name string, counts func(op string, c core.Change) bool) broken {
		return broken{class: "store: tail without views", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineStore(t, func(testing.TB) core.Store { return newViewless(counts) }, opts...)
			})
		}}
	}
	return []broken{
		of("counts nothing", func(string, core.Change) bool { return false }),
		of("counts updates alone", func(op string, _ core.Change) bool { return op == "update" }),
		of("counts deletions alone", func(op string, _ core.Change) bool { return op == "delete" }),
		of("changed metadata are no change", func(op string, c core.Change) bool {
			return op == "delete" || c.Message != nil || c.Key != "" || c.Type != ""
		}),
		of("changed messages are no change", func(_ string, c core.Change) bool { return c.Message == nil || c.Type != "" }),
		of("erasures are no change", func(_ string, c core.Change) bool { return c.Type != core.TypeErased }),
	}
}

// afterGone are stores that lose their place in the list of views.
func afterGone() []broken {
	of := func(name string, f func(s *brokenStore, ctx context.Context, q core.ViewQuery) ([]core.SessionID, error)) broken {
		return brokenStoreOf("store: views", name, func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				all, err := s.Store.ListViews(ctx, core.ViewQuery{Agent: q.Agent, Limit: core.MaxPage})
				if err != nil || q.After == (core.SessionID{}) || slices.Contains(all, q.After) {
					return s.Store.ListViews(ctx, q)
				}
				return f(s, ctx, q)
			}
		})
	}
	return []broken{
		of("the list ends behind one that is gone", func(*brokenStore, context.Context, core.ViewQuery) ([]core.SessionID, error) { return nil, nil }),
		of("the list begins anew behind one that is gone", func(s *brokenStore, ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
			q.After = core.SessionID{}
			return s.Store.ListViews(ctx, q)
		}),
		of("after one that is gone is not found", func(*brokenStore, context.Context, core.ViewQuery) ([]core.SessionID, error) {
			return nil, core.ErrNotFound
		}),
	}
}

// tailStores tell where a session ends as long as nothing out of the ordinary happens.
func tailStores() []broken {
	of := func(name string, f func(s *brokenStore, id core.SessionID, t core.Tail) core.Tail) broken {
		return brokenStoreOf("store: tail", name, func(s *brokenStore) {
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				if err != nil {
					return t, err
				}
				return f(s, id, t), nil
			}
		})
	}
	var mu sync.Mutex
	most := map[*brokenStore]map[core.SessionID]int64{}
	highest := func(s *brokenStore, id core.SessionID, n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		if most[s] == nil {
			most[s] = map[core.SessionID]int64{}
		}
		most[s][id] = max(most[s][id], n)
		return most[s][id]
	}
	return []broken{
		of("never goes back", func(s *brokenStore, id core.SessionID, t core.Tail) core.Tail {
			t.Next = highest(s, id, t.Next)
			return t
		}),
		of("stays when the last entry goes", func(s *brokenStore, id core.SessionID, t core.Tail) core.Tail {
			if n := highest(s, id, t.Next); t.Next == 0 {
				t.Next = n
			}
			return t
		}),
		of("reserved sessions have none", func(_ *brokenStore, id core.SessionID, t core.Tail) core.Tail {
			if core.Reserved(id.Session) {
				return core.Tail{}
			}
			return t
		}),
		of("a view alone is nothing", func(_ *brokenStore, _ core.SessionID, t core.Tail) core.Tail {
			if t.Next == 0 {
				return core.Tail{}
			}
			return t
		}),
	}
}
