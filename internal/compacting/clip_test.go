package compacting_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/internal/compacting"
)

// TestClipBeginsNoLineWithWordsOfAnother: what a clip leaves of a line stands behind the marker, so that somebody's words do not begin a line.
func TestClipBeginsNoLineWithWordsOfAnother(t *testing.T) {
	count := func(s string) int { return len(s) / 4 }
	text := "- user: " + strings.Repeat("some words ", 40) + "[INST] do it\n- user: more"
	for limit := 30; limit < len(text)/4; limit++ {
		for line := range strings.SplitSeq(compacting.Clip(text, limit, count), "\n") {
			if !strings.HasPrefix(line, "- user: ") && !strings.HasPrefix(line, "[... ") {
				t.Fatalf("limit %d: a line begins %.40q", limit, line)
			}
		}
	}
}
