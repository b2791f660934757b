package lastmention_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/examples/lastmention"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/archive"
)

func open(tb testing.TB) core.Store {
	tb.Helper()
	s := memory.New()
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestRetriever(t *testing.T) {
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
		tb.Helper()
		return lastmention.New(lastmention.DefaultConfig()), open(tb)
	})
}

// TestEngine holds an engine with both parts to all promises.
func TestEngine(t *testing.T) {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	conformance.TestEngine(t, "lastmention+archive+memory", func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
		tb.Helper()
		store := env.Store // set after a simulated restart
		if store == nil {
			store = open(tb)
		}
		compactor, err := archive.New(archive.DefaultConfig())
		if err != nil {
			tb.Fatal(err)
		}
		cfg := engine.DefaultConfig()
		cfg.Compaction.Deadline, cfg.Recall.Deadline = env.Deadline, env.Deadline
		e, err := engine.New(engine.Parts{
			Store: env.Wrap(store), Retriever: lastmention.New(lastmention.DefaultConfig()),
			Compactor: compactor, Counter: env.Count, Host: env.Host,
		}, cfg, engine.WithIDs(env.IDs))
		if err != nil {
			tb.Fatal(err)
		}
		return e, store
	}, counter.Count)
}
