package outbox_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/summary"
)

// matrixCompactors are those that need nothing of the store but what core.Store promises.
var matrixCompactors = map[string]func(conformance.Env) (core.Compactor, error){
	"archive": func(conformance.Env) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) },
	"summary": func(env conformance.Env) (core.Compactor, error) {
		return summary.New(summary.DefaultConfig(), env.Model)
	},
}

// silent is a remote whose search does not answer.
type silent struct{ kept }

func (silent) Search(ctx context.Context, _ core.SearchQuery) ([]core.Hit, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// silentPair is a pair for the engine alone: as a store it does not find what it holds, and says so.
func silentPair(tb testing.TB) pair {
	tb.Helper()
	cfg, local, remote := durable(tb), kept{memory.New()}, silent{kept{memory.New()}}
	cfg.RemoteWait = time.Millisecond
	return pair{cfg, func(testing.TB) core.Store { return local }, func(testing.TB) core.Store { return remote }}
}

// TestMatrix plays generated sessions over each pair of stores.
func TestMatrix(t *testing.T) {
	t.Parallel()
	o200k, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(pairs)
	all["memory-silent"] = silentPair
	for name, newPair := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "sqlite-openbrain" {
				needs.NoRace(t) // minutes with it, and what runs at once here is the outbox
			}
			conformance.TestMatrix(t, matrixOver(name, newPair), o200k.Count, conformance.WithCases(4))
		})
	}
}

func matrixOver(name string, newPair func(testing.TB) pair) []conformance.Combination {
	opened := map[core.Store]pair{}
	start := func(tb testing.TB, p pair) core.Store {
		tb.Helper()
		s := p.open(tb)
		opened[s] = p
		return s
	}
	var out []conformance.Combination
	for compactor, newCompactor := range matrixCompactors {
		out = append(out, conformance.Combination{
			Name: "hybrid+" + compactor + "+" + name,
			Reopen: func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				s, ok := core.As[*outbox.Store](old)
				if !ok {
					tb.Fatalf("%T is no outbox", old)
				}
				if err := s.Close(); err != nil {
					tb.Fatalf("Close: %v", err)
				}
				return start(tb, opened[s])
			},
			Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
				tb.Helper()
				store := env.Store
				if store == nil {
					store = start(tb, newPair(tb))
				}
				return newEngine(tb, env, store, newCompactor), store
			},
		})
	}
	return out
}

func newEngine(tb testing.TB, env conformance.Env, store core.Store, newCompactor func(conformance.Env) (core.Compactor, error)) core.ContextEngine {
	tb.Helper()
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	searchers := map[string]core.Searcher{"lexical": index}
	if own, ok := core.As[core.Searcher](store); ok {
		searchers["store"] = own
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), searchers)
	if err != nil {
		tb.Fatal(err)
	}
	compactor, err := newCompactor(env)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
	e, err := engine.New(engine.Parts{
		Store: env.Wrap(store), Retriever: retriever, Compactor: compactor, Counter: env.Count, Host: env.Host,
	}, cfg, engine.WithIDs(env.IDs))
	if err != nil {
		tb.Fatalf("engine.New: %v", err)
	}
	return e
}
