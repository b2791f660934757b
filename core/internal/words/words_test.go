package words_test

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core/internal/words"
)

func Example() {
	asked, err := words.Asked(context.Background(), "Which colour did we choose for the garden fence?")
	fmt.Println(asked.Certain, err)
	words.Each("The fence is green.", func(w string) bool {
		fmt.Println(w)
		return true
	})
	// Output:
	// true <nil>
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
		q, shown := askedOf(t, tc.prompt), slices.Values([]string{tc.shown})
		for _, sketch := range []words.Sketch{nil, words.SketchOf(shown), words.SketchOf(slices.Values([]string{"more", tc.shown}))} {
			if got := q.Misses(slices.Values([]string{tc.offered}), func(yield func(words.Sketch, string) bool) { yield(sketch, tc.shown) }); got != tc.want {
				t.Errorf("%.40q of %q behind %q: %v", tc.prompt, tc.offered, tc.shown, got)
			}
		}
	}
}

// TestMissesBySketch: what a question misses is the same whether shown texts have sketches or not.
func TestMissesBySketch(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	text := func(most, of int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			fmt.Fprintf(&b, "%c%04d%s", 'a'+rng.IntN(3), rng.IntN(of), []string{" ", ", ", "é ", "\n"}[rng.IntN(4)])
		}
		return b.String()
	}
	misses := 0
	for range 500 {
		asked, offered := askedOf(t, text(12, 60)), slices.Values([]string{text(20, 60), text(20, 60)})
		texts := [][]string{{text(300, 200), text(10, 200)}, {text(30, 200)}, {""}}
		shown := func(sketched bool) func(func(words.Sketch, string) bool) {
			return func(yield func(words.Sketch, string) bool) {
				for _, item := range texts {
					var sketch words.Sketch
					if sketched {
						sketch = words.SketchOf(slices.Values(item))
					}
					for _, text := range item {
						if !yield(sketch, text) {
							return
						}
					}
				}
			}
		}
		want, got := asked.Misses(offered, shown(false)), asked.Misses(offered, shown(true))
		if got != want {
			t.Fatalf("seed %d: %v with sketches, %v without", seed, got, want)
		}
		if want {
			misses++
		}
	}
	if misses == 0 || misses == 500 {
		t.Errorf("seed %d: %d of 500 questions miss something", seed, misses)
	}
}

// TestEachOfASCII: the words of a text are the same beside a letter that is not ASCII, which takes another way.
func TestEachOfASCII(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
	collect := func(text string, most int) (out []string) {
		words.Each(text, func(w string) bool {
			out = append(out, w)
			return len(out) < most
		})
		return out
	}
	const characters = "abcXYZ019 .,-_\n\t\x00\x7f@["
	for range 2000 {
		text := make([]byte, rng.IntN(60))
		for i := range text {
			text[i] = characters[rng.IntN(len(characters))]
		}
		most := 1 + rng.IntN(8)
		if got, want := collect(string(text), most), collect("\u00e9 "+string(text), most); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestNearlyTheSame: texts say nearly the same where nine of ten of all their words are in both, and not where one less is.
func TestNearlyTheSame(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		both, first, second int
		want                bool
	}{{9, 0, 1, true}, {9, 1, 0, true}, {18, 1, 1, true}, {17, 1, 1, false}, {8, 0, 1, false}, {90, 5, 5, true}, {90, 5, 6, false}, {90, 10, 0, true}, {90, 11, 0, false}, {10, 0, 0, true}} {
		say := func(own string, n int) string {
			var b strings.Builder
			for i := range tc.both {
				fmt.Fprintf(&b, "word%c%c ", 'a'+i%26, 'a'+i/26)
			}
			for i := range n {
				fmt.Fprintf(&b, "%s%c ", own, 'a'+i)
			}
			return b.String()
		}
		w := words.Wordings{Seed: maphash.MakeSeed()}
		w.Again(say("first", tc.first))
		if got := w.Again(say("other", tc.second)); got != tc.want {
			t.Errorf("%d words of both, %d and %d of one: %v", tc.both, tc.first, tc.second, got)
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
		if !strings.Contains(text, got) || len(got) < tc.size-4 || len(got) > tc.size || !strings.Contains(got, "lighthouse"[:min(8, tc.size)]) || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%q in %d bytes: %q", tc.query, tc.size, got)
		}
	}
}

// TestExcerptOfOddText: an excerpt is whole characters wherever it begins and ends, of a text whose lower case has another length, too.
func TestExcerptOfOddText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, query string
		size        int
		want        string
	}{
		{"short", "no such word", 5, "short"},
		{"ababab", "no such word", 5, "ababa"},
		{"\u00e9\u00e9\u00e9\u00e9\u00e9x", "x", 5, "\u00e9\u00e9x"},
		{"a\u00e9\u00e9\u00e9\u00e9x", "x", 4, "\u00e9x"},
		{"\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", "no such word", 5, "\u00e9\u00e9"},
		{strings.Repeat("\u0130", 40) + " lighthouse " + strings.Repeat("b", 40), "lighthouse", 12, "\u0130 lighthous"},
		{strings.Repeat("\u0130", 40) + " LIGHTHOUSE " + strings.Repeat("b", 40), "LIGHTHOUSE", 12, "\u0130\u0130\u0130\u0130\u0130\u0130"},
	} {
		if got := words.Excerpt(tc.text, tc.query, tc.size); got != tc.want {
			t.Errorf("%q in %d bytes of %q: %q, want %q", tc.query, tc.size, tc.text, got, tc.want)
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

func askedOf(t *testing.T, prompt string) words.Question {
	t.Helper()
	q, err := words.Asked(t.Context(), prompt)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// dying is a context that ends once it was asked so often.
type dying struct {
	context.Context
	asked, last int
}

func (d *dying) Err() error {
	if d.asked++; d.asked > d.last {
		return context.Canceled
	}
	return nil
}

// TestAskedStops: a long prompt is not read to its end when ctx ends meanwhile.
func TestAskedStops(t *testing.T) {
	ctx := &dying{Context: t.Context(), last: 3}
	if _, err := words.Asked(ctx, strings.Repeat("a\n", 1<<19)); !errors.Is(err, context.Canceled) || ctx.asked != 4 {
		t.Errorf("error %v after %d looks at ctx, want that of ctx after 4", err, ctx.asked)
	}
}
