package words_test

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/internal/words"
)

func Example() {
	asked := words.Asked("Which colour did we choose for the garden fence?")
	fmt.Println(asked.Certain)
	words.Each("The fence is green.", func(w string) bool {
		fmt.Println(w)
		return true
	})
	// Output:
	// true
	// fence
	// green
}

func TestMisses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		prompt, offered, shown string
		want                   bool
	}{
		{"continue with the harbour plan", "the harbour plan has nine piers", "hello", true},
		{"continue with the harbour plan", "the harbour plan has nine piers", "this is the harbour plan", false},
		{"continue", "nothing that is asked for", "", false},
		{"the the a of", "the the a of", "", false},
		{strings.Repeat("the report says what the report says. ", 20), "the report", "", false}, // a long text that asks for nothing
		{strings.Repeat("the report says what it says. ", 20) + "Do you remember the lighthouse?", "the lighthouse", "", true},
		{"码头 计划", "码头有九个", "", true},
	} {
		q := words.Asked(tc.prompt)
		if got := q.Misses(slices.Values([]string{tc.offered}), slices.Values([]string{tc.shown})); got != tc.want {
			t.Errorf("%.40q of %q behind %q: %v", tc.prompt, tc.offered, tc.shown, got)
		}
	}
}

func TestWordings(t *testing.T) {
	t.Parallel()
	w := words.Wordings{Seed: maphash.MakeSeed()}
	first := "ok 12 tests passed quickly without any single failure within package harbour today"
	for _, tc := range []struct {
		text string
		want bool
	}{
		{first, false},
		{strings.ReplaceAll(first, "12", "4096"), true},
		{"something entirely different concerning lighthouses, ferries, captains and their weather", false},
		{"few words", false},
		{"few words", false},
	} {
		if got := w.Again(tc.text); got != tc.want {
			t.Errorf("%q: %v", tc.text, got)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("sand ", 200) + "the lighthouse of Årø blinks twice " + strings.Repeat("sea ", 200)
	for _, tc := range []struct {
		query string
		size  int
	}{{"lighthouse of Årø", 60}, {"blinks lighthouse", 60}, {"lighthouse", 11}} {
		got := words.Excerpt(text, tc.query, tc.size)
		if len(got) > tc.size || !strings.Contains(got, "lighthouse"[:min(8, tc.size)]) || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%q in %d bytes: %q", tc.query, tc.size, got)
		}
	}
}

func TestPieces(t *testing.T) {
	t.Parallel()
	var got []string
	words.Pieces("Berth a7-b9x costs 12345 crowns today", func(p string) bool {
		got = append(got, p)
		return len(got) < 5
	})
	want := []string{"berth a7-b9x costs 12345", "a7-b9x costs 12345 crowns", "a7-b9x", "costs 12345 crowns today", "12345"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
