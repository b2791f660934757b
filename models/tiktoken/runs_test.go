package tiktoken

import (
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/internal/needs"
)

// TestLongRuns would take minutes for each megabyte if the merge were quadratic. The time is logged, not asserted.
func TestLongRuns(t *testing.T) {
	t.Parallel()
	size := 1_000_000
	if testing.Short() || needs.Race {
		size = 100_000
	}
	for _, c := range newTestCounters(t, shortPiece, maxPiece) {
		for label, unit := range map[string]string{
			"letter": "a", "blanks": " ", "emoji": "😀", "newlines": "\n", "capitals": "ABCD", "dashes": "-", "digits": "7",
			"cjk": "漢", "marks": "\u0301", "blank lines": " \n", "mixed letters": "qzjxkvbw",
		} {
			text := strings.Repeat(unit, size/len(unit))
			start := time.Now()
			got := c.Count(text)
			t.Logf("%s %s: %d tokens in %v", c.Encoding(), label, got, time.Since(start))
			if got < len(text)/maxToken || got > len(text) {
				t.Errorf("%s: Count(%s) = %d, want %d to %d", c.Encoding(), label, got, len(text)/maxToken, len(text))
			}
			// Runs of one unit are periodic: what the library says of 1 KiB scales up, but for the ends.
			small := strings.Repeat(unit, 1024/len(unit))
			exact := referenceOf(t, c.Encoding()).count(small)
			if scaled := exact * (len(text) / len(small)); got < scaled-scaled/10 || got > scaled+scaled/10 {
				t.Errorf("%s: Count(%s) = %d, the library's count of 1 KiB scales to %d", c.Encoding(), label, got, scaled)
			}
		}
	}
}
