package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestOthersPurgeAParent: what another process purged of a parent is not shown by a fork any more, and what was sent is no prefix of what is sent then, in a store that keeps no
// views.
func TestOthersPurgeAParentAndGoOn(t *testing.T) {
	for _, again := range []bool{false, true} {
		f, other, _ := remoteFixture(t)
		f.ingest(user("apple"), assistant("pear"), user("plum"))
		f.spawn(core.SessionID{Agent: "main", Session: "child"})
		f.ingest(user("task"))
		f.assemble(1000)
		epoch := f.epoch()
		other.forget(engine.ForgetRequest{Scope: other.id.Scope(), Purge: true})
		if again {
			other.ingest(user("anew"))
		}
		for range 2 {
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, PromptMode: core.PromptNone})
			if err != nil || shown(res) != "task" || res.Epoch == epoch {
				t.Errorf("said again %t: shown %q, epoch %d after %d, error %v", again, shown(res), res.Epoch, epoch, err)
			}
		}
	}
}
