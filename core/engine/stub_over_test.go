package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// TestShortenedAgain: what a compactor shortens that is shortened already becomes shorter, or stays as it was: a part that it does not name stays shortened, and a text
// that costs as much as the one there, or more, is not taken.
func TestShortenedAgain(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for name, tc := range map[string]struct {
		part  int
		text  string
		first string
		rest  int // words of the second part
	}{
		"more":         {0, "more " + words(9), words(9), 40},
		"just as much": {0, "same " + words(8), words(9), 40},
		"less":         {0, "less " + words(7), "less " + words(7), 40},
		"another part": {1, words(3), words(9), 3},
	} {
		asked := 0
		a := &acting{do: func(_ context.Context, c core.Compaction) (core.Patch, error) {
			st := window.Stub{Kind: window.Clipped, Texts: map[int]string{0: words(9)}}
			if asked++; asked > 1 {
				st.Texts = map[int]string{tc.part: tc.text}
			}
			for _, entry := range c.Entries {
				if len(entry.Message.Parts) == 2 {
					return core.Patch{Stubs: map[string]window.Stub{entry.ID: st}}, nil
				}
			}
			return core.Patch{Reason: "it is not there"}, nil
		}}
		f := actingFixture(t, a)
		f.ingest(message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: words(30)}, {Kind: message.Text, Text: words(40)}}}, assistant("so"), user("go on"), assistant("done"))
		for range 2 {
			if res := f.compact(4000); !res.OK {
				t.Fatalf("%s: %+v", name, res)
			}
		}
		for range 2 {
			var got []message.Part
			for _, m := range f.assemble(4000).Messages {
				if len(m.Parts) == 2 {
					got = m.Parts
				}
			}
			if len(got) != 2 || got[0].Text != tc.first || got[1].Text != words(tc.rest) {
				t.Errorf("%s: shown %+v, want %q and %d words", name, got, tc.first, tc.rest)
			}
			f.restart()
		}
	}
}
