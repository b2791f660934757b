package openbrain_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func TestConformance(t *testing.T) {
	type b = openbraintest.Behavior
	for _, c := range []struct {
		name  string
		cases int
		set   func(*b)
		more  []conformance.Option
	}{
		{"documented", 3, func(*b) {}, nil},
		{"awkward", 1, func(x *b) {
			x.NoList, x.NoOffset, x.NumericIDs, x.Nested, x.MetadataText, x.RecentIgnoresSource = true, true, true, true, true, true
			x.List, x.Create, x.ScoreField, x.NaiveTimes, x.MergePatch, x.NoStats = "data", "id", "distance", true, true, true
		}, nil},
		// Each read of such a server lists what it shows. Odd entries, which are many and long, are no others there.
		{"neither lists nor single reads", 1, func(x *b) { x.NoList, x.NoOffset, x.NoGet, x.NoStats = true, true, true, true }, []conformance.Option{conformance.WithClaims(
			"append", "cancel", "close", "copy", "delete", "deterministic", "erase", "error", "get", "isolation", "lost", "moving", "position", "race", "recognise", "reopen", "scan", "search",
			"sequence", "type", "update",
		)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "documented" {
				needs.NoRace(t)
			}
			configs := map[core.Store]openbrain.Config{}
			connect := func(tb testing.TB, cfg openbrain.Config) core.Store {
				tb.Helper()
				s, err := openbrain.Open(tb.Context(), cfg, openbrain.WithSleep(noSleep))
				if err != nil {
					tb.Fatalf("Open: %v", err)
				}
				tb.Cleanup(func() { _ = s.Close() })
				configs[s] = cfg
				return s
			}
			open := func(tb testing.TB) core.Store {
				tb.Helper()
				srv := openbraintest.New(tb, c.set)
				cfg := openbrain.DefaultConfig()
				cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
				return connect(tb, cfg)
			}
			conformance.TestStore(t, open, append(c.more, conformance.WithCases(c.cases), conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
				tb.Helper()
				_ = old.Close()
				return connect(tb, configs[old])
			}))...)
		})
	}
}
