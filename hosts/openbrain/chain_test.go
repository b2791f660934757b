package openbrain_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/pgtest"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/delegate"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
	"github.com/contextengine/contextengine/strategies/recent"
	"github.com/contextengine/contextengine/strategies/semantic"
	"github.com/contextengine/contextengine/strategies/summary"
)

var servers pgtest.Servers

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

// chainCases is how many sessions are played with each combination; every message crosses HTTP and a store.
const chainCases = 1

// behind opens what the server of a chain keeps thoughts in.
var behind = map[string]func(t *testing.T) func(tb testing.TB) core.Store{
	"memory": func(*testing.T) func(testing.TB) core.Store {
		return func(testing.TB) core.Store { return memory.New() }
	},
	"sqlite": func(*testing.T) func(testing.TB) core.Store {
		return func(tb testing.TB) core.Store {
			tb.Helper()
			return openSQLite(tb, filepath.Join(tb.TempDir(), "thoughts.db"))
		}
	},
	"postgres": func(t *testing.T) func(testing.TB) core.Store { t.Helper(); return schemas(t, servers.Plain(t)) },
	"pgvector": func(t *testing.T) func(testing.TB) core.Store { t.Helper(); return schemas(t, servers.Vector(t)) },
}

// schemas opens stores in schemas of their own in one database of a server.
func schemas(t *testing.T, server *pgtest.Server) func(testing.TB) core.Store {
	t.Helper()
	dsn := server.Database(t)
	return func(tb testing.TB) core.Store {
		tb.Helper()
		cfg := postgres.DefaultConfig()
		cfg.DSN, cfg.Schema, cfg.MaxConns = dsn, "c"+strings.ToLower(rand.Text()[:16]), min(server.MaxConns(), 4)
		cfg.Pooler = server.MaxConns() == 1 // PGlite is one session for all connections
		s, err := postgres.Open(context.WithoutCancel(tb.Context()), cfg)
		if err != nil {
			tb.Fatalf("postgres: %v", err)
		}
		tb.Cleanup(func() {
			_ = s.Close()
			server.Exec(tb, dsn, "DROP SCHEMA IF EXISTS "+cfg.Schema+" CASCADE")
		})
		return s
	}
}

// TestChain plays engines through the client and this server, over each store behind it. All stores together see every pair of a retriever and a compactor; the conformance
// package plays each of them through the client. What a store promises is checked through the PostgreSQL ones; TestClientConforms does so for the others.
func TestChain(t *testing.T) {
	needs.NoRace(t)
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for shift, name := range []string{"memory", "sqlite", "postgres", "pgvector"} {
		t.Run(name, func(t *testing.T) {
			open := behind[name](t)
			if strings.HasPrefix(name, "p") {
				t.Run("store", func(t *testing.T) {
					conformance.TestStore(t, func(tb testing.TB) core.Store {
						tb.Helper()
						return startRemote(tb, open(tb), "")
					}, conformance.WithCases(chainCases))
				})
			}
			all := chains(name, shift, func(tb testing.TB) core.Store {
				tb.Helper()
				return homed{startRemote(tb, open(tb), ""), memory.New()}
			})
			if name == "pgvector" {
				all = all[1:2] // PGlite is many times slower, and vectors are semantic's
			}
			conformance.TestMatrix(t, all, counter.Count, conformance.WithCases(chainCases))
		})
	}
}

// TestSeveralEnginesWithoutViews: two engines of one session of a server see what the other one does there, although the server has no room for their views.
func TestSeveralEnginesWithoutViews(t *testing.T) {
	needs.NoRace(t)
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	bare := chains("bare", 0, func(tb testing.TB) core.Store {
		tb.Helper()
		return startRemote(tb, behind["sqlite"](t)(tb), "").Store
	})
	conformance.TestMatrix(t, bare, counter.Count, conformance.WithCases(chainCases), conformance.WithClaims("contract.several"))
}

// homed is a client's store beside a home for views, which the server has no room for.
type homed struct {
	core.Store
	core.ViewStore
}

func (h homed) Unwrap() core.Store { return h.Store }

// chains pairs each retriever with another compactor, over a chain. A shift makes other pairs of them.
func chains(name string, shift int, open func(testing.TB) core.Store) []conformance.Combination {
	retrievers := []struct {
		name string
		make func(core.Searcher) (core.Retriever, error)
	}{
		{"recent", func(core.Searcher) (core.Retriever, error) { return recent.New(recent.DefaultConfig()) }},
		{"semantic", func(s core.Searcher) (core.Retriever, error) { return semantic.New(semantic.DefaultConfig(), s) }},
		{"hybrid", func(core.Searcher) (core.Retriever, error) {
			index, err := lexical.New(lexical.DefaultConfig())
			if err != nil {
				return nil, err
			}
			return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
		}},
	}
	compactors := []struct {
		name string
		make func(conformance.Env) (core.Compactor, error)
	}{
		{"archive", func(conformance.Env) (core.Compactor, error) { return archive.New(archive.DefaultConfig()) }},
		{"delegate", func(env conformance.Env) (core.Compactor, error) { return delegate.New(env.Host) }},
		{"summary", func(env conformance.Env) (core.Compactor, error) {
			return summary.New(summary.DefaultConfig(), env.Model)
		}},
	}
	var out []conformance.Combination
	for i, retriever := range retrievers {
		compactor := compactors[(i+shift)%len(compactors)]
		out = append(out, conformance.Combination{
			Name: retriever.name + "+" + compactor.name + "+openbrain-" + name,
			Open: func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
				tb.Helper()
				store := env.Store
				if store == nil {
					store = open(tb)
				}
				searcher, ok := core.As[core.Searcher](store)
				if !ok {
					tb.Fatal("the client has no search")
				}
				r, err := retriever.make(searcher)
				if err != nil {
					tb.Fatal(err)
				}
				c, err := compactor.make(env)
				if err != nil {
					tb.Fatal(err)
				}
				cfg := engine.DefaultConfig()
				cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
				parts := engine.Parts{Store: env.Wrap(store), Retriever: r, Compactor: c, Counter: env.Count, Host: env.Host}
				e, err := engine.New(parts, cfg, engine.WithIDs(env.IDs))
				if err != nil {
					tb.Fatal(err)
				}
				return e, store
			},
		})
	}
	return out
}
