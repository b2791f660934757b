package tiktoken

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/internal/drawn"
)

// TestLatelyTellsWordsApart puts words that differ little into one set's place each and asks for all others: none may be taken for another, at the end of
// a text or inside one.
func TestLatelyTellsWordsApart(t *testing.T) {
	t.Parallel()
	l := newLately()
	type slot struct {
		set  *set
		name uint64
	}
	seen := map[slot]string{}
	var words []string
	for size := 1; size <= shortPiece; size++ {
		words = append(words, strings.Repeat("\x00", size), strings.Repeat("a", size))
		for at := range size {
			for _, b := range []byte{1, 'a', 'b', 0x80, 0xff} {
				word := make([]byte, size)
				word[at] = b
				words = append(words, string(word))
			}
		}
	}
	known := map[string]bool{}
	for _, word := range words {
		if known[word] {
			continue
		}
		known[word] = true
		s, name := l.place(word, 0, len(word))
		if name&(1<<countBits-1) != 0 || name == 0 {
			t.Fatalf("the name of %q is %#x, which leaves no room for a count or is that of a free slot", word, name)
		}
		if other, found := seen[slot{s, name}]; found {
			t.Fatalf("%q and %q have one place and name", word, other)
		}
		seen[slot{s, name}] = word
		inside := "<" + word + strings.Repeat(">", hashSize)
		if again, same := l.place(inside, 1, 1+len(word)); again != s || same != name {
			t.Fatalf("%q has another place or name inside a text", word)
		}
	}
}

// TestLatelyHashIsOneToOne takes back what place does to words of up to keySize bytes.
func TestLatelyHashIsOneToOne(t *testing.T) {
	t.Parallel()
	l := newLately()
	inverse := uint64(0x9e3779b97f4a7c15) // of an odd number; each step doubles the bits that are right
	for range 6 {
		inverse *= 2 - 0x9e3779b97f4a7c15*inverse
	}
	for range 1000 {
		key := rand.Uint64()
		h := l.hash(key, 0, keySize)
		if got := h * inverse; got != key {
			t.Fatalf("the key of hash %#x is %#x, want %#x", h, got, key)
		}
		s, name := l.at(h, keySize)
		place := uint64(0)
		for s != &l.sets[place] {
			place++
		}
		if got := place<<(64-setBits) | name>>setBits; got != h {
			t.Fatalf("set %#x and name %#x give hash %#x, want %#x", place, name, got, h)
		}
	}
}

// TestSetKeepsWhatComesOften asks for three words again and again and for others once: only the latter are forgotten.
func TestSetKeepsWhatComesOften(t *testing.T) {
	t.Parallel()
	var s set
	often := []uint64{1 << 60, 2 << 60, 3 << 60}
	meet := func(name uint64, n int) (known bool) {
		got := s.count(name)
		if got != 0 && got != n {
			t.Fatalf("count of %#x = %d, want 0 or %d", name, got, n)
		}
		if got == 0 {
			s.keep(name, n)
		}
		return got != 0
	}
	for round := range uint64(100) {
		for i, name := range often {
			if known := meet(name, i+1); known != (round > 0) {
				t.Fatalf("round %d: word %d known = %t", round, i, known)
			}
		}
		if meet((round+1)<<40, 127) {
			t.Fatalf("round %d: a new word is known", round)
		}
	}
	// A word that comes again gets a place among them, and the one it displaces stays for now.
	meet(5<<60, 5)
	for range 2 {
		for name, n := range map[uint64]int{1 << 60: 1, 2 << 60: 2, 3 << 60: 3, 5 << 60: 5} {
			if !meet(name, n) {
				t.Errorf("word %#x was forgotten", name)
			}
		}
	}
}

// TestSetIsSafeForConcurrentUse lets many change one set: what it holds is always a count that was given for that word.
func TestSetIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var s set
	var wg sync.WaitGroup
	seed := drawn.Seed(t)
	for worker := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, worker))
			for range 20_000 {
				n := 1 + r.IntN(9)
				name := uint64(n) << 60
				if got := s.count(name); got == 0 {
					s.keep(name, n)
				} else if got != n {
					t.Errorf("count of word %d = %d", n, got)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestMergesAgree merges random words both ways, past everything that is remembered.
func TestMergesAgree(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 4))
	counters := newTestCounters(t, shortPiece, maxPiece)
	var m merger
	for i := range samples() {
		v := counters[i%len(counters)].enc.vocabulary
		text := randomText(r)
		from := r.IntN(len(text))
		to := from + 1 + r.IntN(min(len(text)-from, shortPiece))
		if got, want := v.countShort(text, from, to), m.count(v, text[from:to]); got != want {
			if got == 1 {
				continue // a token that merging does not lead to
			}
			t.Fatalf("seed %d: %q has %d tokens in one way, %d in the other", seed, text[from:to], got, want)
		}
	}
}
