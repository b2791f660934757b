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
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// o200k is the counter the promise is made for.
var o200k = sync.OnceValues(func() (core.TokenCounter, error) {
	c, err := tiktoken.New("o200k_base")
	if err != nil {
		return nil, err
	}
	return c.Count, nil
})

func counter(tb testing.TB) core.TokenCounter {
	tb.Helper()
	count, err := o200k()
	if err != nil {
		tb.Fatalf("tiktoken.New: %v", err)
	}
	return count
}

// wordRetriever recalls the entries that share most words with the prompt: a plain scan, enough to fill recall blocks.
type wordRetriever struct{ store core.Store }

var (
	_ core.Retriever = (*wordRetriever)(nil)
	_ core.Attacher  = (*wordRetriever)(nil)
)

func (r *wordRetriever) Attach(s core.Store) error { r.store = s; return nil }

func (r *wordRetriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	words := map[string]float64{}
	for word := range strings.FieldsSeq(q.Prompt) {
		words[word]++
	}
	var out []core.Candidate
	known := map[string]bool{}
	for _, scope := range q.Scopes() {
		for e, err := range core.All(ctx, r.store, scope, true) {
			if err != nil {
				return nil, fmt.Errorf("words: scan %q: %w", scope.Session, err)
			}
			if e.Hidden() || e.Type == core.TypeSummary || q.InWindow(e.ID) {
				continue
			}
			if known[e.ID] {
				continue
			}
			known[e.ID] = true
			score, text := 0.0, e.Text()
			for word, times := range words {
				if strings.Contains(text, word) {
					score += times
				}
			}
			out = append(out, core.Candidate{Entry: e, Score: score, Source: "words"})
		}
	}
	slices.SortStableFunc(out, func(a, b core.Candidate) int { return int(b.Score - a.Score) })
	return out[:min(len(out), q.Limit)], nil
}

// compactors builds each compactor of the framework.
var compactors = partstest.Compactors()

// setup says which parts an engine is made of.
type setup struct {
	compactor string
	// compacts makes a compactor that has no name; compactor is empty then.
	compacts  func(conformance.Env) (core.Compactor, error)
	retriever func() core.Retriever
	// scored says that the retriever scores all that it proposes.
	scored bool
	change func(*engine.Config)
	// reads changes the store that the engine reads and writes.
	reads func(core.Store) core.Store
	// ids changes what makes the ids of entries.
	ids func(next func() string) func() string
}

// open builds an engine over the memory store.
func (s setup) open(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
	tb.Helper()
	store := env.Store
	if store == nil {
		store = memory.New()
	}
	return s.over(tb, env, store), store
}

func (s setup) over(tb testing.TB, env conformance.Env, store core.Store) core.ContextEngine {
	tb.Helper()
	build := s.compacts
	if build == nil {
		build = compactors[s.compactor]
	}
	c, err := build(env)
	if err != nil {
		tb.Fatalf("compactor %s: %v", s.compactor, err)
	}
	cfg := engine.DefaultConfig()
	cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
	if s.change != nil {
		s.change(&cfg)
	}
	parts := engine.Parts{Store: env.Wrap(store), Compactor: c, Counter: env.Count, Host: env.Host}
	if s.reads != nil {
		parts.Store = s.reads(parts.Store)
	}
	if v, ok := store.(withViews); ok {
		parts.Views = v.views
	}
	if s.retriever != nil {
		parts.Retriever = s.retriever()
	}
	ids := env.IDs
	if s.ids != nil {
		ids = s.ids(ids)
	}
	e, err := engine.New(parts, cfg, engine.WithIDs(ids))
	if err != nil {
		tb.Fatalf("engine.New: %v", err)
	}
	return e
}

func words() core.Retriever { return &wordRetriever{} }
