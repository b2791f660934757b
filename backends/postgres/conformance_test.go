package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/pgtest"
)

// kinds are the ways in which a store can be laid out. cases is how many generated cases each check gets when CONFORMANCE_CASES does not say.
var kinds = map[string]struct {
	server func(testing.TB) *pgtest.Server
	change func(*postgres.Config)
	cases  int
}{
	"plain":      {cases: 4, server: servers.Plain, change: func(c *postgres.Config) { c.Vectors = postgres.VectorsOff }},
	"pooler":     {cases: 2, server: servers.Plain, change: func(c *postgres.Config) { c.Pooler = true }},
	"partitions": {cases: 2, server: servers.Plain, change: func(c *postgres.Config) { c.Partitions, c.Distributed = 4, true }},
	// All connections to PGlite are one session, so it is used like a pooler.
	"vector": {cases: 1, server: servers.Vector, change: func(c *postgres.Config) { c.Vectors, c.Pooler = postgres.VectorsOn, true }},
}

func TestConformance(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			server := kind.server(t)
			dsn := server.Database(t)
			if server.MaxConns() > 1 {
				t.Parallel()
			}
			configs := map[core.Store]postgres.Config{}
			layouts := &schemas{test: t, server: server, dsn: dsn, change: kind.change}
			start := func(tb testing.TB, cfg postgres.Config) core.Store {
				tb.Helper()
				s := open(tb, cfg)
				configs[s] = cfg
				return s
			}
			conformance.TestStore(t, func(tb testing.TB) core.Store {
				tb.Helper()
				return start(tb, layouts.empty(tb))
			}, conformance.WithCases(kind.cases), conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				if err := old.Close(); err != nil {
					tb.Errorf("Close: %v", err)
				}
				return start(tb, configs[old])
			}), conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store {
				tb.Helper()
				if server.MaxConns() < 2 {
					return first
				}
				return start(tb, configs[first])
			}))
		})
	}
}

// schemas lends out schemas: making the tables takes a hundred times as long as emptying them.
type schemas struct {
	// test is the one that the schemas are dropped with.
	test   testing.TB
	server *pgtest.Server
	dsn    string
	change func(*postgres.Config)
	mu     sync.Mutex
	free   []postgres.Config
}

// empty returns the configuration of a store without entries. It comes back at the end of the case, and is dropped at that of the test.
func (s *schemas) empty(tb testing.TB) postgres.Config {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var cfg postgres.Config
	if n := len(s.free); n > 0 {
		cfg, s.free = s.free[n-1], s.free[:n-1]
	} else {
		cfg = config(s.test, s.server, s.dsn)
		s.change(&cfg)
	}
	tb.Cleanup(func() {
		text := "DELETE FROM %[1]s.entries; DELETE FROM %[1]s.agents; DELETE FROM %[1]s.views; DELETE FROM %[1]s.gone"
		if cfg.Vectors == postgres.VectorsOn {
			text += "; DELETE FROM %[1]s.spaces"
		}
		s.server.Exec(tb, s.dsn, fmt.Sprintf(text, cfg.Schema))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, cfg)
	})
	return cfg
}
