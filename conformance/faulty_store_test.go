package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// brokenStore is the memory store with methods replaced.
type brokenStore struct {
	*memory.Store
	append     func(context.Context, []core.Entry) (core.AppendResult, error)
	get        func(context.Context, core.Scope, []string) ([]core.Entry, error)
	scan       func(context.Context, core.ScanQuery) (core.Page, error)
	update     func(context.Context, core.Scope, string, core.Change) error
	deleteFunc func(context.Context, core.Scope, []string) (int, error)
	close      func() error
	load       func(context.Context, core.SessionID) (core.View, error)
	swap       func(context.Context, core.View) error
	deleteView func(context.Context, core.SessionID) error
	listViews  func(context.Context, core.ViewQuery) ([]core.SessionID, error)
	tail       func(context.Context, core.SessionID) (core.Tail, error)
}

func (s *brokenStore) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if s.tail != nil {
		return s.tail(ctx, id)
	}
	return s.Store.Tail(ctx, id)
}

func (s *brokenStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if s.append != nil {
		return s.append(ctx, entries)
	}
	return s.Store.Append(ctx, entries)
}

func (s *brokenStore) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if s.get != nil {
		return s.get(ctx, scope, ids)
	}
	return s.Store.Get(ctx, scope, ids)
}

func (s *brokenStore) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if s.scan != nil {
		return s.scan(ctx, q)
	}
	return s.Store.Scan(ctx, q)
}

func (s *brokenStore) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if s.update != nil {
		return s.update(ctx, scope, id, c)
	}
	return s.Store.Update(ctx, scope, id, c)
}

func (s *brokenStore) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if s.listViews != nil {
		return s.listViews(ctx, q)
	}
	return s.Store.ListViews(ctx, q)
}

func (s *brokenStore) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if s.deleteFunc != nil {
		return s.deleteFunc(ctx, scope, ids)
	}
	return s.Store.Delete(ctx, scope, ids)
}

func (s *brokenStore) Close() error {
	if s.close != nil {
		return s.close()
	}
	return s.Store.Close()
}

func (s *brokenStore) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if s.load != nil {
		return s.load(ctx, id)
	}
	return s.Store.LoadView(ctx, id)
}

func (s *brokenStore) SwapView(ctx context.Context, v core.View) error {
	if s.swap != nil {
		return s.swap(ctx, v)
	}
	return s.Store.SwapView(ctx, v)
}

func (s *brokenStore) DeleteView(ctx context.Context, id core.SessionID) error {
	if s.deleteView != nil {
		return s.deleteView(ctx, id)
	}
	return s.Store.DeleteView(ctx, id)
}

// storeFault makes a fault of a change to the memory store. What engines and clients do together rests on every method: those checks may find it too.
func storeFault(name string, change func(s *brokenStore), caught []string, kin ...string) fault {
	kin = append(kin, "shared.*", "position.*", "tail.*", "odd.*", "moving.*", "type.*", "race.*", "reopen.*", "scan.same", "delete.again", "update.alone", "update.taken", "copy.owned")
	return fault{name: name, caught: caught, kin: kin, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineStore(t, func(testing.TB) core.Store {
			s := &brokenStore{Store: memory.New()}
			change(s)
			return s
		}, append(few(15), telling(caught, kin), conformance.WithReopen(func(_ testing.TB, old core.Store) core.Store { return old }))...)
	}}
}

// anySession finds the session of an entry whatever the scope.
func anySession(ctx context.Context, s *memory.Store, id string) core.Scope {
	for _, agent := range []string{"agent-a", "agent-b"} {
		if got, err := s.Get(ctx, core.Scope{Agent: agent}, []string{id}); err == nil {
			return got[0].SessionID().Scope()
		}
	}
	return core.Scope{Agent: "agent-a"}
}

func faultyStores() []fault {
	return slices.Concat(faultyAppends(), faultyReads(), faultyChanges(), faultyViews(), faultyTypes(), faultyShared(), faultyWhole())
}

func faultyAppends() []fault {
	return []fault{
		storeFault("ids in the wrong order", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				slices.Reverse(res.IDs)
				return res, err
			}
		}, []string{"append.ids"}, "append.idempotent"),
		storeFault("keys not looked at", func(s *brokenStore) {
			var mu sync.Mutex
			n := 0
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				mu.Lock()
				defer mu.Unlock()
				e = slices.Clone(e)
				for i := range e {
					if _, err := s.Store.Get(ctx, e[i].SessionID().Scope(), []string{e[i].ID}); err != nil {
						n++
						e[i].Key += strings.Repeat("x", n)
					}
				}
				return s.Store.Append(ctx, e)
			}
		}, []string{"append.idempotent"}, "append.race", "append.conflict", "lost.bytes", "append.atomic", "lost.reopen",
			"update.*", "delete.*", "copy.owned", "cancel.store"),
		storeFault("conflicts overwritten", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				if errors.Is(err, core.ErrConflict) && len(e) == 1 {
					return core.AppendResult{IDs: []string{e[0].ID}}, nil
				}
				return res, err
			}
		}, []string{"append.conflict"}),
		storeFault("batches stored one by one", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				if len(e) == 0 {
					return s.Store.Append(ctx, e)
				}
				var all core.AppendResult
				for _, one := range e {
					res, err := s.Store.Append(ctx, []core.Entry{one})
					if err != nil {
						return core.AppendResult{}, err
					}
					all.IDs, all.Duplicates = append(all.IDs, res.IDs...), all.Duplicates+res.Duplicates
				}
				return all, nil
			}
		}, []string{"append.atomic"}),
		storeFault("concurrent writers lose", func(s *brokenStore) {
			var busy sync.Mutex
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				if len(e) > 0 && strings.Contains(e[0].ID, "-w3") || !busy.TryLock() {
					return core.AppendResult{}, errors.New("broken: busy")
				}
				defer busy.Unlock()
				return s.Store.Append(ctx, e)
			}
		}, []string{"append.race"}),
		storeFault("text instead of bytes", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				e = slices.Clone(e)
				for i := range e {
					if raw := e[i].Message.Raw; raw != nil {
						e[i].Message.Raw = []byte(strings.ToValidUTF8(string(raw), "?"))
					}
				}
				return s.Store.Append(ctx, e)
			}
		}, []string{"lost.bytes"}, "lost.reopen", "update.*", "delete.*", "copy.owned", "cancel.store"),
	}
}

func faultyReads() []fault {
	return []fault{
		storeFault("scan in order of ids", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, q)
				slices.SortFunc(p.Entries, func(a, b core.Entry) int { return strings.Compare(b.ID, a.ID) })
				return p, err
			}
		}, []string{"scan.order"}, "scan.reverse"),
		storeFault("reverse ignored", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				q.Reverse = false
				return s.Store.Scan(ctx, q)
			}
		}, []string{"scan.reverse"}),
		storeFault("cursor skips", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, q)
				if q.Cursor != "" && len(p.Entries) > 1 {
					p.Entries = p.Entries[1:]
				}
				return p, err
			}
		}, []string{"scan.once"}, "scan.range", "scan.reverse"),
		storeFault("one cursor at a time", func(s *brokenStore) {
			var newest atomic.Int64
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				n, cursor, _ := strings.Cut(string(q.Cursor), "|")
				if q.Cursor == "" {
					n = fmt.Sprint(newest.Add(1))
				} else if n != fmt.Sprint(newest.Load()) {
					return core.Page{}, nil
				}
				q.Cursor = core.Cursor(cursor)
				p, err := s.Store.Scan(ctx, q)
				if p.Next != "" {
					p.Next = core.Cursor(n + "|" + string(p.Next))
				}
				return p, err
			}
		}, []string{"scan.once"}),
		storeFault("range ignored", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				q.FromSeq, q.ToSeq = 0, 0
				return s.Store.Scan(ctx, q)
			}
		}, []string{"scan.range"}),
		storeFault("scan of the whole agent", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				q.Scope.Session, q.FromSeq, q.ToSeq = "", 0, 0
				return s.Store.Scan(ctx, q)
			}
		}, []string{"isolation.scan"}, "scan.*", "append.*", "delete.gone"),
		storeFault("get in stored order", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				slices.SortFunc(got, func(a, b core.Entry) int { return strings.Compare(a.ID, b.ID) })
				return got, err
			}
		}, []string{"get.order"}),
		storeFault("get leaves out what is missing", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				if len(ids) == 0 {
					return s.Store.Get(ctx, scope, ids)
				}
				var out []core.Entry
				for _, id := range ids {
					got, err := s.Store.Get(ctx, scope, []string{id})
					if err != nil && (len(ids) == 1 || !errors.Is(err, core.ErrNotFound)) {
						return nil, err
					}
					out = append(out, got...)
				}
				return out, nil
			}
		}, []string{"get.missing"}),
		storeFault("get ignores the scope", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				if len(ids) == 1 && ctx.Err() == nil {
					scope = anySession(ctx, s.Store, ids[0])
				}
				return s.Store.Get(ctx, scope, ids)
			}
		}, []string{"isolation.get"}),
		storeFault("metadata shared with the caller", func(s *brokenStore) {
			var mu sync.Mutex
			metas := map[string]map[string]string{}
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				mu.Lock()
				defer mu.Unlock()
				for i := range got {
					if m, ok := metas[got[i].ID]; ok && len(m) == len(got[i].Meta) && m["new"] == got[i].Meta["new"] {
						got[i].Meta = m
					}
					metas[got[i].ID] = got[i].Meta
				}
				return got, err
			}
		}, []string{"copy.owned"}),
	}
}

func faultyChanges() []fault {
	return []fault{
		storeFault("update lost", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, _ core.Change) error {
				return s.Store.Update(ctx, scope, id, core.Change{})
			}
		}, []string{"update.changes"}, "update.erase"),
		storeFault("erased entries keep their key", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				c.Key = ""
				return s.Store.Update(ctx, scope, id, c)
			}
		}, []string{"update.erase"}),
		storeFault("update ignores the scope", func(s *brokenStore) {
			s.update = func(ctx context.Context, _ core.Scope, id string, c core.Change) error {
				return s.Store.Update(ctx, anySession(ctx, s.Store, id), id, c)
			}
		}, []string{"update.missing"}),
		storeFault("delete leaves the entry", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				if err := ctx.Err(); err != nil {
					return 0, err
				}
				got, _ := s.Store.Get(ctx, scope, ids)
				return len(got), nil
			}
		}, []string{"delete.gone"}, "close.closed"),
		storeFault("delete ignores the scope", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				if ctx.Err() != nil || len(ids) == 0 {
					return s.Store.Delete(ctx, scope, ids)
				}
				return s.Store.Delete(ctx, anySession(ctx, s.Store, ids[0]), ids)
			}
		}, []string{"delete.scope"}),
		storeFault("cancellation ignored", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				return s.Store.Append(context.WithoutCancel(ctx), e)
			}
		}, []string{"cancel.store"}),
		storeFault("open after close", func(s *brokenStore) {
			s.close = func() error { return nil }
		}, []string{"close.closed"}),
	}
}

func faultyViews() []fault {
	return []fault{
		storeFault("grants forgotten", func(s *brokenStore) {
			s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
				v, err := s.Store.LoadView(ctx, id)
				v.Grants = nil
				return v, err
			}
		}, []string{"view.roundtrip"}, "view.*", "cancel.store"),
		storeFault("empty views instead of none", func(s *brokenStore) {
			s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
				v, err := s.Store.LoadView(ctx, id)
				if errors.Is(err, core.ErrNotFound) {
					return core.View{Session: id}, nil
				}
				return v, err
			}
		}, []string{"view.missing"}, "view.delete"),
		storeFault("versions not compared", func(s *brokenStore) {
			s.swap = func(ctx context.Context, v core.View) error {
				_ = s.Store.DeleteView(ctx, v.Session)
				for n := uint64(1); n <= v.Version; n++ {
					w := v
					w.Version = n
					if err := s.Store.SwapView(ctx, w); err != nil {
						return err
					}
				}
				return nil
			}
		}, []string{"view.conflict"}, "view.race"),
		storeFault("two winners of a race", func(s *brokenStore) {
			s.swap = func(ctx context.Context, v core.View) error {
				err := s.Store.SwapView(ctx, v)
				if old, loadErr := s.Store.LoadView(ctx, v.Session); loadErr == nil && old.Version == v.Version && old.Pinned == v.Pinned {
					return nil
				}
				return err
			}
		}, []string{"view.race"}),
		storeFault("list of views without a page", func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				q.After = core.SessionID{}
				return s.Store.ListViews(ctx, q)
			}
		}, []string{"view.list"}, "view.many"),
		storeFault("views stay", func(s *brokenStore) {
			s.deleteView = func(context.Context, core.SessionID) error { return nil }
		}, []string{"view.delete"}, "cancel.store", "close.closed"),
		{name: "forgets when reopened", caught: []string{"lost.reopen", "view.reopen"}, kin: []string{"shared.*", "position.*", "reopen.*", "type.*", "odd.*"}, find: func(t *testing.T) []conformance.Finding {
			t.Helper()
			return conformance.ExamineStore(t, openMemory, append(few(10), telling([]string{"lost.reopen", "view.reopen"}, []string{"shared.*", "position.*", "reopen.*", "type.*", "odd.*"}),
				conformance.WithReopen(func(testing.TB, core.Store) core.Store { return memory.New() }))...)
		}},
	}
}
