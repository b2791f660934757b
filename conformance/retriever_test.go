package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// TestRetrieverHybrid holds the default to the retriever's contract, with searchers that fail and hang among others.
func TestRetrieverHybrid(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
		tb.Helper()
		r, err := retrievers["hybrid"](partstest.Embedder(t))
		if err != nil {
			tb.Fatal(err)
		}
		return r, memory.New()
	}, conformance.WithSearchers(func(tb testing.TB, searchers map[string]core.Searcher) core.Retriever {
		tb.Helper()
		r, err := hybrid.New(hybrid.DefaultConfig(), searchers)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}))
}

// TestRetrieverSemantic holds the one that asks a single searcher to the contract.
func TestRetrieverSemantic(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
		tb.Helper()
		r, err := retrievers["semantic"](partstest.Embedder(t))
		if err != nil {
			tb.Fatal(err)
		}
		return r, memory.New()
	})
}
