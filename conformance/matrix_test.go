package conformance_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
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
		cases: 5,
	},
	"openbrain": {open: openServer, cases: 1}, // hundreds of requests each
	"outbox":    {open: openOutbox, cases: 2},
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

// openOutbox opens an outbox in front of a memory store. The journal is in memory: the matrix of the package looks at what survives.
func openOutbox(tb testing.TB) core.Store {
	tb.Helper()
	cfg := outbox.DefaultConfig()
	cfg.Volatile = true
	s, err := outbox.Open(tb.Context(), cfg, openFile(tb, filepath.Join(tb.TempDir(), "store.db")), memory.New())
	if err != nil {
		tb.Fatalf("outbox.Open: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// retrievers builds each retriever of the framework.
var retrievers = partstest.Retrievers()

// TestMatrix plays generated sessions with every retriever, every compactor and every store.
func TestMatrix(t *testing.T) {
	t.Parallel()
	count, embedder := counter(t), partstest.Embedder(t)
	for store, b := range backends {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			if store != "memory" {
				needs.NoRace(t) // what runs at once is the engine's, and the store's, which the tests of its package play
			}
			conformance.TestMatrix(t, b.combinations(store, embedder, false), count, conformance.WithCases(b.cases))
			conformance.TestMatrix(t, b.combinations(store, embedder, true), count, conformance.WithCases(max(b.cases/4, 1)))
		})
	}
}

// combinations lists every retriever with every compactor over a store, tiers apart from the others.
func (b backend) combinations(name string, embedder core.Embedder, tiers bool) []conformance.Combination {
	var out []conformance.Combination
	for retriever, newRetriever := range retrievers {
		for compactor := range compactors {
			if partstest.Tier(compactor) != tiers {
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

// TestMatrixIsWhole: every store, retriever and compactor that the registry knows is played with every other, and so is every combination that it lists.
func TestMatrixIsWhole(t *testing.T) {
	played := make(map[string]int)
	for store, b := range backends {
		for _, tiers := range []bool{false, true} {
			for _, c := range b.combinations(store, nil, tiers) {
				played[c.Name]++
			}
		}
	}
	r := builtin.New()
	want := 0
	for _, store := range r.Names(registry.KindStore) {
		if store == "postgres" {
			continue // it needs a server; backends/postgres has the same matrix and the same test
		}
		for _, retriever := range r.Names(registry.KindRetriever) {
			for _, compactor := range r.Names(registry.KindCompactor) {
				want++
				if name := retriever + "+" + compactor + "+" + store; played[name] != 1 {
					t.Errorf("%s is played %d times, want once", name, played[name])
				}
			}
		}
	}
	if len(played) != want || want < 4*3*6 {
		t.Errorf("%d combinations are played, want %d", len(played), want)
	}
	for _, c := range r.Combinations() {
		if played[c.Name()] == 0 {
			t.Errorf("the registry lists %s, which is not played", c.Name())
		}
	}
}

// TestMatrixVariants plays the settings that the defaults leave out: recall across sessions, strict failures, early compaction.
func TestMatrixVariants(t *testing.T) {
	t.Parallel()
	across := func(c *engine.Config) { c.Recall.AcrossSessions, c.Recall.Gate = true, false }
	eager := func(c *engine.Config) {
		c.RecentMessages, c.Compaction.Due, c.Failure = 2, 0.1, engine.FailStrict
		c.Recall.ResetMessages = 6
		c.Recall.Deadline = time.Minute // a busy machine is no broken part
	}
	conformance.TestMatrix(t, []conformance.Combination{
		{Name: "none+archive+memory", Open: setup{compactor: "archive"}.open},
		{Name: "words+archive+memory/across", Open: setup{compactor: "archive", retriever: words, change: across}.open, AcrossSessions: true, Scored: true},
		{Name: "words+delegate+memory", Open: setup{compactor: "delegate", retriever: words}.open, Scored: true},
		{Name: "words+summary+memory/eager", Open: setup{compactor: "summary", retriever: words, change: eager}.open, Scored: true},
	}, counter(t))
}
