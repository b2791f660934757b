package tiktoken

import (
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

const (
	// setBits is the binary logarithm of the number of sets: 512 KiB in all.
	setBits = 14
	// ways is how many words a set holds.
	ways = 4
	// countBits and sizeBits are the widths of what a slot says besides a hash. What a word's place says of its hash makes room for them.
	countBits = 7
	sizeBits  = setBits - countBits
	// hashSize is the length in bytes up to which words are hashed here; for all longer ones a slot says longSize.
	hashSize = 16
	longSize = 1<<sizeBits - 1
)

// Too few sets would leave no room for the sizes.
const _ = uint(longSize - hashSize - 1)

// lately remembers what the words of recent texts cost, tokens or not. Nearly all words come again and again, and here they are found in the processor's
// nearer caches, where the vocabulary's tables are too large for them. Quotations of made-up words are counted in 0.3 times the time with it, of real ones
// in 0.6 times; a few hundred words that are counted over and over, which have the vocabulary's tables to themselves, in 1.15 times. It is safe for
// concurrent use.
//
// A slot holds the hash of a word, its length and the number of its tokens. The hash of a word of up to keySize bytes is one to one, so that none is
// mistaken for another. Two longer ones would be as rarely as 64 bits of hash allow, and which they are differs from process to process.
//
// The last slot of a set takes what is new; a word that is met there again takes the place of one of the others. So what comes once, as ids do, does not
// displace what comes often.
type lately struct {
	sets  [1 << setBits]set
	seeds [2]uint64
	seed  maphash.Seed
}

// set holds words whose hashes begin alike. A slot is 0 when free. Each is whole by itself: of two changes at a time one may be lost, no more.
type set [ways]atomic.Uint64

func newLately() *lately {
	return &lately{seeds: [2]uint64{rand.Uint64(), rand.Uint64()}, seed: maphash.MakeSeed()}
}

// place returns the set of the word text[from:to], which is not empty, and what its slot holds there, but for the count.
func (l *lately) place(text string, from, to int) (s *set, name uint64) {
	size := to - from
	if size > hashSize {
		return l.at(maphash.String(l.seed, text[from:to]), longSize)
	}
	if from+hashSize > len(text) {
		a, b := keyAt(text, from, min(size, keySize)), uint64(0)
		if size > keySize {
			b = keyAt(text, from+keySize, size-keySize)
		}
		return l.at(l.hash(a, b, size), size)
	}
	a := load8(text, from) & (math.MaxUint64 >> (8 * uint(max(keySize-size, 0))))
	b := load8(text, from+keySize) & (math.MaxUint64 >> (8 * uint(hashSize-size)))
	return l.at(l.hash(a, b, size), size)
}

// hash returns the hash of a word of up to hashSize bytes. Both kinds are calculated, since nobody can foretell which is asked for.
func (l *lately) hash(a, b uint64, size int) uint64 {
	h := a * 0x9e3779b97f4a7c15 // odd, so that no two are equal
	high, low := bits.Mul64(a^l.seeds[0], b^l.seeds[1])
	if size > keySize {
		h = high ^ low
	}
	return h
}

func (l *lately) at(h uint64, size int) (s *set, name uint64) {
	return &l.sets[h>>(64-setBits)], h<<setBits | uint64(size)<<countBits
}

// count returns the number of tokens of a word, 0 if the set does not hold it.
func (s *set) count(name uint64) int {
	n := uint64(0)
	for i := range ways - 1 {
		if d := s[i].Load() ^ name; d < 1<<countBits {
			n = d
		}
	}
	if n > 0 {
		return int(n) //nolint:gosec // countBits of it
	}
	return s.promote(name)
}

// promote is count for the last slot.
func (s *set) promote(name uint64) int {
	d := s[ways-1].Load() ^ name
	if d >= 1<<countBits {
		return 0
	}
	i := name >> (setBits + 8) % (ways - 1) // some bits of the hash, as good as any
	old := s[i].Load()
	s[i].Store(name | d)
	s[ways-1].Store(old)
	return int(d) //nolint:gosec // countBits of it
}

// keep notes that a word costs 1 to 1<<countBits-1 tokens.
func (s *set) keep(name uint64, n int) {
	for i := range s {
		if i == ways-1 || s[i].Load() == 0 {
			s[i].Store(name | uint64(n)) //nolint:gosec // it is positive
			return
		}
	}
}
