package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

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
