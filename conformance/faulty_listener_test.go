package conformance_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// listener is a retriever with a memory of its own: what it was told, and what it reads of a scope when it is first asked. It is sound where no change makes it worse.
type listener struct {
	mu    sync.Mutex
	known map[string]core.Entry
	store core.Store
	// deaf ones read nothing of what was there before.
	deaf   bool
	read   map[core.Scope]bool
	append func(known map[string]core.Entry, entries []core.Entry) []core.Entry
	update func(old, e core.Entry) core.Entry
	remove func(scope core.Scope, ids []string) []string
}

func (l *listener) Attach(s core.Store) error { l.store = s; return nil }

func (l *listener) put(entries []core.Entry) {
	if l.known == nil {
		l.known = map[string]core.Entry{}
	}
	for _, e := range entries {
		l.known[e.ID] = entriesOf([]core.Entry{e}, nil)[0]
	}
}

func (l *listener) Appended(_ context.Context, entries []core.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.append != nil {
		entries = l.append(l.known, entries)
	}
	l.put(entries)
	return nil
}

func (l *listener) Updated(_ context.Context, e core.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.update != nil {
		e = l.update(l.known[e.ID], e)
	}
	l.put([]core.Entry{e})
	return nil
}

func (l *listener) Deleted(_ context.Context, scope core.Scope, ids []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remove != nil {
		ids = l.remove(scope, ids)
	}
	for _, id := range ids {
		if e, ok := l.known[id]; ok && scope.Contains(e.SessionID()) {
			delete(l.known, id)
		}
	}
	return nil
}

func (l *listener) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range q.Scopes() {
		if l.deaf || l.read[s] {
			continue
		}
		for e, err := range core.All(ctx, l.store, s, false) {
			if err != nil {
				return nil, err
			}
			l.put([]core.Entry{e})
		}
		if l.read == nil {
			l.read = map[core.Scope]bool{}
		}
		l.read[s] = true
	}
	var out []core.Candidate
	for _, id := range slices.Sorted(maps.Keys(l.known)) {
		e := l.known[id]
		if q.InWindow(id) || e.Hidden() || len(out) == q.Limit {
			continue
		}
		if slices.ContainsFunc(q.Scopes(), func(s core.Scope) bool { return s.Contains(e.SessionID()) }) {
			out = append(out, core.Candidate{Entry: e, Source: "listener"})
		}
	}
	return out, nil
}

func brokenListener(name string, change func(*listener)) broken {
	over := func() core.Retriever {
		l := &listener{}
		change(l)
		return l
	}
	return broken{class: "retriever: told", name: name, part: part{retriever: over}, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() },
			conformance.WithExactly(5, 20260301), conformance.WithoutShrinking(), conformance.WithFirst())
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

// TestListener: what the broken ones are made of is sound.
func TestListener(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return &listener{}, memory.New() })
}
