package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// openMemory opens the reference store.
func openMemory(tb testing.TB) core.Store {
	tb.Helper()
	s := memory.New()
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestStoreMemory(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, openMemory)
}
