package conformance_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// turns is a lock for which nobody waits longer than a context lasts.
type turns struct {
	begin sync.Once
	taken chan struct{}
}

func (t *turns) Lock() { t.lockUntil(context.Background()) }

func (t *turns) Unlock() { <-t.taken }

func (t *turns) lockUntil(ctx context.Context) bool {
	t.begin.Do(func() { t.taken = make(chan struct{}, 1) })
	select {
	case t.taken <- struct{}{}:
		return true
	default:
	}
	select {
	case t.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// listener is a retriever with a memory of its own: what it was told, and what it reads of a scope when it is first asked. It is sound where no change makes it worse.
type listener struct {
	mu turns
	// missed says that word did not wait for its turn: all is read again.
	missed atomic.Bool
	known  map[string]core.Entry
	store  core.Store
	// asks lets one caller after the other read; they wait as long as their contexts last.
	begin sync.Once
	asks  chan struct{}
	// deaf ones read nothing of what was there before.
	deaf bool
	read map[core.Scope]bool
	// scan reads a scope; done says that it is not read again. gap is where a lossy one lets others in.
	scan   func(ctx context.Context, s core.Store, scope core.Scope) (entries []core.Entry, done bool, err error)
	gap    func()
	append func(known map[string]core.Entry, entries []core.Entry) []core.Entry
	update func(old, e core.Entry) core.Entry
	remove func(scope core.Scope, ids []string) []string
	// told are the ids that it was told of. Of what it read alone, updates and deletions may go unheard.
	told                       map[string]bool
	deafUpdates, deafDeletions bool
}

func (l *listener) Attach(s core.Store) error { l.store = s; return nil }

func (l *listener) put(entries []core.Entry) {
	if l.known == nil {
		l.known = map[string]core.Entry{}
	}
	for _, e := range entries {
		l.known[e.ID] = e.Clone()
	}
}

// heard waits for the turn of word, as long as ctx lasts.
func (l *listener) heard(ctx context.Context) error {
	if l.mu.lockUntil(ctx) {
		return nil
	}
	l.missed.Store(true)
	return ctx.Err()
}

func (l *listener) Appended(ctx context.Context, entries []core.Entry) error {
	if err := l.heard(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.told == nil {
		l.told = map[string]bool{}
	}
	for _, e := range entries {
		l.told[e.ID] = true
	}
	if l.append != nil {
		entries = l.append(l.known, entries)
	}
	if l.gap != nil {
		known := maps.Clone(l.known)
		l.mu.Unlock()
		l.gap()
		l.mu.Lock()
		l.known = known
	}
	l.put(entries)
	return nil
}

func (l *listener) Updated(ctx context.Context, e core.Entry) error {
	if err := l.heard(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.deafUpdates && !l.told[e.ID] {
		return nil
	}
	if l.update != nil {
		e = l.update(l.known[e.ID], e)
	}
	l.put([]core.Entry{e})
	return nil
}

func (l *listener) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	if err := l.heard(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.remove != nil {
		ids = l.remove(scope, ids)
	}
	for _, id := range ids {
		if l.deafDeletions && !l.told[id] {
			continue
		}
		if e, ok := l.known[id]; ok && scope.Contains(e.SessionID()) {
			delete(l.known, id)
		}
	}
	return nil
}

func (l *listener) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	l.begin.Do(func() { l.asks = make(chan struct{}, 1) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l.asks <- struct{}{}:
		defer func() { <-l.asks }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.missed.Swap(false) && !l.deaf {
		l.known, l.read = nil, nil
	}
	for _, s := range q.Scopes() {
		if l.deaf || l.read[s] {
			continue
		}
		entries, done, err := l.scanned(ctx, s)
		l.put(entries)
		if l.read == nil {
			l.read = map[core.Scope]bool{}
		}
		l.read[s] = done
		if err != nil {
			return nil, err
		}
	}
	var out []core.Candidate
	for _, id := range slices.Sorted(maps.Keys(l.known)) {
		e := l.known[id]
		if q.InWindow(id) || e.Hidden() || len(out) == q.Limit {
			continue
		}
		if slices.ContainsFunc(q.Scopes(), func(s core.Scope) bool { return s.Contains(e.SessionID()) }) {
			out = append(out, core.Candidate{Entry: e.Clone(), Source: "listener"})
		}
	}
	return out, nil
}

func (l *listener) scanned(ctx context.Context, scope core.Scope) (entries []core.Entry, done bool, err error) {
	if l.scan != nil {
		return l.scan(ctx, l.store, scope)
	}
	for e, err := range core.All(ctx, l.store, scope, false) {
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	return entries, true, nil
}

func brokenListener(name string, change func(*listener)) broken {
	over := func() core.Retriever {
		l := &listener{}
		change(l)
		return l
	}
	return broken{class: "retriever: told", name: name, part: part{retriever: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, opts...)
		})
	}}
}

// tableListeners are retrievers that do not do as they are told.
func tableListeners() []broken {
	return []broken{
		brokenListener("reads nothing of before", func(l *listener) { l.deaf = true }),
		brokenListener("the first of several", func(l *listener) {
			l.deaf = true
			l.append = func(_ map[string]core.Entry, e []core.Entry) []core.Entry { return e[:1] }
		}),
		brokenListener("a hundred and no more", func(l *listener) {
			l.deaf = true
			l.append = func(known map[string]core.Entry, e []core.Entry) []core.Entry {
				return e[:max(0, min(len(e), 100-len(known)))]
			}
		}),
		brokenListener("turns round what it is told", func(l *listener) {
			l.append = func(_ map[string]core.Entry, e []core.Entry) []core.Entry { slices.Reverse(e); return e }
		}),
		brokenListener("updates not heard", func(l *listener) { l.update = func(old, _ core.Entry) core.Entry { return old } }),
		brokenListener("emptied entries kept", func(l *listener) {
			l.update = func(old, e core.Entry) core.Entry {
				if e.Type == core.TypeErased {
					return old
				}
				return e
			}
		}),
		brokenListener("metadata kept", func(l *listener) { l.update = func(old, e core.Entry) core.Entry { e.Meta = old.Meta; return e } }),
		brokenListener("types kept", func(l *listener) { l.update = func(old, e core.Entry) core.Entry { e.Type = old.Type; return e } }),
		brokenListener("updates of what was read are not heard", func(l *listener) { l.deafUpdates = true }),
		brokenListener("deletions of what was read are not heard", func(l *listener) { l.deafDeletions = true }),
		brokenListener("deletions not heard", func(l *listener) { l.remove = func(core.Scope, []string) []string { return nil } }),
		brokenListener("the first of several deletions", func(l *listener) { l.remove = func(_ core.Scope, ids []string) []string { return ids[:1] } }),
		brokenListener("deletions of an agent not heard", func(l *listener) {
			l.remove = func(s core.Scope, ids []string) []string {
				if s.Session == "" {
					return nil
				}
				return ids
			}
		}),
	}
}

// forgetfulListeners are retrievers that are sound until they have read the store, or read it badly.
func forgetfulListeners() []broken {
	reads := func(name string, scan func(ctx context.Context, s core.Store, scope core.Scope) ([]core.Entry, bool, error)) broken {
		return brokenListener(name, func(l *listener) { l.scan = scan })
	}
	told := func(name string, keep func([]core.Entry) []core.Entry) broken {
		return brokenListener(name, func(l *listener) {
			l.append = func(_ map[string]core.Entry, e []core.Entry) []core.Entry { return keep(e) }
		})
	}
	// upTo reads on while more says so.
	upTo := func(limit int, more func(all []core.Entry, p core.Page) bool) func(context.Context, core.Store, core.Scope) ([]core.Entry, bool, error) {
		return func(ctx context.Context, s core.Store, scope core.Scope) (all []core.Entry, done bool, err error) {
			for q := (core.ScanQuery{Scope: scope, Limit: limit}); ; {
				p, err := s.Scan(ctx, q)
				if err != nil {
					return nil, false, err
				}
				if all = append(all, p.Entries...); p.Next == "" || !more(all, p) {
					return all, true, nil
				}
				q.Cursor = p.Next
			}
		}
	}
	all := upTo(core.MaxPage, func([]core.Entry, core.Page) bool { return true })
	return []broken{
		told("nothing heard of what is appended", func([]core.Entry) []core.Entry { return nil }),
		told("the first of a batch heard", func(e []core.Entry) []core.Entry { return e[:1] }),
		told("the last of a batch heard", func(e []core.Entry) []core.Entry { return e[len(e)-1:] }),
		told("the session of the first of a batch heard", func(e []core.Entry) []core.Entry {
			return slices.DeleteFunc(slices.Clone(e), func(o core.Entry) bool { return o.SessionID() != e[0].SessionID() })
		}),
		brokenListener("several at the same time lose some", func(l *listener) { l.gap = func() { time.Sleep(20 * time.Microsecond) } }),
		brokenListener("what it was told first is all there is", func(l *listener) {
			heard := map[string]bool{}
			l.append = func(_ map[string]core.Entry, e []core.Entry) []core.Entry {
				for _, o := range e {
					heard[o.Agent] = true
				}
				return e
			}
			l.scan = func(ctx context.Context, s core.Store, scope core.Scope) ([]core.Entry, bool, error) {
				if heard[scope.Agent] {
					return nil, true, nil
				}
				return all(ctx, s, scope)
			}
		}),
		brokenListener("the store is read beside what it is told", func(l *listener) {
			// It is read without the lock that Appended takes, and put in place of what was heard meanwhile.
			l.scan = func(ctx context.Context, s core.Store, scope core.Scope) ([]core.Entry, bool, error) {
				entries, done, err := all(ctx, s, scope)
				l.mu.Unlock()
				time.Sleep(200 * time.Microsecond)
				l.mu.Lock()
				maps.DeleteFunc(l.known, func(_ string, e core.Entry) bool { return scope.Contains(e.SessionID()) })
				return entries, done, err
			}
		}),
		reads("a page and no more", upTo(20, func([]core.Entry, core.Page) bool { return false })),
		reads("a short page is the last", upTo(100, func(_ []core.Entry, p core.Page) bool { return len(p.Entries) == 100 })),
		reads("a thousand and no more", upTo(100, func(all []core.Entry, _ core.Page) bool { return len(all) < 1000 })),
		reads("a store that fails is empty", func(ctx context.Context, s core.Store, scope core.Scope) ([]core.Entry, bool, error) {
			entries, _, err := all(ctx, s, scope)
			return entries, err == nil, nil
		}),
		reads("a failing store is read once", func(ctx context.Context, s core.Store, scope core.Scope) ([]core.Entry, bool, error) {
			entries, _, err := all(ctx, s, scope)
			return entries, true, err
		}),
		reads("half a store is all", func(ctx context.Context, s core.Store, scope core.Scope) (entries []core.Entry, done bool, err error) {
			for e, err := range core.All(ctx, s, scope, false) {
				if err != nil {
					return entries, true, err
				}
				entries = append(entries, e)
			}
			return entries, true, nil
		}),
		reads("half a store is all, and no error", func(ctx context.Context, s core.Store, scope core.Scope) (entries []core.Entry, done bool, err error) {
			for e, err := range core.All(ctx, s, scope, false) {
				if err != nil {
					return entries, len(entries) > 0, nil //nolint:nilerr // that is what is broken
				}
				entries = append(entries, e)
			}
			return entries, true, nil
		}),
	}
}

// brokenIndex is the semantic retriever over an index of words that is not told of all.
func brokenIndex(name string, change func(*heardIndex)) broken {
	return broken{class: "retriever: told", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
				tb.Helper()
				index, err := lexical.New(lexical.DefaultConfig())
				if err != nil {
					tb.Fatal(err)
				}
				tb.Cleanup(func() { _ = index.Close() })
				r, err := semantic.New(semantic.DefaultConfig(), index)
				if err != nil {
					tb.Fatal(err)
				}
				h := &heardIndex{Retriever: r}
				change(h)
				return h, memory.New()
			}, opts...)
		})
	}}
}

// heardIndex forwards to an index what it is told, but for what is broken.
type heardIndex struct {
	*semantic.Retriever
	appended func([]core.Entry) []core.Entry
	updated  func(core.Entry) bool
}

func (h *heardIndex) Appended(ctx context.Context, entries []core.Entry) error {
	if h.appended != nil {
		entries = h.appended(entries)
	}
	return h.Retriever.Appended(ctx, entries)
}

func (h *heardIndex) Updated(ctx context.Context, e core.Entry) error {
	if h.updated != nil && !h.updated(e) {
		return nil
	}
	return h.Retriever.Updated(ctx, e)
}

// deafIndexes are retrievers over an index that hears less than they do.
func deafIndexes() []broken {
	return []broken{
		brokenIndex("an index not told of appends", func(h *heardIndex) { h.appended = func([]core.Entry) []core.Entry { return nil } }),
		brokenIndex("an index told of the last of a batch", func(h *heardIndex) {
			h.appended = func(e []core.Entry) []core.Entry { return e[max(len(e)-1, 0):] }
		}),
		brokenIndex("an index not told of updates", func(h *heardIndex) { h.updated = func(core.Entry) bool { return false } }),
		brokenIndex("an index told of erasures alone", func(h *heardIndex) { h.updated = func(e core.Entry) bool { return e.Type == core.TypeErased } }),
	}
}

// TestListener: what the broken ones are made of is sound.
func TestListener(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &listener{}, memory.New() })
}
