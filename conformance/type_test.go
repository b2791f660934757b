package conformance_test

import (
	"context"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// TestTypeUnheeded: a store that leaves out nothing where a scan is for one type is right.
func TestTypeUnheeded(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, func(testing.TB) core.Store {
		s := &brokenStore{Store: memory.New()}
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			q.Type = ""
			return s.Store.Scan(ctx, q)
		}
		return s
	}, conformance.WithClaims("type"))
}
