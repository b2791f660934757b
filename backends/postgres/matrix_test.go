package postgres_test

import (
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/delegate"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
	"github.com/contextengine/contextengine/strategies/summary"
)

// retrievers builds each retriever of the framework; "store" is the store's own search.
var retrievers = map[string]func(s *postgres.Store) (core.Retriever, error){
	"recent": func(*postgres.Store) (core.Retriever, error) { return recent.New(recent.DefaultConfig()) },
	"store":  func(s *postgres.Store) (core.Retriever, error) { return semantic.New(semantic.DefaultConfig(), s) },
	"semantic": func(*postgres.Store) (core.Retriever, error) {
		index, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return nil, err
		}
		return semantic.New(semantic.DefaultConfig(), index)
	},
	"hybrid": func(s *postgres.Store) (core.Retriever, error) {
		index, err := lexical.New(lexical.DefaultConfig())
		if err != nil {
			return nil, err
		}
		return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index, "store": s})
	},
}

// compactors builds each compactor of the framework.
var compactors = map[string]func(conformance.Env) (core.Compactor, error){
	"archive":  func(conformance.Env) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) },
	"delegate": func(env conformance.Env) (core.Compactor, error) { return delegate.New(env.Host) },
	"summary": func(env conformance.Env) (core.Compactor, error) {
		return summary.New(summary.DefaultConfig(), env.Model)
	},
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
				layouts: &schemas{test: t, server: server, dsn: dsn, change: kind.change},
				configs: map[core.Store]postgres.Config{},
			}
			var all []conformance.Combination
			for retriever := range retrievers {
				for compactor := range compactors {
					all = append(all, m.combination(retriever, compactor, name))
				}
			}
			conformance.TestMatrix(t, all, counter.Count, conformance.WithCases(cases))
		})
	}
}

// matrix opens stores for combinations, and knows how each was opened.
type matrix struct {
	layouts *schemas
	mu      sync.Mutex
	configs map[core.Store]postgres.Config
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
			r, err := retrievers[retriever](s)
			if err != nil {
				tb.Fatal(err)
			}
			c, err := compactors[compactor](env)
			if err != nil {
				tb.Fatal(err)
			}
			cfg := engine.DefaultConfig()
			cfg.Compaction.Deadline = env.Deadline
			e, err := engine.New(engine.Parts{Store: env.Wrap(s), Retriever: r, Compactor: c, Counter: env.Count, Host: env.Host}, cfg, engine.WithIDs(env.IDs))
			if err != nil {
				tb.Fatal(err)
			}
			return e, s
		},
	}
}
