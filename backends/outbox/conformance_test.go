package outbox_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// pair is a local and a remote store, and how both are opened again.
type pair struct {
	cfg           outbox.Config
	local, remote func(testing.TB) core.Store
}

func (p pair) open(tb testing.TB) *outbox.Store {
	tb.Helper()
	return open(tb, p.cfg, p.local(tb), p.remote(tb))
}

// pairs makes the pairs that are tested.
var pairs = map[string]func(testing.TB) pair{
	"memory-memory": func(tb testing.TB) pair {
		tb.Helper()
		local, remote := kept{memory.New()}, kept{memory.New()}
		return pair{
			durable(tb),
			func(testing.TB) core.Store { return local }, func(testing.TB) core.Store { return remote },
		}
	},
	"sqlite-memory": func(tb testing.TB) pair {
		tb.Helper()
		path, remote := filepath.Join(tb.TempDir(), "store.db"), kept{memory.New()}
		return pair{
			outbox.DefaultConfig(), // the journal beside the file
			func(tb testing.TB) core.Store { tb.Helper(); return openFile(tb, path) },
			func(testing.TB) core.Store { return remote },
		}
	},
	"sqlite-openbrain": func(tb testing.TB) pair {
		tb.Helper()
		path, server := filepath.Join(tb.TempDir(), "store.db"), openbraintest.New(tb)
		cfg := outbox.DefaultConfig()
		cfg.SearchWait = time.Minute // until the server can find it
		cfg.RemoteWait = time.Minute // a busy machine is not late
		return pair{
			cfg,
			func(tb testing.TB) core.Store { tb.Helper(); return openFile(tb, path) },
			func(tb testing.TB) core.Store { tb.Helper(); return openServer(tb, server) },
		}
	},
}

// conformanceCases is how many cases are played where the remote is a server: each takes hundreds of requests.
var conformanceCases = map[string]int{"memory-memory": 10, "sqlite-memory": 4, "sqlite-openbrain": 2}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, newPair := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "sqlite-openbrain" {
				needs.NoRace(t) // minutes with it, and what runs at once here is the outbox
			}
			opened := map[core.Store]pair{}
			conformance.TestStore(t, func(tb testing.TB) core.Store {
				tb.Helper()
				p := newPair(tb)
				s := p.open(tb)
				opened[s] = p
				return s
			}, conformance.WithCases(conformanceCases[name]), conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				p := opened[old]
				if err := old.Close(); err != nil {
					tb.Errorf("Close: %v", err)
				}
				s := p.open(tb)
				opened[s] = p
				return s
			}), conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store {
				tb.Helper()
				return opened[first].open(tb)
			}))
		})
	}
}
