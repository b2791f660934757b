package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestOthersStoreWhereADuplicateWouldStand: what another process stores while a call appends, at the position that a known message of the call would have had, is shown, in a store
// that keeps no views.
func TestOthersStoreWhereADuplicateWouldStand(t *testing.T) {
	store := &paused{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = pausedStores["no views"](store) })
	f.store = store.Store
	other := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = f.parts.Store })
	known := user("known")
	known.Key = "k1"
	f.ingest(known, assistant("yes"))
	store.appending = func() { other.say(core.SessionID{Agent: "main", Session: "s1"}, false, user("theirs")) }
	f.ingest(known, user("fresh"))
	for range 2 {
		if got := shown(f.assemble(1000)); !strings.Contains(got, "theirs") {
			t.Errorf("shown %q", got)
		}
	}
}
