package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// longStores are right about short sessions.
func longStores() []broken {
	const class, short = "store: long sessions", 64
	of := func(name, claim string, change func(*brokenStore)) broken {
		return brokenStoreOf(class, name, change, conformance.WithClaims(claim))
	}
	// recent reports whether an entry that is known by its key, its id or its position is among the newest of its session.
	recent := func(ctx context.Context, s *brokenStore, e core.Entry) bool {
		p, _ := s.Store.Scan(context.WithoutCancel(ctx), core.ScanQuery{Scope: e.SessionID().Scope(), Limit: short, Reverse: true})
		return slices.ContainsFunc(p.Entries, func(o core.Entry) bool { return o.ID == e.ID || o.Key == e.Key || o.Seq == e.Seq })
	}
	return []broken{
		of("what is taken is known of the newest alone", "odd.long", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				if errors.Is(err, core.ErrConflict) && len(e) == 1 && !recent(ctx, s, e[0]) {
					return core.AppendResult{IDs: []string{e[0].ID}}, nil
				}
				return res, err
			}
		}),
		of("keys are known of the newest alone", "odd.long", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				if res.Duplicates == 1 && len(e) == 1 && !recent(ctx, s, e[0]) {
					res = core.AppendResult{IDs: []string{e[0].ID}}
				}
				return res, err
			}
		}),
		of("a key that an old entry has may be given to another", "odd.long", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				err := s.Store.Update(ctx, scope, id, c)
				if errors.Is(err, core.ErrConflict) && !recent(ctx, s, core.Entry{Agent: scope.Agent, Session: scope.Session, Key: c.Key, Seq: -1}) {
					err = nil
				}
				return err
			}
		}),
		of("ends where as many entries end as there are", "tail.long", func(s *brokenStore) {
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				if p, _ := s.Store.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage}); err == nil && len(p.Entries) > short {
					t.Next = int64(len(p.Entries))
				}
				return t, err
			}
		}),
		of("ends where the last one came", "tail.long", func(s *brokenStore) {
			var last int64
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, e)
				if len(e) > 0 {
					last = e[len(e)-1].Seq
				}
				return res, err
			}
			s.tail = func(ctx context.Context, id core.SessionID) (core.Tail, error) {
				t, err := s.Store.Tail(ctx, id)
				if t.Next > short {
					t.Next = last + 1
				}
				return t, err
			}
		}),
	}
}

// manyAsked are wrong about long lists of ids.
func manyAsked() []broken {
	var out []broken
	for _, n := range []int{8, 500} {
		out = append(out, brokenStoreOf("store: get", fmt.Sprint("of more than ", n, " ids each comes once"), func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				if seen := map[string]bool{}; len(ids) > n {
					got = slices.DeleteFunc(got, func(e core.Entry) bool {
						twice := seen[e.ID]
						seen[e.ID] = true
						return twice
					})
				}
				return got, err
			}
		}, conformance.WithClaims("get.order", "odd.batch")),
			brokenStoreOf("store: get", fmt.Sprint("of more than ", n, " ids one may be missing"), func(s *brokenStore) {
				s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
					got, err := s.Store.Get(ctx, scope, ids)
					if len(ids) > n && errors.Is(err, core.ErrNotFound) {
						return s.Store.Get(ctx, scope, ids[:1])
					}
					return got, err
				}
			}, conformance.WithClaims("get.missing", "odd.batch")))
	}
	return append(out, brokenStoreOf("store: delete", "of more than 500 ids one that is named twice counts twice", func(s *brokenStore) {
		s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
			n, err := s.Store.Delete(ctx, scope, ids)
			if once := slices.Compact(slices.Sorted(slices.Values(ids))); len(ids) > 500 && err == nil {
				n += len(ids) - len(once)
			}
			return n, err
		}
	}, conformance.WithClaims("odd.batch")))
}

// nothingAsked are wrong where there is nothing to do.
func nothingAsked() []broken {
	const class = "store: nothing to do"
	return []broken{
		brokenStoreOf(class, "no ids are found, whatever the store is", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				if len(ids) == 0 {
					return nil, nil
				}
				return s.Store.Get(ctx, scope, ids)
			}
		}, conformance.WithClaims("close.closed")),
		brokenStoreOf(class, "no entries are stored, whatever the context", func(s *brokenStore) {
			s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
				if len(e) == 0 {
					ctx = context.WithoutCancel(ctx)
				}
				return s.Store.Append(ctx, e)
			}
		}, conformance.WithClaims("cancel.store")),
		brokenStoreOf(class, "no ids are deleted, whatever the store is", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				if len(ids) == 0 {
					return 0, ctx.Err()
				}
				return s.Store.Delete(ctx, scope, ids)
			}
		}, conformance.WithClaims("close.closed")),
	}
}
