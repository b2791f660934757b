package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestRecalledUnderAGrantThatIsTakenBack: what a child recalled of its parent is not shown any more once its grant is over or was taken back, also where the child may still
// search what its own child said. A strict engine that cannot keep that fails, and shows it neither then nor later.
func TestRecalledUnderAGrantThatIsTakenBack(t *testing.T) {
	for _, takenBack := range []bool{true, false} {
		for _, grandchild := range []bool{true, false} {
			host, p, disk := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, &asking{}, &fullDisk{Store: memory.New()}
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
				parts.Host, parts.Retriever, parts.Store, c.Failure = host, p, disk, engine.FailStrict
			})
			f.store = disk.Store
			child := core.SessionID{Agent: f.id.Agent, Session: "child"}
			spawn := func(parent, child core.SessionID, ttl time.Duration) {
				t.Helper()
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child, TTL: ttl}); err != nil {
					t.Fatal(err)
				}
			}
			f.ingest(user("the port of the gateway is 8471"), assistant("noted"))
			spawn(f.id, child, time.Hour)
			task := "write the configuration of the gateway with its port"
			f.say(child, false, user(task))
			f.everything(&p.proposer, f.id.Agent)
			req := core.AssembleRequest{Session: child, Budget: 2000, Prompt: task}
			if res, err := f.engine.Assemble(t.Context(), req); err != nil || !strings.Contains(shown(res), "8471") {
				t.Fatalf("nothing is recalled: %q, %v", shown(res), err)
			}
			if grandchild {
				spawn(child, core.SessionID{Agent: f.id.Agent, Session: "grandchild"}, 4*time.Hour)
			}
			if res, err := f.engine.Assemble(t.Context(), req); err != nil || !strings.Contains(shown(res), "8471") {
				t.Errorf("grandchild %t: while the grant holds %q is shown, %v", grandchild, shown(res), err)
			}
			if takenBack {
				if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Result: "done"}); err != nil {
					t.Fatal(err)
				}
			} else {
				host.now = host.now.Add(time.Hour)
			}
			disk.noViews = true
			if res, err := f.engine.Assemble(t.Context(), req); err == nil {
				t.Errorf("a strict engine shows %q and keeps nothing", shown(res))
			}
			disk.noViews = false
			if res, err := f.engine.Assemble(t.Context(), req); err != nil || strings.Contains(shown(res), "8471") {
				t.Errorf("taken back %t, grandchild %t: still shown: %q, %v", takenBack, grandchild, shown(res), err)
			}
		}
	}
}
