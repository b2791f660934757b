package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/internal/drawn"
)

func TestAlign(t *testing.T) {
	for _, tc := range []struct {
		name, known, host string
		want              []int
	}{
		{"growth", "a b c", "a b c d", []int{0, 1, 2, -1}},
		{"same", "a b c", "a b c", []int{0, 1, 2}},
		{"limited to the newest", "a b c d", "c d", []int{2, 3}},
		{"limited and grown", "a b c d", "c d e", []int{2, 3, -1}},
		{"limited, first repeats an older one", "x a b x c", "x c", []int{3, 4}},
		{"rewound", "a b c d", "a b", []int{0, 1}},
		{"forked", "a b c d", "a b e", []int{0, 1, -1}},
		{"reset", "a b c", "x y", []int{-1, -1}},
		{"compacted by the host", "a b c d", "S c d", []int{-1, 2, 3}},
		{"failed turn in between", "a b c d", "a b f g c d", []int{0, 1, -1, -1, 2, 3}},
		{"one was dropped", "a b c d", "a b d", []int{0, 1, 3}},
		{"the newest of what repeats", "a x c d", "d x e", []int{3, -1, -1}},
		{"rewound to what was said twice", "a b c d e f d g h", "c d x", []int{2, 3, -1}},
		{"two pieces, the newest", "a b c d e a b", "x a e a y", []int{-1, 0, 4, 5, -1}},
		{"nothing known", "", "a", []int{-1}},
		{"repeats", "a a a", "a a a a", []int{0, 1, 2, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Align(strings.Fields(tc.known), strings.Fields(tc.host))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Align(%q, %q) differs (-want +got):\n%s", tc.known, tc.host, diff)
			}
		})
	}
}

// TestAlignLong: lists whose table would be too large are matched in one pass, each message with the next known one that says the same.
func TestAlignLong(t *testing.T) {
	const size = 3000
	if (size-3)*(size-2) <= maxTable {
		t.Fatal("the lists are short enough for the table")
	}
	known := make([]string, size)
	for i := range known {
		if known[i] = fmt.Sprint(i); i%10 == 0 {
			known[i] = "ok"
		}
	}
	// Another first and last message, what was said again is left out once, and so is a message of its own.
	host, want := []string{"first"}, []int{-1}
	for i := 1; i < size-1; i++ {
		if i != 40 && i != 1001 {
			host, want = append(host, known[i]), append(want, i)
		}
	}
	host, want = append(host, "last"), append(want, -1)
	if diff := cmp.Diff(want, Align(known, host)); diff != "" {
		t.Errorf("Align differs (-want +got):\n%s", diff)
	}
}

// Whatever the lists, matches increase and join equals.
func TestAlignIsSound(t *testing.T) {
	r := drawn.Rand(t)
	for range 2000 {
		list := func() []string {
			out := make([]string, r.IntN(12))
			for i := range out {
				out[i] = fmt.Sprint(r.IntN(5))
			}
			return out
		}
		known, host := list(), list()
		last, n := -1, 0
		for i, k := range Align(known, host) {
			if k < 0 {
				continue
			}
			if k <= last || known[k] != host[i] {
				t.Fatalf("Align(%v, %v): host %d matched with %d after %d", known, host, i, k, last)
			}
			last = k
			n++
		}
		if want := common(known, host); n != want {
			t.Fatalf("Align(%v, %v): %d of %d are matched", known, host, n, want)
		}
	}
}

// common is the length of a longest common subsequence.
func common(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	if a[0] == b[0] {
		return 1 + common(a[1:], b[1:])
	}
	return max(common(a[1:], b), common(a, b[1:]))
}
