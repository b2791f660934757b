package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

// TestQuestionComesBackBehindALongCall: where a call with long arguments takes all of the budget for once, the question is back with the small calls behind it, and
// the window does not step in each of them.
func TestQuestionComesBackBehindALongCall(t *testing.T) {
	for _, budget := range []int{120, 400, 1000, 4000} {
		f := newFixture(t)
		f.ingest(user("hello"), assistant("hello"), user("Q#1. do this please"), calling("c1"), resulting("c1", "ok"))
		f.assemble(budget)
		long := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "c2", Name: "write", Args: `{"text":"` + strings.Repeat("x ", budget-28) + `"}`}}}
		f.ingest(long, resulting("c2", "ok"))
		f.assemble(budget)
		steps := 0
		for n := range 13 {
			id := fmt.Sprint("d", n)
			f.ingest(calling(id), resulting(id, "ok"))
			res := f.assemble(budget)
			if res.Stepped {
				steps++
			}
			if !strings.Contains(shown(res), "Q#1.") {
				t.Errorf("budget %d, %d small steps behind a long one: the question is not shown; the window costs %d", budget, n+1, res.EstimatedTokens)
			}
		}
		if steps > 4 {
			t.Errorf("budget %d: %d of 13 calls step", budget, steps)
		}
	}
}
