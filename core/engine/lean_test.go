package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestSummaryComesBack: a summary that a turn has no room for is shown again from the next turn on that has. That is a step, once: what was sent before is no
// prefix of what is sent then.
func TestSummaryComesBack(t *testing.T) {
	call := calling("c1")
	call.Parts[0].Args = `{"of": "` + strings.Repeat("word ", 137) + `"}`
	said := one(user("one "+strings.Repeat("word ", 30)), assistant("two "+strings.Repeat("word ", 30)), user("go"), call, resulting("c1", "done"))
	for name, next := range map[string]func(f *fixture) core.AssembleResult{
		"a new turn": func(f *fixture) core.AssembleResult {
			f.ingest(user("next"))
			return f.assemble(240)
		},
		"an earlier turn that was never seen": func(f *fixture) core.AssembleResult {
			return f.assemble(236, transcript("", join(one(user("zero")), said)...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := &greedy{propose: func(c core.Compaction) core.Patch {
				r := core.Replacement{Kind: "summary", Text: "in short " + strings.Repeat("word ", 38), Entries: entryIDs(c.Entries[:2])}
				return core.Patch{Replace: []core.Replacement{r}}
			}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = g })
			f.ingest(said...)
			if res := f.compact(1000); !res.Compacted {
				t.Fatalf("Compact = %+v", res)
			}
			before := f.assemble(200)
			if !strings.HasPrefix(shown(before), "go | ") {
				t.Fatalf("shown: %q: nothing is tested", shown(before))
			}
			res := next(f)
			if !strings.HasPrefix(shown(res), "in short ") || !res.Stepped || res.Epoch <= before.Epoch {
				t.Errorf("shown: %q, stepped: %t, epoch %d, before %d", shown(res), res.Stepped, res.Epoch, before.Epoch)
			}
			again := f.assemble(236)
			if shown(again) != shown(res) || again.Stepped || again.Epoch != res.Epoch {
				t.Errorf("again: shown %q, stepped: %t, epoch %d, before %d", shown(again), again.Stepped, again.Epoch, res.Epoch)
			}
		})
	}
}
