package tiktoken

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// TestCountAllocatesNothing is not parallel: it counts the allocations of the process.
func TestCountAllocatesNothing(t *testing.T) {
	needs.NoRace(t) // it empties pools at random
	for _, c := range newTestCounters(t, shortPiece, maxPiece) {
		for label, text := range map[string]string{
			"empty": "", "chat": benchChat, "JSON": benchJSON, "code": benchCode, "CJK": benchCJK,
			"a word for the n log n merge": strings.Repeat("qzjxkvbw", 100),
		} {
			c.Count(text) // fills the pool
			if got := testing.AllocsPerRun(50, func() { c.Count(text) }); got >= 1 {
				t.Errorf("%s: Count of %s allocates %v times, want 0", c.Encoding(), label, got)
			}
		}
	}
}
