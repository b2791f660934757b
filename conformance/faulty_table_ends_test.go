package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// methods are the calls of a store that take a context.
var methods = []string{"Append", "Get", "Scan", "Update", "Delete", "LoadView", "SwapView", "DeleteView", "ListViews", "Tail"}

// around puts a change around one method of a store: f is called with what the method does, and returns its error.
func around(method string, f func(ctx context.Context, call func(context.Context) error) error) func(*brokenStore) {
	return func(s *brokenStore) {
		switch method {
		case "Append":
			s.append = func(ctx context.Context, e []core.Entry) (res core.AppendResult, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { res, err = s.Store.Append(ctx, e); return err })
				return res, err
			}
		case "Get":
			s.get = func(ctx context.Context, scope core.Scope, ids []string) (got []core.Entry, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { got, err = s.Store.Get(ctx, scope, ids); return err })
				return got, err
			}
		case "Scan":
			s.scan = func(ctx context.Context, q core.ScanQuery) (p core.Page, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { p, err = s.Store.Scan(ctx, q); return err })
				return p, err
			}
		case "Update":
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				return f(ctx, func(ctx context.Context) error { return s.Store.Update(ctx, scope, id, c) })
			}
		case "Delete":
			s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { n, err = s.Store.Delete(ctx, scope, ids); return err })
				return n, err
			}
		case "LoadView":
			s.load = func(ctx context.Context, id core.SessionID) (v core.View, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { v, err = s.Store.LoadView(ctx, id); return err })
				return v, err
			}
		case "SwapView":
			s.swap = func(ctx context.Context, v core.View) error {
				return f(ctx, func(ctx context.Context) error { return s.Store.SwapView(ctx, v) })
			}
		case "DeleteView":
			s.deleteView = func(ctx context.Context, id core.SessionID) error {
				return f(ctx, func(ctx context.Context) error { return s.Store.DeleteView(ctx, id) })
			}
		case "ListViews":
			s.listViews = func(ctx context.Context, q core.ViewQuery) (ids []core.SessionID, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { ids, err = s.Store.ListViews(ctx, q); return err })
				return ids, err
			}
		case "Tail":
			s.tail = func(ctx context.Context, id core.SessionID) (t core.Tail, err error) {
				err = f(ctx, func(ctx context.Context) (err error) { t, err = s.Store.Tail(ctx, id); return err })
				return t, err
			}
		}
	}
}

func endStores() []broken {
	var out []broken
	for _, m := range []string{"Append", "Delete"} {
		out = append(out, brokenStoreOf("store: cancel", m+" looks once more when all is done", around(m, func(ctx context.Context, call func(context.Context) error) error {
			if err := call(ctx); err != nil {
				return err
			}
			return ctx.Err()
		})))
	}
	for _, m := range methods {
		out = append(out,
			brokenStoreOf("store: cancel", m+" goes on", around(m, func(ctx context.Context, call func(context.Context) error) error {
				return call(context.WithoutCancel(ctx))
			})),
			brokenStoreOf("store: cancel", m+" with an error of its own", around(m, func(ctx context.Context, call func(context.Context) error) error {
				if err := call(ctx); errors.Is(err, context.Canceled) {
					return errors.New("broken: stopped")
				} else {
					return err
				}
			})),
			brokenStoreOf("store: cancel", m+" does it and says it did not", around(m, func(ctx context.Context, call func(context.Context) error) error {
				if err := call(context.WithoutCancel(ctx)); err != nil {
					return err
				}
				return ctx.Err()
			})),
			brokenStoreOf("store: cancel", m+" says nothing", around(m, func(ctx context.Context, call func(context.Context) error) error {
				if ctx.Err() != nil {
					return nil
				}
				return call(ctx)
			})),
			brokenStoreOf("store: close", m+" says something else", around(m, func(ctx context.Context, call func(context.Context) error) error {
				if err := call(ctx); errors.Is(err, core.ErrClosed) {
					return core.ErrUnavailable
				} else {
					return err
				}
			})),
			brokenStoreOf("store: close", m+" says nothing", around(m, func(ctx context.Context, call func(context.Context) error) error {
				if err := call(ctx); !errors.Is(err, core.ErrClosed) {
					return err
				}
				return nil
			})),
			brokenStoreOf("store: hangs and panics", m+" hangs", around(m, func(context.Context, func(context.Context) error) error { select {} })),
			brokenStoreOf("store: hangs and panics", m+" panics", around(m, func(context.Context, func(context.Context) error) error { panic("broken") })),
			brokenStoreOf("store: hangs and panics", m+" waits for its context", around(m, func(ctx context.Context, call func(context.Context) error) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Hour):
				}
				return call(ctx)
			})),
		)
	}
	// What a look cannot change, it cannot do halfway.
	out = slices.DeleteFunc(out, func(b broken) bool {
		return slices.Contains([]string{"Get", "Scan", "LoadView", "ListViews", "Tail"}, firstWord(b.name)) && len(b.name) > 30
	})
	return append(out,
		brokenStoreOf("store: close", "a second Close fails", func(s *brokenStore) {
			closed := false
			s.close = func() error {
				if closed {
					return core.ErrClosed
				}
				closed = true
				return s.Store.Close()
			}
		}),
		brokenStoreOf("store: close", "Close fails", func(s *brokenStore) {
			s.close = func() error { _ = s.Store.Close(); return errors.New("broken") }
		}),
		brokenStoreOf("store: close", "Close hangs", func(s *brokenStore) { s.close = func() error { select {} } }),
		brokenStoreOf("store: close", "a second Close panics", func(s *brokenStore) {
			done := make(chan int)
			s.close = func() error { close(done); return s.Store.Close() }
		}),
	)
}

func firstWord(s string) string {
	for i := range s {
		if s[i] == ' ' {
			return s[:i]
		}
	}
	return s
}

// keptEntries is a store that keeps memory of its callers, or gives away its own.
type keptEntries struct {
	mu sync.Mutex
	m  map[string]core.Entry
}

// share makes entries that say the same share what pick names: the first one seen keeps it. The entry is as it is stored, nobody has spoilt it yet.
func (k *keptEntries) share(e *core.Entry, pick func(from, to *core.Entry)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[string]core.Entry{}
	}
	says := fmt.Sprintf("%v", *e)
	if old, ok := k.m[says]; ok {
		pick(&old, e)
		return
	}
	k.m[says] = *e
}

// sharing are the places of an entry that can be shared.
var sharing = map[string]func(from, to *core.Entry){
	"metadata": func(from, to *core.Entry) { to.Meta = from.Meta },
	"raw":      func(from, to *core.Entry) { to.Message.Raw = from.Message.Raw },
	"parts":    func(from, to *core.Entry) { to.Message.Parts = from.Message.Parts },
	"raw of a part": func(from, to *core.Entry) {
		for i := range min(len(from.Message.Parts), len(to.Message.Parts)) {
			to.Message.Parts[i].Raw = from.Message.Parts[i].Raw
		}
	},
}

func sharedMemoryStores() []broken {
	var out []broken
	for name, pick := range sharing {
		out = append(out,
			brokenStoreOf("store: memory shared", name+" of Append", func(s *brokenStore) {
				var k keptEntries
				s.append = func(ctx context.Context, e []core.Entry) (core.AppendResult, error) {
					res, err := s.Store.Append(ctx, e)
					for i := range e {
						if err == nil {
							k.share(&e[i], func(_, _ *core.Entry) {})
						}
					}
					return res, err
				}
				onGetRaw(s, &k, pick)
			}),
			brokenStoreOf("store: memory shared", name+" of Get", func(s *brokenStore) {
				var k keptEntries
				onGetRaw(s, &k, pick)
			}),
			brokenStoreOf("store: memory shared", name+" of Scan", func(s *brokenStore) {
				var k keptEntries
				s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
					p, err := s.Store.Scan(ctx, q)
					for i := range p.Entries {
						k.share(&p.Entries[i], pick)
					}
					return p, err
				}
			}),
			brokenStoreOf("store: memory shared", name+" of Update", func(s *brokenStore) {
				var k keptEntries
				s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
					err := s.Store.Update(ctx, scope, id, c)
					e := older(ctx, s, scope, id)
					if err == nil && c.Message != nil {
						e.Message = *c.Message
					}
					if err == nil && c.Meta != nil {
						e.Meta = c.Meta
					}
					k.mu.Lock()
					if k.m == nil {
						k.m = map[string]core.Entry{}
					}
					k.m[id] = e
					k.mu.Unlock()
					return err
				}
				s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
					got, err := s.Store.Get(ctx, scope, ids)
					k.mu.Lock()
					defer k.mu.Unlock()
					for i := range got {
						if old, ok := k.m[got[i].ID]; ok && old.Fingerprint == got[i].Fingerprint {
							pick(&old, &got[i])
						}
					}
					return got, err
				}
			}),
		)
	}
	view := func(name string, pick func(from, to *core.View)) []broken {
		return []broken{
			brokenStoreOf("store: memory shared", name+" of SwapView", func(s *brokenStore) {
				kept := map[core.SessionID]core.View{}
				var mu sync.Mutex
				s.swap = func(ctx context.Context, v core.View) error {
					mu.Lock()
					defer mu.Unlock()
					err := s.Store.SwapView(ctx, v)
					if err == nil {
						kept[v.Session] = v
					}
					return err
				}
				s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
					mu.Lock()
					defer mu.Unlock()
					v, err := s.Store.LoadView(ctx, id)
					if old, ok := kept[id]; ok && err == nil && old.Version == v.Version {
						pick(&old, &v)
					}
					return v, err
				}
			}),
			brokenStoreOf("store: memory shared", name+" of LoadView", func(s *brokenStore) {
				kept := map[core.SessionID]core.View{}
				var mu sync.Mutex
				s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
					mu.Lock()
					defer mu.Unlock()
					v, err := s.Store.LoadView(ctx, id)
					if old, ok := kept[id]; ok && err == nil && old.Version == v.Version {
						pick(&old, &v)
					}
					kept[id] = v
					return v, err
				}
			}),
		}
	}
	return slices.Concat(out,
		view("stubs", func(from, to *core.View) { to.Stubs = from.Stubs }),
		view("path", func(from, to *core.View) { to.Path = from.Path }),
		view("summaries", func(from, to *core.View) { to.Summaries = from.Summaries }),
		view("recall", func(from, to *core.View) { to.Recall = from.Recall }),
		view("commits", func(from, to *core.View) { to.Commits = from.Commits }),
		view("parent", func(from, to *core.View) { to.Parent = from.Parent }),
		view("front", func(from, to *core.View) { to.Shown = from.Shown }),
		view("reset", func(from, to *core.View) { to.Reset = from.Reset }),
		view("inherited", func(from, to *core.View) { to.Inherited = from.Inherited }),
		view("head", func(from, to *core.View) { to.Head = from.Head }),
		view("heirs", func(from, to *core.View) { to.Heirs = from.Heirs }),
		view("kept blocks", func(from, to *core.View) { to.Kept = from.Kept }),
		view("grants", func(from, to *core.View) { to.Grants = from.Grants }),
	)
}

func onGetRaw(s *brokenStore, k *keptEntries, pick func(from, to *core.Entry)) {
	s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
		got, err := s.Store.Get(ctx, scope, ids)
		for i := range got {
			k.share(&got[i], pick)
		}
		return got, err
	}
}

// racingStores are right as long as one thing happens at a time.
func racingStores() []broken {
	class := "store: races"
	busy := func(name, method string, f func(ctx context.Context, others int, call func(context.Context) error) error) broken {
		return brokenStoreOf(class, name, func(s *brokenStore) {
			var mu sync.Mutex
			under := 0
			around(method, func(ctx context.Context, call func(context.Context) error) error {
				mu.Lock()
				under++
				others := under - 1
				mu.Unlock()
				defer func() { mu.Lock(); under--; mu.Unlock() }()
				time.Sleep(time.Millisecond)
				return f(ctx, others, call)
			})(s)
		})
	}
	lost := func(_ context.Context, others int, call func(context.Context) error) error {
		if others > 0 {
			return nil
		}
		return call(context.Background())
	}
	locked := func(ctx context.Context, others int, call func(context.Context) error) error {
		if others > 0 {
			return errors.New("broken: database is locked")
		}
		return call(ctx)
	}
	return []broken{
		busy("an update is lost beside another", "Update", lost),
		busy("a deletion is lost beside another", "Delete", lost),
		busy("a swap is lost beside another", "SwapView", lost),
		busy("an append fails beside another", "Append", locked),
		busy("an update fails beside another", "Update", locked),
		busy("a scan fails beside another", "Scan", locked),
		busy("a get fails beside another", "Get", locked),
	}
}

// replaced is b with another change.
func (b broken) replaced(change func(*brokenStore)) broken {
	return brokenStoreOf(b.class, b.name, change)
}

// tableReopened are stores that come back differently.
func tableReopened() []broken {
	of := func(name string, spare func(*core.Entry) bool, change func(*core.Entry), views func(*core.View) bool) broken {
		return broken{class: "store: reopened", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(10, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineStore(t, openMemory, opts...)
			},
				conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
					tb.Helper()
					return copied(tb, old, spare, change, views)
				}))
		}}
	}
	all, keep := func(*core.Entry) bool { return true }, func(*core.View) bool { return true }
	last := map[core.SessionID]int64{}
	return []broken{
		of("without the first", func(e *core.Entry) bool { return e.Seq > 0 }, nil, keep),
		of("without heartbeats", func(e *core.Entry) bool { return e.Type != core.TypeHeartbeat }, nil, keep),
		of("without what was erased", func(e *core.Entry) bool { return e.Type != core.TypeErased }, nil, keep),
		of("without one agent", func(e *core.Entry) bool { return e.Agent != "agent-b" }, nil, keep),
		of("without metadata", all, func(e *core.Entry) { e.Meta = nil }, keep),
		of("without raw bytes", all, func(e *core.Entry) { e.Message.Raw = nil }, keep),
		of("without keys", all, func(e *core.Entry) { e.Key = "key of " + e.ID }, keep),
		of("with erased keys as they were", all, func(e *core.Entry) {
			if e.Type == core.TypeErased {
				e.Key = "key again of " + e.ID
			}
		}, keep),
		of("with times by the second", all, func(e *core.Entry) { e.Time = e.Time.Truncate(time.Second) }, keep),
		of("with tokens counted anew", all, func(e *core.Entry) { e.Tokens = len(e.Text()) }, keep),
		of("with positions counted anew", all, func(e *core.Entry) { e.Seq = last[e.SessionID()]; last[e.SessionID()]++ }, keep),
		of("with updates undone", all, func(e *core.Entry) {
			if e.Meta["reworked"] != "" {
				e.Meta = maps.Clone(e.Meta)
				e.Meta["reworked"] = "no"
			}
		}, keep),
		of("without views", all, nil, func(*core.View) bool { return false }),
		of("with views of one version", all, nil, func(v *core.View) bool { v.Version = 1; return true }),
		of("with views that lost their grants", all, nil, func(v *core.View) bool { v.Grants = nil; return true }),
		of("without the last view", all, nil, func(v *core.View) bool { return v.Session.Agent != "agent-b" }),
	}
}

// copied opens what old holds in a new store.
func copied(tb testing.TB, old core.Store, spare func(*core.Entry) bool, change func(*core.Entry), views func(*core.View) bool) core.Store {
	tb.Helper()
	s, from := memory.New(), old.(*memory.Store) //nolint:forcetypeassert // the suite opened it
	for _, agent := range []string{"agent-a", "agent-b", "ann"} {
		for e, err := range core.All(tb.Context(), from, core.Scope{Agent: agent}, false) {
			if err != nil || !spare(&e) {
				continue
			}
			if change != nil {
				change(&e)
			}
			_, _ = s.Append(tb.Context(), []core.Entry{e})
		}
	}
	ids, _ := from.ListViews(tb.Context(), core.ViewQuery{Limit: core.MaxPage})
	for _, id := range ids {
		v, err := from.LoadView(tb.Context(), id)
		if err != nil || !views(&v) {
			continue
		}
		version := v.Version
		for n := uint64(1); n <= version; n++ {
			v.Version = n
			_ = s.SwapView(tb.Context(), v)
		}
	}
	return s
}
