package graphmemory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/examples/graphmemory"
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
		return graph(tb), open(tb)
	}, conformance.WithFindsNothing()) // an ordinary conversation names nothing; what is found is tested below
}

// TestEngine holds an engine with both parts to all promises.
func TestEngine(t *testing.T) {
	counter, err := tiktoken.New("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	conformance.TestEngine(t, "graph+archive+memory", func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
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
			Store: env.Wrap(store), Retriever: graph(tb),
			Compactor: compactor, Counter: env.Count, Host: env.Host,
		}, cfg, engine.WithIDs(env.IDs))
		if err != nil {
			tb.Fatal(err)
		}
		return e, store
	}, counter.Count)
}

func graph(tb testing.TB) *graphmemory.Retriever {
	tb.Helper()
	r, err := graphmemory.New(graphmemory.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func Example() {
	ctx := context.Background()
	r, err := graphmemory.New(graphmemory.Config{Hops: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := memory.New()
	for i, text := range []string{"my neighbour is called Ines", "the dog of Ines is Pogo", "yesterday Pogo ate a shoe", "it rains in Oslo"} {
		m := message.New(message.User, text)
		id := fmt.Sprint("e", i)
		entry := core.Entry{ID: id, Key: id, Seq: int64(i), Agent: "main", Session: "s", Type: core.TypeMessage, Role: m.Role, Message: m}
		if _, err := store.Append(ctx, []core.Entry{entry}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := r.Attach(store); err != nil {
		fmt.Println(err)
		return
	}
	found, err := r.Retrieve(ctx, core.Query{
		Scope: core.Scope{Agent: "main"}, Prompt: "how is ines?", Limit: 5, Tokens: 500, InWindow: func(string) bool { return false },
	})
	for _, c := range found {
		fmt.Printf("%.2f %s\n", c.Score, c.Entry.Text())
	}
	fmt.Println(err)
	// Output:
	// 0.95 the dog of Ines is Pogo
	// 0.63 my neighbour is called Ines
	// 0.32 yesterday Pogo ate a shoe
	// <nil>
}
