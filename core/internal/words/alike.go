package words

import (
	"hash/maphash"
	"slices"
	"strings"
)

// Wordings are what texts said, as sorted hashes of their words, made with Seed.
type Wordings struct {
	Seed maphash.Seed
	said [][]uint64
}

const (
	// minAlike is how many words a text has that can be nearly the same as another one: of short ones every word counts.
	minAlike = 6
	// maxAlike bounds the words that are compared.
	maxAlike = 256
)

// Again reports whether a text says nearly what another one said: nine of ten words, where numbers do not count. Runs of the same tests, and the notes of clients
// about what is left, differ in nothing else. Of a text that is new it remembers what it says.
func (w *Wordings) Again(text string) bool {
	var words []uint64
	Each(text, func(word string) bool {
		if !strings.ContainsAny(word, "0123456789") {
			words = append(words, maphash.String(w.Seed, word))
		}
		return len(words) < maxAlike
	})
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) < minAlike {
		return false
	}
	if slices.ContainsFunc(w.said, func(other []uint64) bool { return nearlySame(words, other) }) {
		return true
	}
	w.said = append(w.said, words)
	return false
}

// nearlySame reports whether nine of ten of all words of two texts are in both.
func nearlySame(a, b []uint64) bool {
	if 10*min(len(a), len(b)) < 9*max(len(a), len(b)) {
		return false
	}
	// So many of both say it: 10 both >= 9 (a + b - both). Most texts differ, which their first words tell.
	need, j := (9*(len(a)+len(b))+18)/19, 0
	miss := len(a) - need
	for _, v := range a {
		for j < len(b) && b[j] < v {
			j++
		}
		if j == len(b) || b[j] != v {
			if miss--; miss < 0 {
				return false
			}
		}
	}
	return true
}
