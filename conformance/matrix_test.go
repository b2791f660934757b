package conformance_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// backend is a store of the matrix.
type backend struct {
	open   func(tb testing.TB) core.Store
	reopen func(tb testing.TB, old core.Store) core.Store
	// cases is how many sessions are played with each combination.
	cases int
}

var backends = map[string]backend{
	"memory": {open: func(testing.TB) core.Store { return memory.New() }, cases: 24},
	"sqlite": {
		open: func(tb testing.TB) core.Store {
			tb.Helper()
			return openFile(tb, filepath.Join(tb.TempDir(), "store.db"))
		},
		reopen: func(tb testing.TB, old core.Store) core.Store {
			tb.Helper()
			s, ok := core.As[*sqlite.Store](old)
			if !ok {
				tb.Fatalf("%T is no sqlite store", old)
			}
			if err := s.Close(); err != nil {
				tb.Fatalf("close: %v", err)
			}
			return openFile(tb, s.Path())
		},
		cases: 8,
	},
	"openbrain": {open: openServer, cases: 3},
}

func openFile(tb testing.TB, path string) core.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("sqlite.Open: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// withViews is a store without room for views beside the local one that an engine gets for it.
type withViews struct {
	core.Store
	views core.ViewStore
}

func (s withViews) Unwrap() core.Store { return s.Store }

// openServer opens a client of a server of its own, over real HTTP.
func openServer(tb testing.TB) core.Store {
	tb.Helper()
	server := openbraintest.New(tb)
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = server.URL(), server.Key()
	s := openbrain.New(cfg)
	tb.Cleanup(func() { _ = s.Close() })
	return withViews{s, memory.New()}
}

// retrievers builds each retriever of the framework. Those that go by meaning ask an embedder.
var retrievers = map[string]func(core.Embedder) (core.Retriever, error){
	"recent": func(core.Embedder) (core.Retriever, error) { return recent.New(recent.DefaultConfig()) },
	"semantic": func(e core.Embedder) (core.Retriever, error) {
		index, err := semantic.NewVector(semantic.DefaultVectorConfig(), e)
		if err != nil {
			return nil, err
		}
		return semantic.New(semantic.DefaultConfig(), index)
	},
	"hybrid": func(e core.Embedder) (core.Retriever, error) {
		words, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return nil, err
		}
		meaning, err := semantic.NewVector(semantic.DefaultVectorConfig(), e)
		if err != nil {
			return nil, err
		}
		return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": words, "vector": meaning})
	},
}

// TestMatrix plays generated sessions with every retriever, every compactor and every store.
func TestMatrix(t *testing.T) {
	count, embedder := counter(t), loopback(t)
	for store, b := range backends {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			conformance.TestMatrix(t, b.combinations(store, embedder, false), count, conformance.WithCases(b.cases))
			// What tiers do differently they do in core; a quarter of the sessions finds what a store makes of it.
			conformance.TestMatrix(t, b.combinations(store, embedder, true), count, conformance.WithCases(max(b.cases/4, 2)))
		})
	}
}

// tiered are the compactors that are made to be tiers of a chain, and the chain.
var tiered = map[string]bool{"mask": true, "index": true, "chain": true}

// combinations lists every retriever with every compactor over a store, tiers apart from the others.
func (b backend) combinations(name string, embedder core.Embedder, tiers bool) []conformance.Combination {
	var out []conformance.Combination
	for retriever, newRetriever := range retrievers {
		for compactor := range compactors {
			if tiered[compactor] != tiers {
				continue
			}
			out = append(out, conformance.Combination{
				Name:   retriever + "+" + compactor + "+" + name,
				Reopen: b.reopen,
				Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
					tb.Helper()
					r, err := newRetriever(embedder)
					if err != nil {
						tb.Fatalf("%s: %v", retriever, err)
					}
					store := env.Store
					if store == nil {
						store = b.open(tb)
					}
					return setup{compactor: compactor, retriever: func() core.Retriever { return r }}.over(tb, env, store), store
				},
			})
		}
	}
	return out
}

// TestMatrixVariants plays the settings that the defaults leave out: recall across sessions, strict failures, early compaction.
func TestMatrixVariants(t *testing.T) {
	across := func(c *engine.Config) { c.Recall.AcrossSessions = true }
	eager := func(c *engine.Config) {
		c.RecentMessages, c.Compaction.Due, c.Failure = 2, 0.1, engine.FailStrict
		c.Recall.ResetMessages = 6
		c.Recall.Deadline = time.Minute // a busy machine is no broken part
	}
	conformance.TestMatrix(t, []conformance.Combination{
		{Name: "none+archive+memory", Open: setup{compactor: "archive"}.open},
		{Name: "words+archive+memory/across", Open: setup{compactor: "archive", retriever: words, change: across}.open, AcrossSessions: true},
		{Name: "words+delegate+memory", Open: setup{compactor: "delegate", retriever: words}.open},
		{Name: "words+summary+memory/eager", Open: setup{compactor: "summary", retriever: words, change: eager}.open},
	}, counter(t))
}
