package keyed_test

import (
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/keyed"
)

func TestConformance(t *testing.T) {
	conformance.TestStore(t, func(tb testing.TB) core.Store {
		tb.Helper()
		s := keyed.New(new(keyed.Memory))
		tb.Cleanup(func() { _ = s.Close() })
		return s
	})
}
