package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
)

// overtaken are stores that are overtaken by what happens meanwhile: between two pages, two looks, two writes, or two openings.
func overtaken() []broken {
	const pause = 100 * time.Microsecond // where the machine is busy two calls in memory seldom meet
	races := func(name, claim string, change func(*brokenStore)) broken {
		return brokenStoreOf("store: races", name, change, conformance.WithClaims(claim))
	}
	var out []broken
	for _, claim := range []string{"moving.deleted", "moving.updated", "type.moving"} {
		out = append(out, brokenStoreOf("store: scan", "the next page is read ahead, "+claim, readsAhead, conformance.WithClaims(claim)))
	}
	return append(out,
		races("what is deleted is counted before", "race.different", func(s *brokenStore) {
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
				there := map[string]bool{}
				for _, id := range ids {
					if older(ctx, s, scope, id).ID != "" {
						there[id] = true
					}
				}
				time.Sleep(pause)
				_, err := s.Store.Delete(ctx, scope, ids)
				return len(there), err
			}
		}),
		races("an update writes back all that it read", "race.erased", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				if e := older(ctx, s, scope, id); e.ID != "" {
					if c.Message == nil {
						c.Message, c.Tokens, c.Fingerprint = &e.Message, e.Tokens, e.Fingerprint
					}
					if c.Meta == nil {
						c.Meta = nonNilMeta(e.Meta)
					}
					c.Type, c.Key = cmp.Or(c.Type, e.Type), cmp.Or(c.Key, e.Key)
				}
				time.Sleep(pause)
				return s.Store.Update(ctx, scope, id, c)
			}
		}),
		races("what is read while it is changed stays in a cache", "race.erased", cachesLate(true, false)),
		races("what is read while it is deleted stays in a cache", "race.erased", cachesLate(false, true)),
		brokenStoreOf("store: by halves", "the context is looked at every hundred entries", func(s *brokenStore) {
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				res, err := s.Store.Append(ctx, entries)
				for n := 100; n < len(entries) && err == nil; n += 100 {
					if err = ctx.Err(); err == nil {
						continue
					}
					for _, e := range entries[n:] { // it has not come to these
						_, _ = s.Store.Delete(context.WithoutCancel(ctx), e.SessionID().Scope(), []string{e.ID})
					}
				}
				return res, err
			}
		}, conformance.WithClaims("odd.whole")),
		keysBetween(), closedDrainer("backlog"), closedDrainer("remote"), closedDrainer("drain"),
		helpedOf("recogniser", "by what was said first", []string{"recognise.says"}, func(h *helped) {
			said := map[string]string{} // by id
			h.recognise = func(ctx context.Context, id core.SessionID, m []message.Message) ([]core.Entry, error) {
				var out []core.Entry
				for e, err := range core.All(ctx, h.Store, id.Scope(), false) {
					if err != nil {
						return nil, err
					}
					said[e.ID] = cmp.Or(said[e.ID], e.Fingerprint)
					if slices.ContainsFunc(m, func(m message.Message) bool { return message.Fingerprint(m) == said[e.ID] }) {
						out = append(out, e)
					}
				}
				return out, nil
			}
		}),
	)
}

// readsAhead reads each page of a scan together with the one before it.
func readsAhead(s *brokenStore) {
	var mu sync.Mutex
	ahead := map[core.ScanQuery]core.Page{}
	s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
		mu.Lock()
		defer mu.Unlock()
		page, ok := ahead[q]
		if !ok || q.Cursor == "" {
			var err error
			if page, err = s.Store.Scan(ctx, q); err != nil {
				return page, err
			}
		}
		delete(ahead, q)
		if q.Cursor = page.Next; page.Next != "" {
			if next, err := s.Store.Scan(ctx, q); err == nil {
				ahead[q] = next
			}
		}
		return page, nil
	}
}

// keysBetween knows, once it is opened again, each entry by the second key it had as well.
func keysBetween() broken {
	type opened struct {
		*brokenStore
		had map[string][]string // by id
	}
	return broken{class: "store: later openings", name: "of keys that were replaced the one between stays known", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		open := func(m *memory.Store, had map[string][]string) core.Store {
			s := &opened{&brokenStore{Store: m}, map[string][]string{}}
			maps.Copy(s.had, had)
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				err := m.Update(ctx, scope, id, c)
				if err == nil && c.Key != "" {
					s.had[id] = append(s.had[id], c.Key)
				}
				return err
			}
			s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
				for id, keys := range had {
					if len(keys) > 1 && len(entries) == 1 && entries[0].Key == keys[0] {
						return core.AppendResult{IDs: []string{id}, Duplicates: 1}, nil
					}
				}
				return m.Append(ctx, entries)
			}
			return s
		}
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store { return open(memory.New(), nil) }, opts...)
		}, conformance.WithClaims("reopen.everything"), conformance.WithReopen(func(_ testing.TB, old core.Store) core.Store {
			s := old.(*opened) //nolint:forcetypeassert // all are
			return open(s.Store, s.had)
		}))
	}}
}

// forwards is a helped store that decorates another one.
type forwards struct {
	*helped
	after string // which call is answered after Close
}

func (f forwards) Unwrap() core.Store { return f.Store }

// open hides from a call that the store is closed.
func (f forwards) open(call string, err error) error {
	if f.after == call && errors.Is(err, core.ErrClosed) {
		return nil
	}
	return err
}

func (f forwards) Backlog(ctx context.Context) (upkeep.Backlog, error) {
	b, err := f.helped.Backlog(ctx)
	return b, f.open("backlog", err)
}

func (f forwards) CheckRemote(ctx context.Context) error {
	return f.open("remote", f.helped.CheckRemote(ctx))
}

func (f forwards) Drain(ctx context.Context) (int, error) {
	left, err := f.helped.Drain(ctx)
	return left, f.open("drain", err)
}

func closedDrainer(call string) broken {
	return broken{class: "companion: drainer", name: "a decorator's " + call + " after Close", find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store { return forwards{newHelped(), call} }, opts...)
		}, conformance.WithClaims("close.closed"))
	}}
}

// cachesLate keeps what was read alone, also what an update overtook meanwhile, or a deletion.
func cachesLate(update, deletion bool) func(*brokenStore) {
	return func(s *brokenStore) {
		var mu sync.Mutex
		var updated, deleted int
		kept := map[string]core.Entry{}
		forget := func(changes *int, ids ...string) {
			mu.Lock()
			defer mu.Unlock()
			*changes++
			for _, id := range ids {
				delete(kept, id)
			}
		}
		s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			if len(ids) != 1 || ctx.Err() != nil {
				return s.Store.Get(ctx, scope, ids)
			}
			mu.Lock()
			e, ok := kept[ids[0]]
			updates, deletions := updated, deleted
			mu.Unlock()
			if ok && scope.Contains(e.SessionID()) {
				return []core.Entry{e.Clone()}, nil
			}
			got, err := s.Store.Get(ctx, scope, ids)
			if err != nil {
				return nil, err
			}
			time.Sleep(200 * time.Microsecond)
			mu.Lock()
			defer mu.Unlock()
			if (update || updates == updated) && (deletion || deletions == deleted) {
				kept[ids[0]] = got[0].Clone()
			}
			return got, nil
		}
		s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
			defer forget(&updated, id)
			return s.Store.Update(ctx, scope, id, c)
		}
		s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
			defer forget(&deleted, ids...)
			return s.Store.Delete(ctx, scope, ids)
		}
	}
}
