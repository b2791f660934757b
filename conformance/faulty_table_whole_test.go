package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// wholeStores do by halves what is one step, or change and tell what is not theirs.
func wholeStores() []broken {
	out := slices.Concat(halfStores(), argumentStores(), tellingStores())
	for _, n := range []int{20, 24, 100, 500, 1000} {
		out = append(out, brokenStoreOf("store: by halves", fmt.Sprint("batches over ", n, " in several transactions"), chunked(n)))
	}
	return out
}

// chunked stores batches by n.
func chunked(n int) func(*brokenStore) {
	return func(s *brokenStore) {
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			if len(entries) <= n {
				return s.Store.Append(ctx, entries)
			}
			var all core.AppendResult
			for part := range slices.Chunk(entries, n) {
				res, err := s.Store.Append(ctx, part)
				if err != nil {
					return core.AppendResult{}, err
				}
				all.IDs, all.Duplicates = append(all.IDs, res.IDs...), all.Duplicates+res.Duplicates
			}
			return all, nil
		}
	}
}

// oneByOne stores what is new of a batch in an order of its own, which others may watch.
func oneByOne(order func([]core.Entry)) func(*brokenStore) {
	return func(s *brokenStore) {
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			var fresh []core.Entry
			for i := range entries {
				if e := &entries[i]; at(context.WithoutCancel(ctx), s.Store, e.SessionID(), e.Key) < 0 {
					fresh = append(fresh, *e)
				}
			}
			if len(fresh) < 10 || len(fresh) < len(entries) || len(fresh) > 50 {
				return s.Store.Append(ctx, entries)
			}
			order(fresh)
			for i := range fresh {
				if _, err := s.Store.Append(ctx, fresh[i:i+1]); err != nil {
					for j := range fresh[:i] {
						_, _ = s.Store.Delete(ctx, fresh[j].SessionID().Scope(), []string{fresh[j].ID})
					}
					return core.AppendResult{}, err
				}
				time.Sleep(100 * time.Microsecond)
			}
			return s.idsAs(entries), nil
		}
	}
}

// idsAs is the result of an append of entries that are all new.
func (*brokenStore) idsAs(entries []core.Entry) (res core.AppendResult) {
	for i := range entries {
		res.IDs = append(res.IDs, entries[i].ID)
	}
	return res
}

func halfStores() []broken {
	of := func(name string, change func(*brokenStore)) broken {
		return brokenStoreOf("store: by halves", name, change)
	}
	update := func(name string, f func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error, claims ...string) broken {
		var opts []conformance.Option
		if len(claims) > 0 {
			opts = append(opts, conformance.WithClaims(claims...)) // others find it too
		}
		return brokenStoreOf("store: by halves", name, func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				return f(s, ctx, scope, id, c)
			}
		}, opts...)
	}
	// content is the part of a change that some make first.
	content := func(c core.Change) core.Change {
		return core.Change{Message: c.Message, Tokens: c.Tokens, Fingerprint: c.Fingerprint}
	}
	return []broken{
		of("a batch shown from its end", oneByOne(slices.Reverse)),
		of("a batch shown in order of positions", oneByOne(func(e []core.Entry) {
			slices.SortFunc(e, func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
		})),
		of("a batch shown the last first", oneByOne(func(e []core.Entry) { e[0], e[len(e)-1] = e[len(e)-1], e[0] })),
		of("half of a batch of an ended context", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				if ctx.Err() != nil && len(entries) > 1 {
					_, _ = s.Store.Append(context.WithoutCancel(ctx), entries[:1])
				}
				return s.Store.Append(ctx, entries)
			}
		}),
		update("a key that another entry has is taken over", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			err := s.Store.Update(ctx, scope, id, c)
			if e := older(ctx, s, scope, id); errors.Is(err, core.ErrConflict) {
				for other, err := range core.All(ctx, s.Store, e.SessionID().Scope(), false) {
					if err == nil && other.Key == c.Key {
						_ = s.Store.Update(ctx, scope, other.ID, core.Change{Key: "was " + c.Key})
					}
				}
				return s.Store.Update(ctx, scope, id, c)
			}
			return err
		}),
		update("a key that another entry has is left out", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			err := s.Store.Update(ctx, scope, id, c)
			if errors.Is(err, core.ErrConflict) {
				c.Key = ""
				return s.Store.Update(ctx, scope, id, c)
			}
			return err
		}),
		update("a key that another entry has is invalid", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			err := s.Store.Update(ctx, scope, id, c)
			if errors.Is(err, core.ErrConflict) {
				err = core.ErrInvalid
			}
			return err
		}),
		update("a key of another session is taken", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			e := older(ctx, s, scope, id)
			for other, err := range core.All(ctx, s.Store, core.Scope{Agent: scope.Agent}, false) {
				if err == nil && c.Key != "" && other.Key == c.Key && other.Session != e.Session {
					return core.ErrConflict
				}
			}
			return s.Store.Update(ctx, scope, id, c)
		}),
		update("its own key is taken", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if e := older(ctx, s, scope, id); c.Key != "" && e.Key == c.Key {
				return core.ErrConflict
			}
			return s.Store.Update(ctx, scope, id, c)
		}),
		update("the message of a refused update", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Message != nil && c.Key != "" {
				if err := s.Store.Update(ctx, scope, id, content(c)); err != nil {
					return err
				}
			}
			return s.Store.Update(ctx, scope, id, c)
		}),
		update("the metadata of a refused update", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Meta != nil && c.Key != "" {
				if err := s.Store.Update(ctx, scope, id, core.Change{Meta: c.Meta}); err != nil {
					return err
				}
			}
			return s.Store.Update(ctx, scope, id, c)
		}),
		update("the type of a refused update", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Type != "" && c.Key != "" {
				if err := s.Store.Update(ctx, scope, id, core.Change{Type: c.Type}); err != nil {
					return err
				}
			}
			return s.Store.Update(ctx, scope, id, c)
		}),
		update("an erasure in two steps", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Message != nil && (c.Type != "" || c.Key != "") {
				if err := s.Store.Update(ctx, scope, id, content(c)); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				c.Message = nil
			}
			return s.Store.Update(ctx, scope, id, c)
		}, "race.erased"),
		update("an erasure whose metadata go last", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Message != nil && c.Meta != nil && c.Type != "" {
				meta := c.Meta
				c.Meta = nil
				if err := s.Store.Update(ctx, scope, id, c); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				c = core.Change{Meta: meta}
			}
			return s.Store.Update(ctx, scope, id, c)
		}, "race.erased"),
		update("an erasure in two quick steps", func(s *brokenStore, ctx context.Context, scope core.Scope, id string, c core.Change) error {
			if c.Message != nil && c.Type != "" {
				if err := s.Store.Update(ctx, scope, id, content(c)); err != nil {
					return err
				}
				time.Sleep(50 * time.Microsecond)
				c.Message = nil
			}
			return s.Store.Update(ctx, scope, id, c)
		}, "race.erased"),
		of("known keys at the position of another refused", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				for i := range entries {
					e := &entries[i]
					p, err := s.Store.Scan(ctx, core.ScanQuery{Scope: e.SessionID().Scope(), FromSeq: e.Seq, ToSeq: e.Seq + 1, Limit: 1})
					if err == nil && len(p.Entries) == 1 && p.Entries[0].Key != e.Key {
						return core.AppendResult{}, core.ErrConflict
					}
				}
				return s.Store.Append(ctx, entries)
			}
		}),
		brokenStoreOf("store: texts repaired", "blanks around metadata values dropped", onGet(func(e *core.Entry) {
			for k, v := range e.Meta {
				e.Meta[k] = strings.TrimSpace(v)
			}
		})),
	}
}

// argumentStores change what they were given.
func argumentStores() []broken {
	of := func(name string, change func(*brokenStore)) broken {
		return brokenStoreOf("store: arguments", name, change)
	}
	appending := func(name string, f func(entries []core.Entry, res core.AppendResult, err error)) broken {
		return of(name, func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, entries)
				f(entries, res, err)
				return res, err
			}
		})
	}
	return []broken{
		appending("ids of duplicates filled in", func(entries []core.Entry, res core.AppendResult, _ error) {
			for i, id := range res.IDs {
				entries[i].ID = id
			}
		}),
		appending("a refused batch emptied", func(entries []core.Entry, _ core.AppendResult, err error) {
			if errors.Is(err, core.ErrConflict) {
				clear(entries)
			}
		}),
		appending("duplicates dropped from a batch", func(entries []core.Entry, res core.AppendResult, _ error) {
			if res.Duplicates > 0 {
				slices.SortStableFunc(entries, func(a, b core.Entry) int { return cmp.Compare(b.ID, a.ID) })
			}
		}),
		of("Delete sorts the ids", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				slices.Sort(ids)
				return s.Store.Delete(ctx, scope, ids)
			}
		}),
		of("Delete leaves each id once", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				return s.Store.Delete(ctx, scope, slices.Compact(ids))
			}
		}),
		of("Get sorts the ids", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				slices.Sort(ids)
				return got, err
			}
		}),
		of("Update adds to the metadata", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				err := s.Store.Update(ctx, scope, id, c)
				if len(c.Meta) > 0 {
					c.Meta["updated"] = "yes"
				}
				return err
			}
		}),
	}
}

// tellingStores say in their errors what is nobody's business.
func tellingStores() []broken {
	var out []broken
	secrets := map[string]func(core.Entry) string{
		"the key":  func(e core.Entry) string { return fmt.Sprintf("%q", e.Key) },
		"the text": func(e core.Entry) string { return fmt.Sprintf("%.1000s", e.Text()) },
	}
	for what, secret := range secrets {
		of := func(name string, change func(*brokenStore)) {
			out = append(out, brokenStoreOf("store: errors", what+" in the error of "+name, change))
		}
		telling := func(err, is error, e core.Entry) error {
			if errors.Is(err, is) {
				return fmt.Errorf("broken: %s: %w", secret(e), err)
			}
			return err
		}
		of("Append", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, entries)
				for i := range entries {
					err = telling(err, core.ErrConflict, entries[i])
				}
				return res, err
			}
		})
		of("Append where another has the position", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, entries)
				for other, bad := range core.All(ctx, s.Store, core.Scope{Agent: "agent-a"}, false) {
					if bad == nil && err != nil && strings.Contains(err.Error(), "position") && slices.ContainsFunc(entries, func(e core.Entry) bool { return e.Seq == other.Seq }) {
						err = telling(err, core.ErrConflict, other)
					}
				}
				return res, err
			}
		})
		of("Get", func(s *brokenStore) {
			s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
				got, err := s.Store.Get(ctx, scope, ids)
				for _, id := range ids {
					if e := older(ctx, s, scope, id); e.ID != "" {
						err = telling(err, core.ErrNotFound, e)
					}
				}
				return got, err
			}
		})
		for name, is := range map[string]error{"Update of a missing entry": core.ErrNotFound, "Update to a key that is taken": core.ErrConflict, "Update after Close": core.ErrClosed, "a cancelled Update": context.Canceled} {
			of(name, func(s *brokenStore) {
				s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
					e := core.Entry{Key: c.Key}
					if c.Message != nil {
						e.Message = *c.Message
					}
					return telling(s.Store.Update(ctx, scope, id, c), is, e)
				}
			})
		}
	}
	return out
}

// faultyWhole are faults of which only the checks made for them tell.
func faultyWhole() []fault {
	named := func(all []broken, name, caught string) fault {
		i := slices.IndexFunc(all, func(b broken) bool { return b.name == name })
		return fault{name: name, caught: []string{caught}, find: func(t *testing.T) []conformance.Finding { t.Helper(); return all[i].find(t) }}
	}
	return []fault{
		storeFault("batches over twenty in several transactions", chunked(20), []string{"odd.whole"}),
		named(halfStores(), "an erasure in two steps", "race.erased"),
		named(halfStores(), "a batch shown from its end", "race.shown"),
		named(halfStores(), "a key that another entry has is left out", "update.taken"),
		named(tellingStores(), "the key in the error of Append", "error.holds"),
		named(viewlessStores(), "counts deletions alone", "tail.changed"),
		named(tailStores(), "never goes back", "tail.follows"),
		named(longStores(), "what is taken is known of the newest alone", "odd.long"),
		named(longStores(), "ends where the last one came", "tail.long"),
	}
}
