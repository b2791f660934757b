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

// TestRewindTakesWhatStoodInFront: of what was rewound nothing stays in front of the window either: not what a compaction behind it replaced, which is shown until
// the next step.
func TestRewindTakesWhatStoodInFront(t *testing.T) {
	for name, keep := range map[string]int{"reset": 0, "rewound": 3} {
		t.Run(name, func(t *testing.T) {
			behind := &greedy{propose: func(c core.Compaction) core.Patch {
				r := core.Replacement{Kind: "summary", Text: "they spoke of old matters", Entries: entryIDs(c.Entries[:c.Left])}
				for i := range c.Summaries {
					r.Summaries = append(r.Summaries, c.Summaries[i].ID)
				}
				return core.Patch{Replace: []core.Replacement{r}}
			}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = behind })
			const budget = 200
			var host []message.Message
			for n := range 16 {
				host = append(host, user(fmt.Sprintf("so %d %s", n, strings.Repeat("word ", 15))), assistant("yes "+strings.Repeat("word ", 15)))
				f.assemble(budget, transcript("next", host...))
				if n%8 == 7 {
					if res := f.compact(budget); !res.Compacted {
						t.Fatalf("Compact = %+v", res)
					}
				}
			}
			if s := shown(f.assemble(budget, transcript("next", host...))); !strings.Contains(s, "old matters") {
				t.Fatalf("shown: %q: nothing is tested", s)
			}
			anew := append(slices.Clone(host[:keep]), user("anew"))
			for range 2 {
				if s := shown(f.assemble(budget, transcript("next", anew...))); strings.Contains(s, "old matters") {
					t.Errorf("shown: %q", s)
				}
				f.restart()
			}
		})
	}
}

// TestRewindTakesRecallBlocks: nor do blocks that were recalled for turns which are taken back.
func TestRewindTakesRecallBlocks(t *testing.T) {
	for name, keep := range map[string]int{"reset": 0, "rewound": 1} {
		t.Run(name, func(t *testing.T) {
			p := &proposer{}
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
			f.say(core.SessionID{Agent: "main", Session: "other"}, false, user("said elsewhere"))
			f.everything(p, "main")
			host := []message.Message{user("begin"), assistant("yes")}
			full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
			if res := f.assemble(4000, transcript("what was it?", host...), full); res.RecallLen == 0 {
				t.Fatal("nothing is recalled")
			}
			p.candidates = nil
			host = append(host, user("what was it?"), assistant("that"))
			if s := shown(f.assemble(4000, transcript("and now?", host...), full)); !strings.Contains(s, "said elsewhere") {
				t.Fatalf("shown: %q: nothing is tested", s)
			}
			anew := append(slices.Clone(host[:keep]), user("anew"), assistant("yes"), user("more"), assistant("well"))
			for range 2 {
				if s := shown(f.assemble(4000, transcript("next", anew...), full)); strings.Contains(s, "said elsewhere") {
					t.Errorf("shown: %q", s)
				}
				f.restart()
			}
		})
	}
}
