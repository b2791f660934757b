package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestSubagentEndsBetweenCallAndResult: a compaction takes the call that started a subagent and its result together, or neither, although the subagent's own entry stands
// between them: whoever proposes otherwise is refused, and what the engine lets go without a compactor is whole too.
func TestSubagentEndsBetweenCallAndResult(t *testing.T) {
	long := strings.Repeat("word ", 30)
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "1", Name: "spawn", Args: "{}"}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "1", Name: "spawn", Text: "started, and over " + long}}}
	talk := func(t *testing.T, before, behind int, propose func(core.Compaction) core.Patch) *fixture {
		t.Helper()
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = &greedy{propose: propose} })
		for i := range before {
			f.ingest(user(fmt.Sprint("before ", i, " ", long)))
		}
		f.ingest(user("one "+long), call)
		if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: core.SessionID{Agent: "kid", Session: "k"}, Reason: "completed", Result: "found " + long}); err != nil {
			t.Fatal(err)
		}
		f.ingest(result)
		for i := range behind {
			f.ingest(user(fmt.Sprint("asked ", i, " ", long)))
		}
		return f
	}
	for n := 1; n <= 5; n++ {
		t.Run(fmt.Sprintf("%d taken", n), func(t *testing.T) {
			var kinds []core.EntryType
			f := talk(t, 0, 12, func(c core.Compaction) core.Patch {
				for _, e := range c.Entries[:4] {
					kinds = append(kinds, e.Type)
				}
				return core.Patch{Replace: []core.Replacement{{Kind: "summary", Text: "a summary", Entries: entryIDs(c.Entries[:n])}}}
			})
			res := f.compact(2000)
			if !slices.Equal(kinds, []core.EntryType{core.TypeMessage, core.TypeMessage, core.TypeSubagent, core.TypeMessage}) {
				t.Fatalf("the entries are %q", kinds)
			}
			if whole := n == 1 || n >= 4; res.Compacted != whole {
				t.Errorf("%+v, want it taken: %v", res, whole)
			}
		})
	}
	for behind := range 12 { // what is left stands at the end
		for budget := 500; budget < 600; budget += 10 {
			f := talk(t, 12, behind, func(core.Compaction) core.Patch { return core.Patch{} })
			res := f.compact(budget)
			first, err := f.parts.Store.Get(t.Context(), f.id.Scope(), []string{res.FirstKept})
			if err != nil {
				t.Fatalf("%d behind, budget %d: %+v, error %v", behind, budget, res, err)
			}
			if e := first[0]; e.Type == core.TypeSubagent || e.Role == message.Tool {
				t.Errorf("%d behind, budget %d: %+v stays, and its call is gone", behind, budget, e.Message.Parts)
			}
		}
	}
}
