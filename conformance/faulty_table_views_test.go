package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// tableViews are stores that keep views wrongly.
func tableViews() []broken {
	class := "store: views"
	var out []broken
	for _, l := range leavesOfView() {
		out = append(out, brokenStoreOf("store: a field of a view lost", l.path, func(s *brokenStore) {
			s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
				v, err := s.Store.LoadView(ctx, id)
				clearView(l, &v)
				return v, err
			}
		}))
	}
	out = append(out, brokenStoreOf(class, "through JSON that mends texts", func(s *brokenStore) {
		s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
			type fields core.View // encoded field by field, not by View.MarshalJSON
			v, err := s.Store.LoadView(ctx, id)
			text, _ := json.Marshal(fields(v))
			_ = json.Unmarshal(text, (*fields)(&v))
			return v, err
		}
	}))
	list := func(name string, before func(*core.ViewQuery), after func(core.ViewQuery, []core.SessionID) []core.SessionID) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				asked := q
				if before != nil {
					before(&q)
				}
				ids, err := s.Store.ListViews(ctx, q)
				if after != nil {
					ids = after(asked, ids)
				}
				return ids, err
			}
		})
	}
	swap := func(name string, f func(s *brokenStore, ctx context.Context, v core.View) error) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) { s.swap = func(ctx context.Context, v core.View) error { return f(s, ctx, v) } })
	}
	return append(out,
		swap("scores of recalled items in 32 bits", func(s *brokenStore, ctx context.Context, v core.View) error {
			v = v.Clone()
			for i := range v.Kept {
				v.Kept[i].Items = slices.Clone(v.Kept[i].Items)
				for j := range v.Kept[i].Items {
					v.Kept[i].Items[j].Score = float64(float32(v.Kept[i].Items[j].Score))
				}
			}
			return s.Store.SwapView(ctx, v)
		}),
		swap("whole numbers through fractions", func(s *brokenStore, ctx context.Context, v core.View) error {
			v.Next, v.Turns = int64(float64(v.Next)), int64(float64(v.Turns))
			return s.Store.SwapView(ctx, v)
		}),
		list("listed in order of sessions", nil, func(_ core.ViewQuery, ids []core.SessionID) []core.SessionID {
			slices.SortFunc(ids, func(a, b core.SessionID) int {
				return core.SessionID{Agent: a.Session, Session: a.Agent}.Compare(core.SessionID{Agent: b.Session, Session: b.Agent})
			})
			return ids
		}),
		list("listed backwards", nil, func(_ core.ViewQuery, ids []core.SessionID) []core.SessionID { slices.Reverse(ids); return ids }),
		list("listed for all agents", func(q *core.ViewQuery) { q.Agent = "" }, nil),
		list("listed without the last", nil, func(_ core.ViewQuery, ids []core.SessionID) []core.SessionID { return ids[:max(len(ids)-1, 0)] }),
		list("listed without a limit", func(q *core.ViewQuery) { q.Limit = core.MaxPage }, nil),
		list("after by the session alone", nil, func(q core.ViewQuery, ids []core.SessionID) []core.SessionID {
			return slices.DeleteFunc(ids, func(id core.SessionID) bool { return q.After.Agent != "" && id.Session <= q.After.Session })
		}),
		list("after is of the agent asked for", func(q *core.ViewQuery) {
			if q.Agent != "" && q.After != (core.SessionID{}) {
				q.After.Agent = q.Agent
			}
		}, nil),
		list("after included", func(q *core.ViewQuery) { q.After.Session = q.After.Session[:max(len(q.After.Session)-1, 0)] }, nil),
		swap("conflict is invalid", func(s *brokenStore, ctx context.Context, v core.View) error {
			if err := s.Store.SwapView(ctx, v); errors.Is(err, core.ErrConflict) {
				return core.ErrInvalid
			} else {
				return err
			}
		}),
		swap("any newer version", func(s *brokenStore, ctx context.Context, v core.View) error {
			old, _ := s.Store.LoadView(ctx, v.Session)
			for n := old.Version + 1; n < v.Version; n++ {
				old.Session, old.Version = v.Session, n
				if err := s.Store.SwapView(ctx, old); err != nil {
					return err
				}
			}
			return s.Store.SwapView(ctx, v)
		}),
		swap("stored although it conflicts", func(s *brokenStore, ctx context.Context, v core.View) error {
			err := s.Store.SwapView(ctx, v)
			if errors.Is(err, core.ErrConflict) {
				if old, loadErr := s.Store.LoadView(ctx, v.Session); loadErr == nil {
					_ = s.Store.DeleteView(ctx, v.Session)
					for n := uint64(1); n <= old.Version; n++ {
						w := v
						w.Version = n
						_ = s.Store.SwapView(ctx, w)
					}
				}
			}
			return err
		}),
		swap("a deleted one goes on counting", func(s *brokenStore, ctx context.Context, v core.View) error {
			return s.Store.SwapView(ctx, v)
		}).replaced(func(s *brokenStore) {
			last := map[core.SessionID]uint64{}
			var mu sync.Mutex
			s.deleteView = func(ctx context.Context, id core.SessionID) error {
				mu.Lock()
				defer mu.Unlock()
				if v, err := s.Store.LoadView(ctx, id); err == nil {
					last[id] = v.Version
				}
				return s.Store.DeleteView(ctx, id)
			}
			s.swap = func(ctx context.Context, v core.View) error {
				mu.Lock()
				defer mu.Unlock()
				if last[v.Session] > 0 && v.Version <= last[v.Session] {
					return core.ErrConflict
				}
				return s.Store.SwapView(ctx, v)
			}
		}),
		brokenStoreOf(class, "deletes those of the agent", func(s *brokenStore) {
			s.deleteView = func(ctx context.Context, id core.SessionID) error {
				ids, _ := s.Store.ListViews(ctx, core.ViewQuery{Agent: id.Agent, Limit: core.MaxPage})
				for _, id := range ids {
					_ = s.Store.DeleteView(ctx, id)
				}
				return s.Store.DeleteView(ctx, id)
			}
		}),
		brokenStoreOf(class, "deleting none is an error", func(s *brokenStore) {
			s.deleteView = func(ctx context.Context, id core.SessionID) error {
				if _, err := s.Store.LoadView(ctx, id); err != nil {
					return err
				}
				return s.Store.DeleteView(ctx, id)
			}
		}),
		brokenStoreOf(class, "as it was when first loaded", func(s *brokenStore) {
			first := map[core.SessionID]core.View{}
			var mu sync.Mutex
			s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
				mu.Lock()
				defer mu.Unlock()
				v, err := s.Store.LoadView(ctx, id)
				if old, ok := first[id]; ok && err == nil {
					return old, nil
				}
				if err == nil {
					first[id] = v
				}
				return v, err
			}
		}),
		brokenStoreOf(class, "tail counts entries", func(s *brokenStore) {
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				p, _ := s.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage})
				t.Next = int64(len(p.Entries))
				return t, err
			}
		}),
		brokenStoreOf(class, "tail is the newest position", func(s *brokenStore) {
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				t.Next = max(t.Next-1, 0)
				return t, err
			}
		}),
		brokenStoreOf(class, "tail knows no views", func(s *brokenStore) {
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				t.View = 0
				return t, err
			}
		}),
		brokenStoreOf(class, "tail behind the last one appended", func(s *brokenStore) {
			last := map[core.SessionID]int64{}
			var mu sync.Mutex
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				mu.Lock()
				defer mu.Unlock()
				for i := range e {
					if err == nil {
						last[e[i].SessionID()] = e[i].Seq + 1
					}
				}
				return res, err
			}
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				mu.Lock()
				defer mu.Unlock()
				if n, ok := last[id]; ok {
					t.Next = n
				}
				return t, err
			}
		}),
	)
}
