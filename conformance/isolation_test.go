package conformance_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// TestThousandAgents: with a thousand agents in one store, no query of one returns an entry of another, nor can one change another's. The
// PostgreSQL store and the OpenBrain server have tests of their own for this.
func TestThousandAgents(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) core.Store{
		"memory": func(*testing.T) core.Store { return memory.New() },
		"sqlite": func(t *testing.T) core.Store { t.Helper(); return openFile(t, filepath.Join(t.TempDir(), "store.db")) },
		"openbrain": func(t *testing.T) core.Store {
			t.Helper()
			server := openbraintest.New(t)
			cfg := openbrain.DefaultConfig()
			cfg.BaseURL, cfg.APIKey = server.URL(), server.Key()
			return openbrain.New(cfg)
		},
		"outbox": func(t *testing.T) core.Store {
			t.Helper()
			cfg := outbox.DefaultConfig()
			cfg.Volatile = true
			s, err := outbox.Open(t.Context(), cfg, memory.New(), memory.New())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			rounds := 150
			if name == "openbrain" {
				needs.NoRace(t) // minutes with it; its package plays what runs at once
				rounds = 30     // every call is a request that lists
			}
			isolate(t, s, rounds)
		})
	}
}

const crowd = 1000

// crowdEntry is the n-th entry of an agent. All say nearly the same.
func crowdEntry(agent, n int) core.Entry {
	m := message.New(message.User, fmt.Sprintf("the kettle whistles for agent number %d, time %d", agent, n))
	return core.Entry{
		ID: fmt.Sprintf("e%d-%d", agent, n), Agent: fmt.Sprintf("agent-%d", agent), Session: "main", Seq: int64(n), Role: m.Role,
		Type: core.TypeMessage, Time: time.Unix(1_700_000_000, 0).UTC(), Tokens: 9, Key: fmt.Sprint("k", n), Fingerprint: message.Fingerprint(m), Message: m,
	}
}

func isolate(t *testing.T, s core.Store, rounds int) {
	t.Helper()
	var batch []core.Entry
	for agent := range crowd {
		batch = append(batch, crowdEntry(agent, 0), crowdEntry(agent, 1))
		if len(batch) >= 100 {
			if _, err := s.Append(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	searcher, ok := core.As[core.Searcher](s)
	if !ok {
		index, err := lexical.New(lexical.DefaultConfig())
		if err == nil {
			err = index.Attach(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		searcher = index
	}
	rng := drawn.Rand(t)
	for range rounds {
		mine, other := rng.IntN(crowd), rng.IntN(crowd)
		scope := core.Scope{Agent: fmt.Sprintf("agent-%d", mine)}
		n := 0
		for e, err := range core.All(t.Context(), s, scope, n%2 == 0) {
			if err != nil || e.Agent != scope.Agent {
				t.Fatalf("a scan of %s returns %q of %s, %v", scope.Agent, e.ID, e.Agent, err)
			}
			n++
		}
		if n != 2 {
			t.Fatalf("a scan of %s returns %d entries, want 2", scope.Agent, n)
		}
		hits, err := searcher.Search(t.Context(), core.SearchQuery{Scope: scope, Text: "kettle whistles", Limit: 10})
		if err != nil || len(hits) != 2 || hits[0].Entry.Agent != scope.Agent || hits[1].Entry.Agent != scope.Agent {
			t.Fatalf("a search of %s: %d hits, %v: %+v", scope.Agent, len(hits), err, hits)
		}
		if mine == other {
			continue
		}
		id := fmt.Sprintf("e%d-0", other)
		if got, err := s.Get(t.Context(), scope, []string{id}); !errors.Is(err, core.ErrNotFound) || len(got) > 0 {
			t.Fatalf("%s reads %s: %v", scope.Agent, id, err)
		}
		if err := s.Update(t.Context(), scope, id, core.Change{Meta: map[string]string{"a": "b"}}); !errors.Is(err, core.ErrNotFound) {
			t.Fatalf("%s changes %s: %v", scope.Agent, id, err)
		}
		if n, err := s.Delete(t.Context(), scope, []string{id}); n != 0 || err != nil {
			t.Fatalf("%s deletes %s: %d, %v", scope.Agent, id, n, err)
		}
	}
}
