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
		"2024-01-02", "1/2/2024", "Jan", "January", "Mar.", "5", "5th", "12th,", "of", "May", "2024", "2024.", "June,", "on", "\n", "", "x9", "Sept-5", "maybe", "Mayor", "3rd", "1.2", "x", "日5", "a-", "de", "mayo", "maja", "5月", "2031年5月", "년", "tháng", "toukokuuta", "3.",
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

// TestWhatWasSaidIsNeverMarked: whatever looks like a sum, a house or a date in a text is known where that text is the source.
func TestWhatWasSaidIsNeverMarked(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	words := strings.Fields(`12 000 12,000 1.500,00 € $5 3k euros paid costs 120 for 500元 ٥٠٠ دينار 元 рублей 7 Elm Baker Street Hauptstraße rue de la Paix, Via 14b ул. д. 中山路8号 3丁目
		May 2031 3 3. 2031-05-03 5月3日 2031. május мая tháng năm 1/2/31 +49 30 1234567 of , . x \xff 日 İ ſ`)
	for range 5_000 {
		some := make([]string, r.IntN(16))
		for i := range some {
			some[i] = words[r.IntN(len(words))]
		}
		text := strings.Join(some, []string{" ", " ", ""}[r.IntN(3)])
		if got, n := claimsOf(text, nil).check(text); got != text || n > 0 {
			t.Fatalf("seed %d, %q became %q", seed, text, got)
		}
	}
}
