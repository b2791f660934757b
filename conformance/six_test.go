package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// six is a store with the six methods of core.Store and none of the companions.
type six struct{ core.Store }

// TestSixMethods: an engine over a store of six methods keeps the promises, whatever its counter makes of the names of roles. What a restart forgets
// without a core.ViewStore is said, and not tested.
func TestSixMethods(t *testing.T) {
	t.Parallel()
	var said []string
	t.Cleanup(func() {
		if len(said) != 1 || said[0] != "restarts" {
			t.Errorf("for want of a ViewStore %q is not tested, want restarts", said)
		}
	})
	coarse := func(text string) int { return (len(text) + 3) / 4 }
	conformance.TestEngine(t, "archive+six", func(tb testing.TB, env conformance.Env) (core.ContextEngine, core.Store) {
		tb.Helper()
		store := env.Store
		if store == nil {
			store = six{memory.New()}
		}
		return setup{compactor: "archive", retriever: words}.over(tb, env, store), store
	}, coarse, conformance.WithCases(8), conformance.WithReport(func(r conformance.Report) { said = r.Missing[conformance.NeedViewStore] }))
}
