package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	paths := map[core.Store]sqlite.Config{}
	start := func(tb testing.TB, cfg sqlite.Config) core.Store {
		tb.Helper()
		s := open(tb, cfg)
		paths[s] = cfg
		return s
	}
	conformance.TestStore(t, func(tb testing.TB) core.Store {
		tb.Helper()
		return start(tb, config(tb))
	}, conformance.WithCases(10), conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
		tb.Helper()
		if err := old.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
		return start(tb, paths[old])
	}), conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store {
		tb.Helper()
		return start(tb, paths[first])
	}), conformance.WithMedia(func(_ testing.TB, s core.Store) string { return filepath.Dir(paths[s].Path) }))
}
