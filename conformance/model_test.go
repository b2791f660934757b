package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// TestCounterTiktoken holds the built-in counters to the contract of a counter.
func TestCounterTiktoken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"o200k_base", "cl100k_base"} {
		t.Run(name, func(t *testing.T) {
			conformance.TestCounter(t, func(tb testing.TB) core.TokenCounter {
				tb.Helper()
				c, err := tiktoken.New(name)
				if err != nil {
					tb.Fatalf("tiktoken.New: %v", err)
				}
				return c.Count
			})
		})
	}
}

// TestEmbedderInTree holds an embedder over HTTP to the contract.
func TestEmbedderInTree(t *testing.T) {
	t.Parallel()
	conformance.TestEmbedder(t, partstest.Embedder)
}

// TestCompleterModel holds the suite's own model to the contract of a completer.
func TestCompleterModel(t *testing.T) {
	t.Parallel()
	conformance.TestCompleter(t, func(testing.TB) core.Completer { return &conformance.Model{} })
}
