package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

// recollecting keeps its answers until it is told of something. It is sound where the key holds all of a query and everything it is told of ends them.
type recollecting struct {
	wordRetriever
	mu   sync.Mutex
	kept map[string][]core.Candidate
	key  func(q core.Query) string
	// ends reports whether word of a kind of change to entries in a scope ends what was kept for a query.
	ends func(kind string, scope core.Scope, q core.Query) bool
	// of holds what was asked.
	of map[string]core.Query
}

func wholeQuery(q core.Query) string {
	shown := ""
	for c := range rune(128) { // the suite tells what is shown by the last sign of a name
		if q.InWindow("E-" + string(c)) {
			shown += string(c)
		}
	}
	return fmt.Sprintf("%q %v %d %q", q.Prompt, q.Scopes(), q.Limit, shown)
}

func (r *recollecting) forget(kind string, scope core.Scope) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, q := range r.of {
		if r.ends == nil || r.ends(kind, scope, q) {
			delete(r.kept, k)
			delete(r.of, k)
		}
	}
	return nil
}

func (r *recollecting) Appended(_ context.Context, entries []core.Entry) error {
	for _, e := range entries {
		_ = r.forget("append", e.SessionID().Scope())
	}
	return nil
}

func (r *recollecting) Updated(_ context.Context, e core.Entry) error {
	return r.forget("update", e.SessionID().Scope())
}

func (r *recollecting) Deleted(_ context.Context, scope core.Scope, _ []string) error {
	return r.forget("delete", scope)
}

func (r *recollecting) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := wholeQuery(q)
	if r.key != nil {
		k = r.key(q)
	}
	got, ok := r.kept[k]
	if !ok {
		var err error
		if got, err = r.wordRetriever.Retrieve(ctx, q); err != nil {
			return nil, err
		}
		if r.kept == nil {
			r.kept, r.of = map[string][]core.Candidate{}, map[string]core.Query{}
		}
		r.kept[k], r.of[k] = got, q
	}
	out := slices.Clone(got)
	for i := range out {
		out[i].Entry = out[i].Entry.Clone()
	}
	return out, ctx.Err()
}

// tableRecollections are retrievers that keep what they once answered, or were told, longer than it is right.
func tableRecollections() []broken {
	var out []broken
	add := func(name string, over func() core.Retriever) {
		out = append(out, broken{class: "retriever: memories of its own", name: name, part: part{retriever: over}, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
			t.Helper()
			return early(5, only, func(opts ...conformance.Option) []conformance.Finding {
				return conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() },
					append(opts, conformance.WithClaims("sequence.retrieve"))...)
			})
		}})
	}
	for _, but := range []string{"append", "update", "delete"} {
		add("answers are kept over each "+but, func() core.Retriever {
			return &recollecting{ends: func(kind string, _ core.Scope, _ core.Query) bool { return kind != but }}
		})
	}
	add("what was granted keeps its answers", func() core.Retriever {
		return &recollecting{ends: func(_ string, scope core.Scope, q core.Query) bool {
			return scope.Agent == q.Scope.Agent
		}}
	})
	add("what was asked of an agent keeps its answers when a session changes", func() core.Retriever {
		return &recollecting{ends: func(_ string, scope core.Scope, q core.Query) bool {
			return slices.Contains(q.Scopes(), scope)
		}}
	})
	for name, key := range map[string]func(core.Query) string{
		"answers are kept for every limit": func(q core.Query) string { q.Limit = 0; return wholeQuery(q) },
		"answers are kept for every window": func(q core.Query) string {
			q.InWindow = func(string) bool { return false }
			return wholeQuery(q)
		},
		"answers are kept whatever is granted": func(q core.Query) string { q.Granted = nil; return wholeQuery(q) },
	} {
		add(name, func() core.Retriever { return &recollecting{key: key} })
	}
	listens := func(name string, change func(*listener)) {
		add(name, func() core.Retriever {
			l := &listener{}
			change(l)
			return l
		})
	}
	listens("what was deleted once is heard of no more", func(l *listener) {
		gone := map[string]bool{}
		l.remove = func(_ core.Scope, ids []string) []string {
			for _, id := range ids {
				gone[id] = true
			}
			return ids
		}
		l.append = func(_ map[string]core.Entry, entries []core.Entry) []core.Entry {
			return slices.DeleteFunc(slices.Clone(entries), func(e core.Entry) bool { return gone[e.ID] })
		}
	})
	listens("what was hidden once stays so", func(l *listener) {
		l.update = func(old, e core.Entry) core.Entry {
			if old.Hidden() {
				return old
			}
			return e
		}
	})
	listens("a session that was emptied is read no more", func(l *listener) {
		over := map[core.SessionID]bool{}
		l.remove = func(scope core.Scope, ids []string) []string {
			left := map[core.SessionID]int{}
			for id, e := range l.known {
				if scope.Contains(e.SessionID()) && !slices.Contains(ids, id) {
					left[e.SessionID()]++
				}
			}
			for _, id := range ids {
				if e, ok := l.known[id]; ok && left[e.SessionID()] == 0 {
					over[e.SessionID()] = true
				}
			}
			return ids
		}
		l.append = func(_ map[string]core.Entry, entries []core.Entry) []core.Entry {
			return slices.DeleteFunc(slices.Clone(entries), func(e core.Entry) bool { return over[e.SessionID()] })
		}
	})
	return out
}

// TestRecollectionsSound holds those that keep what they may to the check that the others are caught by.
func TestRecollectionsSound(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func() core.Retriever{
		"keeps answers":       func() core.Retriever { return &recollecting{} },
		"keeps what it hears": func() core.Retriever { return &listener{} },
		"reads the store":     func() core.Retriever { return &wordRetriever{} },
	} {
		found := conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return over(), memory.New() }, conformance.WithClaims("sequence.retrieve"))
		if len(found) > 0 {
			t.Errorf("one that %s: %v", name, found)
		}
	}
}

// TestRecollectionsShrink: a finding is of the part also where its case was made as small as it can be.
func TestRecollectionsShrink(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for _, b := range tableRecollections() {
		found := conformance.ExamineRetriever(t, func(testing.TB) (core.Retriever, core.Store) { return b.part.retriever(), memory.New() },
			conformance.WithClaims("sequence.retrieve"), conformance.WithExactly(10, 20260301))
		if len(found) != 1 || strings.Contains(found[0].Text, "panicked") {
			t.Errorf("%s: %v", b.name, found)
		}
	}
}
