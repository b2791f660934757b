package postgres_test

import (
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// retrievers builds each retriever of the framework, and two that ask the store's own search.
func retrievers() map[string]func(s *postgres.Store, e core.Embedder) (core.Retriever, error) {
	out := map[string]func(s *postgres.Store, e core.Embedder) (core.Retriever, error){
		"semantic-store": func(s *postgres.Store, _ core.Embedder) (core.Retriever, error) {
			return semantic.New(semantic.DefaultConfig(), s)
		},
		"hybrid-store": func(s *postgres.Store, _ core.Embedder) (core.Retriever, error) {
			index, err := lexical.New(lexical.DefaultConfig())
			if err != nil {
				return nil, err
			}
			return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index, "store": s})
		},
	}
	for name, open := range partstest.Retrievers() {
		out[name] = func(_ *postgres.Store, e core.Embedder) (core.Retriever, error) { return open(e) }
	}
	return out
}

// combinations lists the combinations that are played over a server: every retriever with every compactor, tiers apart from the others.
func (m *matrix) combinations(name string, tiers bool) (out []conformance.Combination) {
	for retriever := range retrievers() {
		for compactor := range partstest.Compactors() {
			if partstest.Tier(compactor) == tiers {
				out = append(out, m.combination(retriever, compactor, name))
			}
		}
	}
	return out
}

// TestMatrixIsWhole: every retriever and every compactor that the registry knows is played over PostgreSQL.
func TestMatrixIsWhole(t *testing.T) {
	played := make(map[string]bool)
	for _, tiers := range []bool{false, true} {
		for _, c := range (&matrix{}).combinations("plain", tiers) {
			played[c.Name] = true
		}
	}
	r := builtin.New()
	for _, retriever := range r.Names(registry.KindRetriever) {
		for _, compactor := range r.Names(registry.KindCompactor) {
			if name := retriever + "+" + compactor + "+plain"; !played[name] {
				t.Errorf("%s is not played", name)
			}
		}
	}
	if len(played) < 3*6 {
		t.Errorf("%d combinations are played", len(played))
	}
}

// TestMatrix plays generated sessions with every retriever and compactor over a plain server, and over one with vectors.
func TestMatrix(t *testing.T) {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"plain", "vector"} {
		t.Run(name, func(t *testing.T) {
			kind := kinds[name]
			server := kind.server(t)
			dsn := server.Database(t)
			if server.MaxConns() > 1 {
				t.Parallel()
			}
			m := &matrix{
				embedder: partstest.Embedder(t),
				layouts:  &schemas{test: t, server: server, dsn: dsn, change: kind.change},
				configs:  map[core.Store]postgres.Config{},
			}
			conformance.TestMatrix(t, m.combinations(name, false), counter.Count, conformance.WithCases(max(kind.cases/2, 1)))
			if name == "plain" { // vectors are nothing to a tier
				conformance.TestMatrix(t, m.combinations(name, true), counter.Count, conformance.WithCases(max(kind.cases/4, 1)))
			}
		})
	}
}

// matrix opens stores for combinations, and knows how each was opened.
type matrix struct {
	layouts  *schemas
	embedder core.Embedder
	mu       sync.Mutex
	configs  map[core.Store]postgres.Config
}

func (m *matrix) open(tb testing.TB, cfg postgres.Config) *postgres.Store {
	tb.Helper()
	s := open(tb, cfg)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[s] = cfg
	return s
}

func (m *matrix) combination(retriever, compactor, name string) conformance.Combination {
	return conformance.Combination{
		Name: retriever + "+" + compactor + "+" + name,
		Reopen: func(tb testing.TB, old core.Store) core.Store {
			tb.Helper()
			s, ok := core.As[*postgres.Store](old)
			if !ok {
				tb.Fatalf("%T is no store of this package", old)
			}
			if err := s.Close(); err != nil {
				tb.Fatal(err)
			}
			m.mu.Lock()
			cfg := m.configs[s]
			m.mu.Unlock()
			return m.open(tb, cfg)
		},
		Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
			tb.Helper()
			s, ok := core.As[*postgres.Store](env.Store)
			if !ok {
				s = m.open(tb, m.layouts.empty(tb))
			}
			r, err := retrievers()[retriever](s, m.embedder)
			if err != nil {
				tb.Fatal(err)
			}
			c, err := partstest.Compactors()[compactor](env)
			if err != nil {
				tb.Fatal(err)
			}
			cfg := engine.DefaultConfig()
			cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
			e, err := engine.New(engine.Parts{Store: env.Wrap(s), Retriever: r, Compactor: c, Counter: env.Count, Host: env.Host}, cfg, engine.WithIDs(env.IDs))
			if err != nil {
				tb.Fatal(err)
			}
			return e, s
		},
	}
}
