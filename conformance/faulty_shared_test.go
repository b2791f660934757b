package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// beside stores entries whose positions are taken a million further on, as if they had a place.
func beside(ctx context.Context, s *memory.Store, entries []core.Entry) (core.AppendResult, error) {
	for range 100 {
		res, err := s.Append(ctx, entries)
		if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), "position") {
			return res, err
		}
		entries = slices.Clone(entries)
		for i := range entries {
			if !stored(ctx, s, &entries[i]) {
				entries[i].Seq += 1_000_000
			}
		}
	}
	return core.AppendResult{}, errors.New("broken: no place")
}

func stored(ctx context.Context, s *memory.Store, e *core.Entry) bool {
	_, err := s.Get(ctx, e.SessionID().Scope(), []string{e.ID})
	return err == nil
}

// at returns the position of the entry with this key, -1 when there is none.
func at(ctx context.Context, s *memory.Store, id core.SessionID, key string) int64 {
	for e, err := range core.All(ctx, s, id.Scope(), false) {
		if err == nil && e.Key == key {
			return e.Seq
		}
	}
	return -1
}

// openingFault changes the second of two openings of a store in memory; closing one of them closes nothing else.
func openingFault(name string, change func(first *memory.Store, s *brokenStore), caught ...string) fault {
	return fault{name: name, caught: caught, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		opening := func(m *memory.Store) *brokenStore {
			return &brokenStore{Store: m, close: func() error { return nil }}
		}
		return conformance.ExamineStore(t, func(testing.TB) core.Store { return opening(memory.New()) },
			append(few(2), conformance.WithClaims("shared"), conformance.WithAnother(func(_ testing.TB, first core.Store) core.Store {
				m := first.(*brokenStore).Store //nolint:forcetypeassert // all are
				s := opening(m)
				change(m, s)
				return s
			}))...)
	}}
}

func faultyShared() []fault {
	return []fault{
		storeFault("positions not looked at", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) { return beside(ctx, s.Store, e) }
		}, []string{"position.once"}, "position.*"),
		{name: "positions of other handles forgotten", caught: []string{"position.reopen"}, kin: []string{"shared.*"}, find: func(t *testing.T) []conformance.Finding {
			t.Helper()
			return conformance.ExamineStore(t, openMemory, append(few(10), telling([]string{"position.reopen"}, []string{"shared.*"}), conformance.WithReopen(func(_ testing.TB, old core.Store) core.Store {
				m, ok := old.(*memory.Store)
				if !ok {
					return old
				}
				s := &brokenStore{Store: m}
				s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) { return beside(ctx, m, e) }
				return s
			}))...)
		}},
		openingFault("what was read once is read the same for ever", func(m *memory.Store, s *brokenStore) {
			var read sync.Map
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := m.Get(ctx, scope, ids)
				for i := range got {
					e, _ := read.LoadOrStore(got[i].ID, got[i])
					got[i] = e.(core.Entry) //nolint:forcetypeassert // only such are put there
				}
				return got, err
			}
		}, "shared.fresh"),
		openingFault("what was read once is there for ever", func(m *memory.Store, s *brokenStore) {
			var read sync.Map
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := m.Get(ctx, scope, ids)
				if err != nil && len(ids) == 1 {
					if e, ok := read.Load(ids[0]); ok {
						return []core.Entry{e.(core.Entry)}, nil //nolint:forcetypeassert // only such are put there
					}
				}
				for _, e := range got {
					read.Store(e.ID, e)
				}
				return got, err
			}
		}, "shared.fresh"),
		openingFault("closing one closes all", func(m *memory.Store, s *brokenStore) { s.close = m.Close }, "shared.close"),
		storeFault("positions of concurrent calls not looked at", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				if len(e) > 0 && strings.Contains(e[0].ID, "claim-0-") { // those of a race for position 0
					return beside(ctx, s.Store, e)
				}
				return s.Store.Append(ctx, e)
			}
		}, []string{"position.race"}),
		storeFault("a tail that lags", func(s *brokenStore) {
			var last atomic.Pointer[core.Tail]
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				now, err := s.Store.Tail(ctx, id)
				if before := last.Swap(&now); before != nil {
					return *before, err
				}
				return now, err
			}
		}, []string{"tail.follows"}),
		storeFault("reads that lag while others write", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				page, err := s.Store.Scan(ctx, q)
				if n := len(page.Entries); n > 2 && strings.HasPrefix(page.Entries[n-1].ID, "E-0-") && page.Entries[0].Session == "linear" {
					page.Entries = page.Entries[:n-1] // what the first client said last
				}
				return page, err
			}
		}, []string{"shared.linear"}),
		storeFault("keys known at their position only", func(s *brokenStore) {
			var swaps atomic.Int32
			s.swap = func(ctx context.Context, v core.View) error {
				if v.Session.Session == "shared" && swaps.Add(1)%7 == 0 {
					return core.ErrConflict // which is sound: somebody else may have been there
				}
				return s.Store.SwapView(ctx, v)
			}
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				e = slices.Clone(e)
				for i := range e {
					if e[i].Session != "shared" {
						continue
					}
					if seq := at(ctx, s.Store, e[i].SessionID(), e[i].Key); seq >= 0 && seq != e[i].Seq {
						e[i].ID, e[i].Key = e[i].ID+"x", e[i].Key+"x"
					}
				}
				return s.Store.Append(ctx, e)
			}
		}, []string{"shared.engines"}),
	}
}
