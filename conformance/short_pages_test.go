package conformance_test

import (
	"context"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// TestShortPages: a store whose pages hold less than they are asked for is right, if they say that there is more.
func TestShortPages(t *testing.T) {
	t.Parallel()
	conformance.TestStore(t, func(testing.TB) core.Store {
		s := &brokenStore{Store: memory.New()}
		s.scan = func(ctx context.Context, q core.ScanQuery) (core.Page, error) {
			q.Limit = min(q.Limit, 7)
			return s.Store.Scan(ctx, q)
		}
		return s
	}, conformance.WithCases(5), conformance.WithClaims("race", "shared.linear", "scan", "odd.batch"))
}
