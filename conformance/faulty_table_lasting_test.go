package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// lastingStores are sound in small, the first time and to one alone: what is wrong with them shows in later openings, in much, or beside others.
func lastingStores() []broken {
	return slices.Concat(laterOpenings(), otherOpenings(), undoingStores(), muchInStores(), muchInCompanions())
}

// laterOpenings are wrong from the second opening on.
func laterOpenings() []broken {
	of := func(name string, change func(s *brokenStore)) broken {
		return broken{class: "store: later openings", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineStore(t, func(testing.TB) core.Store { return &brokenStore{Store: memory.New()} }, opts...)
			}, conformance.WithReopen(func(_ testing.TB, old core.Store) core.Store {
				s := &brokenStore{Store: old.(*brokenStore).Store} //nolint:forcetypeassert // all are
				change(s)
				return s
			}))
		}}
	}
	return []broken{
		of("keys that were replaced stay known", staysKnown(func(core.Change) bool { return true })),
		of("raw bytes of parts without their blanks", onGet(func(e *core.Entry) {
			for i := range e.Message.Parts {
				p := &e.Message.Parts[i]
				if b := (bytes.Buffer{}); json.Compact(&b, p.Raw) == nil {
					p.Raw = b.Bytes()
				}
			}
		})),
		of("times of messages in nanoseconds", onGet(func(e *core.Entry) {
			if t := e.Message.Time; !t.IsZero() {
				e.Message.Time = time.Unix(0, t.UnixNano()).UTC()
			}
		})),
		of("pages in order of appends", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, q)
				slices.SortStableFunc(p.Entries, func(a, b core.Entry) int {
					if q.Scope.Session == "" || q.Reverse {
						return 0
					}
					return a.Time.Compare(b.Time) // which is that of the clock
				})
				return p, err
			}
		}),
		of("views listed whatever their case", func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				ids, err := s.Store.ListViews(ctx, q)
				slices.SortStableFunc(ids, func(a, b core.SessionID) int {
					return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(strings.ToLower(a.Session), strings.ToLower(b.Session)))
				})
				return ids, err
			}
		}),
	}
}

// otherOpenings do not see of views what another opening did.
func otherOpenings() []broken {
	of := func(name string, change func(s *brokenStore)) broken {
		f := openingFault(name, func(_ *memory.Store, s *brokenStore) { change(s) })
		return broken{class: "store: several openings", name: name, find: func(t *testing.T, _ ...conformance.Option) []conformance.Finding { t.Helper(); return f.find(t) }}
	}
	return []broken{
		of("views as they were until it swaps", func(s *brokenStore) {
			var mu sync.Mutex
			read := map[core.SessionID]core.View{}
			s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
				mu.Lock()
				defer mu.Unlock()
				if v, ok := read[id]; ok {
					return v.Clone(), nil
				}
				v, err := s.Store.LoadView(ctx, id)
				if err == nil {
					read[id] = v.Clone()
				}
				return v, err
			}
			s.swap = func(ctx context.Context, v core.View) error {
				mu.Lock()
				defer mu.Unlock()
				clear(read)
				return s.Store.SwapView(ctx, v)
			}
		}),
		of("the list of views as it was until it swaps", func(s *brokenStore) {
			var mu sync.Mutex
			read := map[core.ViewQuery][]core.SessionID{}
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				mu.Lock()
				defer mu.Unlock()
				if ids, ok := read[q]; ok {
					return slices.Clone(ids), nil
				}
				ids, err := s.Store.ListViews(ctx, q)
				read[q] = slices.Clone(ids)
				return ids, err
			}
			s.swap = func(ctx context.Context, v core.View) error {
				mu.Lock()
				defer mu.Unlock()
				clear(read)
				return s.Store.SwapView(ctx, v)
			}
		}),
	}
}

// undoingStores read an entry, and write it back when another call was there meanwhile.
func undoingStores() []broken {
	const pause = time.Millisecond
	class := "store: races"
	return []broken{
		brokenStoreOf(class, "what an update leaves alone is written back", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				e := older(ctx, s, scope, id)
				time.Sleep(pause)
				if e.ID != "" {
					c.Type, c.Key = cmp.Or(c.Type, e.Type), cmp.Or(c.Key, e.Key)
					if c.Meta == nil {
						c.Meta = nonNilMeta(e.Meta)
					}
				}
				return s.Store.Update(ctx, scope, id, c)
			}
		}),
		brokenStoreOf(class, "an update brings back what was deleted meanwhile", func(s *brokenStore) {
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				e := older(ctx, s, scope, id)
				time.Sleep(pause)
				err := s.Store.Update(ctx, scope, id, c)
				if errors.Is(err, core.ErrNotFound) && e.ID != "" {
					_, err = s.Store.Append(ctx, []core.Entry{e})
				}
				return err
			}
		}),
	}
}

// muchInStores leave out what comes behind much of the same.
func muchInStores() []broken {
	var out []broken
	for _, n := range []int{250, 500} {
		out = append(out, brokenStoreOf("store: views", fmt.Sprint("lists of at most ", n), func(s *brokenStore) {
			s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
				q.Limit = min(q.Limit, n)
				return s.Store.ListViews(ctx, q)
			}
		}))
	}
	for _, n := range []int{20, 64} {
		out = append(out, brokenStoreOf("store: append", fmt.Sprint(n, " parts of a message"), onAppend(func(e *core.Entry) {
			e.Message.Parts = e.Message.Parts[:min(len(e.Message.Parts), n)]
		})))
	}
	for name, when := range map[string]func(core.ScanQuery) bool{
		"the scan": func(core.ScanQuery) bool { return true }, "the reverse scan": func(q core.ScanQuery) bool { return q.Reverse },
		"the scan for a type": func(q core.ScanQuery) bool { return q.Type != "" },
	} {
		out = append(out, brokenStoreOf("store: scan", "positions bound "+name+" of an agent", onPage(func(q core.ScanQuery, p *core.Page) {
			if q.Scope.Session == "" && when(q) {
				p.Entries = slices.DeleteFunc(p.Entries, func(e core.Entry) bool { return e.Seq < q.FromSeq || q.ToSeq > 0 && e.Seq >= q.ToSeq })
			}
		})))
	}
	return append(out,
		brokenStoreOf("store: scan", "500 sessions of an agent", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				p, err := s.Store.Scan(ctx, q)
				if err != nil || q.Scope.Session != "" {
					return p, err
				}
				seen := map[string]bool{}
				for e, err := range core.All(ctx, s.Store, q.Scope, q.Reverse) {
					if err == nil && len(seen) < 500 {
						seen[e.Session] = true
					}
				}
				p.Entries = slices.DeleteFunc(p.Entries, func(e core.Entry) bool { return !seen[e.Session] })
				return p, nil
			}
		}, conformance.WithClaims("odd.batch")),
		brokenStoreOf("store: scan", "the cursor carries the limit of the first page", func(s *brokenStore) {
			s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
				if first, rest, ok := strings.Cut(string(q.Cursor), " "); ok {
					q.Cursor = core.Cursor(rest)
					q.Limit, _ = strconv.Atoi(first)
				}
				p, err := s.Store.Scan(ctx, q)
				if p.Next != "" {
					p.Next = core.Cursor(fmt.Sprint(q.Limit, " ", p.Next))
				}
				return p, err
			}
		}))
}

// muchInCompanions are companions that lose what is behind much, and vectors that outlive their entry.
func muchInCompanions() []broken {
	type changes = func(context.Context, core.ChangeQuery) (core.ChangePage, error)
	var out []broken
	for _, n := range []int{20, 100} {
		out = append(out, brokenCompanionOf("change feed", fmt.Sprint("nothing more behind a full page of more than ", n), func(c *companied) {
			c.changes = func(ctx context.Context, q core.ChangeQuery, sound changes) (core.ChangePage, error) {
				p, err := sound(ctx, q)
				if q.Limit > n && len(p.Changes) == q.Limit {
					p.More = false
				}
				return p, err
			}
		}))
	}
	for _, n := range []int{50, 500} {
		out = append(out, brokenCompanionOf("change feed", fmt.Sprint("goes on with the newest ", n), func(c *companied) {
			c.changes = func(ctx context.Context, q core.ChangeQuery, sound changes) (core.ChangePage, error) {
				if q.After == "" {
					return sound(ctx, q)
				}
				all, err := sound(ctx, core.ChangeQuery{Agent: q.Agent, After: q.After, Limit: core.MaxPage})
				if err == nil && len(all.Changes) > n {
					old, _ := sound(ctx, core.ChangeQuery{Agent: q.Agent, After: q.After, Limit: len(all.Changes) - n})
					q.After = old.Mark
				}
				return sound(ctx, q)
			}
		}))
	}
	for _, n := range []int{32, 256} {
		out = append(out, brokenCompanionOf("change feed", fmt.Sprint("deletions before the newest ", n, " are forgotten"), func(c *companied) {
			c.changes = func(ctx context.Context, q core.ChangeQuery, sound changes) (core.ChangePage, error) {
				p, err := sound(ctx, q)
				q.Limit = core.MaxPage
				all, _ := sound(ctx, q)
				gone := slices.DeleteFunc(all.Changes, func(c core.EntryChange) bool { return c.Entry != nil })
				for _, old := range gone[:max(0, len(gone)-n)] {
					p.Changes = slices.DeleteFunc(p.Changes, func(c core.EntryChange) bool { return c.ID == old.ID })
				}
				return p, err
			}
		}))
	}
	out = append(out, brokenCompanionOf("change feed", "who is at the end is not told when the newest entry is changed", func(c *companied) {
		newest := map[core.Mark]string{} // by the mark behind it
		c.changes = func(ctx context.Context, q core.ChangeQuery, sound changes) (core.ChangePage, error) {
			p, err := sound(ctx, q)
			if len(p.Changes) > 0 && p.Changes[0].Entry != nil && p.Changes[0].ID == newest[q.After] {
				p.Changes = p.Changes[1:]
			} else if n := len(p.Changes); n > 0 && !p.More {
				newest[p.Mark] = p.Changes[n-1].ID
			}
			return p, err
		}
	}))
	for _, n := range []int{20, 500} {
		out = append(out, nearbyOf(fmt.Sprint("looks at ", n, " vectors"), "vector.nearest", func(s *nearby) { s.most = n }))
	}
	return append(out, brokenCompanionOf("vectors", "those of what was deleted come back with it", func(c *companied) {
		var mu sync.Mutex
		kept := map[string]map[string][]vector.Vector{} // by space and id
		c.put = func(ctx context.Context, space string, vectors []vector.Vector) error {
			mu.Lock()
			defer mu.Unlock()
			err := c.Store.PutVectors(ctx, space, vectors)
			for _, v := range vectors {
				if err == nil && v.ID != "E-nobody" { // which was not there
					if kept[space] == nil {
						kept[space] = map[string][]vector.Vector{}
					}
					v.Values = slices.Clone(v.Values)
					kept[space][v.ID] = append(kept[space][v.ID], v)
				}
			}
			return err
		}
		c.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			mu.Lock()
			defer mu.Unlock()
			res, err := c.Store.Append(ctx, entries)
			for _, space := range slices.Sorted(maps.Keys(kept)) {
				for _, e := range entries {
					if err == nil && len(kept[space][e.ID]) > 0 {
						err = c.Store.PutVectors(ctx, space, kept[space][e.ID])
					}
				}
			}
			return res, err
		}
	}))
}
