package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/summary"
)

// TestCompactorsOfSmallChunks: a sound compactor passes also where it publishes many small patches, each of which may end a summary.
func TestCompactorsOfSmallChunks(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	tokens := 500 + rand.IntN(800) // another size each time
	t.Run(fmt.Sprint(tokens), func(t *testing.T) {
		conformance.TestCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
			tb.Helper()
			cfg := summary.DefaultConfig()
			cfg.ChunkTokens = tokens
			c, err := summary.New(cfg, m)
			if err != nil {
				tb.Fatal(err)
			}
			return c
		})
	})
}

func TestCompactorsInTree(t *testing.T) {
	t.Parallel()
	for name, open := range compactors {
		t.Run(name, func(t *testing.T) {
			conformance.TestCompactor(t, func(tb testing.TB, m *conformance.Model) core.Compactor {
				tb.Helper()
				c, err := open(conformance.Env{Host: conformance.NewHost(m), Model: m})
				if err != nil {
					tb.Fatalf("compactor %s: %v", name, err)
				}
				return c
			})
		})
	}
}
