package engine_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/window"
)

// TestPinnedThatTheWindowShows: an erasure gave back to the window a pinned message and what stood in front of it. It stays shortened when that leaves again.
func TestPinnedThatTheWindowShows(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("first"), user(strings.Repeat("old ", 30)), user("my "+strings.Repeat("word ", 300)))
	id := f.entry("my word").ID
	f.edit(edit.Stub{ID: id, Stub: window.Stub{Kind: window.Clipped, Texts: map[int]string{0: "my words"}}})
	f.edit(edit.Begin{Start: 1, Pinned: id})
	for _, want := range []string{"old", "my words"} {
		for range 2 {
			res := f.assemble(125, under("anthropic"))
			if got := shown(res); !strings.Contains(got, want) || strings.Contains(got, "word word") || want != "old" && strings.Contains(got, "old") {
				t.Errorf("shown %q", got)
			}
			for i := range res.Choices {
				if ch := &res.Choices[i]; ch.Entry == id && ch.Stub != window.Clipped {
					t.Errorf("shortened %q, want %q", ch.Stub, window.Clipped)
				}
			}
			f.restart()
		}
		f.ingest(assistant("noted "+strings.Repeat("so ", 30)), assistant("noted "+strings.Repeat("and ", 30)))
	}
}
