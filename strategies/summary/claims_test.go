package summary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestDatesAreFoundWhereverTheyStand: looking around digits alone finds what looking at the whole text does.
func TestDatesAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{
		"2024-01-02", "1/2/2024", "Jan", "January", "Mar.", "5", "5th", "12th,", "of", "May", "2024", "2024.", "June,", "on", "\n", "", "x9", "Sept-5", "maybe", "Mayor", "3rd", "1.2", "x", "日5", "a-",
	}
	for range 5_000 {
		some := make([]string, r.IntN(14))
		for i := range some {
			some[i] = words[r.IntN(len(words))]
		}
		text := strings.Join(some, []string{" ", " ", " ", ""}[r.IntN(4)])
		list := func(find func(string, func(from, to int, readings ...date))) []string {
			var out []string
			find(text, func(from, to int, readings ...date) { out = append(out, fmt.Sprint(from, to, readings)) })
			slices.Sort(out)
			return out
		}
		if want, got := list(datesOf), list(datesIn); !slices.Equal(want, got) {
			t.Fatalf("seed %d, %q: %q, want %q", seed, text, got, want)
		}
	}
}
