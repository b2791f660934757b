package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/message"
)

// TestLongAnswersAreShortened: what an assistant said at greater length than a window can bear is shortened, also where it is the first thing said, and where
// its thinking stands in front of it.
func TestLongAnswersAreShortened(t *testing.T) {
	long := assistant("begin " + strings.Repeat("word ", 500) + "end")
	thought := long
	thought.Parts = append([]message.Part{{Kind: message.Thinking, Text: "what do I know of it?"}}, long.Parts...)
	for name, said := range map[string][]message.Message{
		"a question first": {user("tell me all"), long, user("thanks")},
		"nothing first":    {long, user("thanks")},
		"thinking first":   {user("tell me all"), thought, user("thanks")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(said...)
			if got := shown(f.assemble(1000)); !strings.Contains(got, "begin word") || !strings.Contains(got, "word end") || !strings.Contains(got, "[... shortened, ") {
				t.Errorf("shown: %q", got)
			}
		})
	}
}
