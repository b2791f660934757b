package engine

import (
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestInsertKeepsWhatWasDecided: an entry that comes in front of the window moves everything behind it, and what was decided about that stays decided.
func TestInsertKeepsWhatWasDecided(t *testing.T) {
	id := core.SessionID{Agent: "main", Session: "s"}
	for name, c := range map[string]struct{ at, seen, start int }{
		"in front of the window":         {3, 9, 6},
		"right in front of its first":    {5, 9, 6},
		"in the window, which is a step": {7, 7, 5},
	} {
		v := core.View{Session: id, Path: []core.Span{{From: 0, To: 9}}, Next: 9, Start: 5, Frontier: 2, Seen: 8}
		insertAt(&v, c.at, id, 9)
		if v.Seen != c.seen || v.Start != c.start || v.Len() != 10 {
			t.Errorf("%s: decided up to %d of %d, and the window begins at %d, want %d of 10 and %d", name, v.Seen, v.Len(), v.Start, c.seen, c.start)
		}
	}
}
