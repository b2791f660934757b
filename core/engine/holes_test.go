package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestOthersStoreWhereADuplicateWouldStand: what another process stores while a call appends, at the position that a known message of the call would have had, is shown there, in a
// store that keeps no views. A fork goes on showing its parent's words.
func TestOthersStoreWhereADuplicateWouldStand(t *testing.T) {
	for name, fork := range map[string]bool{"a session": false, "a fork": true} {
		t.Run(name, func(t *testing.T) {
			store := &paused{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = pausedStores["no views"](store) })
			f.store = store.Store
			want := "known | yes | theirs | fresh | more"
			if fork {
				f.ingest(user("of the parent"))
				f.spawn(core.SessionID{Agent: "main", Session: "child"})
				want = "of the parent | " + want
			}
			other := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = f.parts.Store })
			known := user("known")
			known.Key = "k1"
			f.ingest(known, assistant("yes"))
			store.appending = func() { other.say(f.id, false, user("theirs")) }
			f.ingest(known, user("fresh"))
			f.ingest(assistant("more"))
			for range 2 {
				if got := shown(f.assemble(1000)); !strings.HasSuffix(got, want) {
					t.Errorf("shown %q, want %q", got, want)
				}
			}
			f.sound()
		})
	}
}
