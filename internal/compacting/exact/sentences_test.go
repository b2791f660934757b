package exact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestCuesAreFoundWhereverTheyStand: looking for those alone that can begin where something begins finds what looking for all of them does.
func TestCuesAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	pieces := strings.Fields("the of x9 must_ _must Don’t nie? été 予算 नहीं 한국 . , - [ ] ( \u200b \u0301 \xff")
	for range 5_000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			piece := pieces[r.IntN(len(pieces))]
			if r.IntN(3) == 0 {
				cues := senses[r.IntN(len(senses))].cues
				piece = cues[r.IntN(len(cues))].text
			}
			b.WriteString(piece + []string{"", " ", " "}[r.IntN(3)])
		}
		low := " " + strings.ToLower(b.String()) + " "
		f := firstsOf(low)
		for _, s := range senses {
			for _, c := range s.cues {
				if holds(low, c) && !f.may(c) {
					t.Fatalf("seed %d: %q holds %q, and nothing begins with %q", seed, low, c.text, c.text[:1])
				}
			}
		}
	}
}
