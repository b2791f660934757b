package lexical

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

const (
	// kinLetters is how many letters the words of a family begin with alike.
	kinLetters = 5
	// kinApart is how many letters the shorter of two such words may end differently.
	kinApart = 2
	// maxKin bounds the words that are taken from a family, the most similar ones.
	maxKin = 8
)

// kin finds words by their beginning. It is brought up to date by those who ask.
type kin struct {
	mu     sync.Mutex
	latest map[[kinLetters]byte]uint32 // the newest word with a beginning
	before []uint32                    // by word: the one before it with the same beginning, none for the first
}

func newKin() *kin { return &kin{latest: map[[kinLetters]byte]uint32{}} }

func (k *kin) bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return 4*cap(k.before) + 16*len(k.latest)
}

// of returns the words of a table that are in use and of one family with a stem: that begin alike and end differently.
func (k *kin) of(words *table, stem string, used func(id uint32) bool) []uint32 {
	start, ok := beginning([]byte(stem))
	if !ok {
		return nil
	}
	k.mu.Lock()
	k.update(words)
	var found []uint32
	id, ok := k.latest[start]
	for ; ok && id != none; id = k.before[id] {
		if akin([]byte(stem), words.at(id)) && used(id) {
			found = append(found, id)
		}
	}
	k.mu.Unlock()
	slices.SortFunc(found, func(a, b uint32) int {
		x, y := words.at(a), words.at(b)
		return cmp.Or(cmp.Compare(common([]byte(stem), y), common([]byte(stem), x)), cmp.Compare(len(x), len(y)), bytes.Compare(x, y))
	})
	return found[:min(len(found), maxKin)]
}

// update adds the words that are new since.
func (k *kin) update(words *table) {
	for id := uint32(len(k.before)); id < uint32(words.len()); id++ {
		last := uint32(none)
		if start, ok := beginning(words.at(id)); ok {
			if v, ok := k.latest[start]; ok {
				last = v
			}
			k.latest[start] = id
		}
		k.before = push(k.before, last)
	}
}

// beginning returns the first letters of a word that is made of ASCII letters alone.
func beginning(word []byte) (start [kinLetters]byte, ok bool) {
	if len(word) < kinLetters || slices.ContainsFunc(word, func(c byte) bool { return !isLetter(c) }) {
		return start, false
	}
	return [kinLetters]byte(word), true
}

// akin reports whether two words that begin alike differ, and only in how they end.
func akin(a, b []byte) bool {
	n := common(a, b)
	return n >= kinLetters && n >= min(len(a), len(b))-kinApart && max(len(a), len(b)) > n
}

// common returns how many bytes two words begin with alike.
func common(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
