package tiktoken

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
)

const (
	// noRank marks what is not in the vocabulary.
	noRank = math.MaxInt32
	// maxToken is an upper bound for the length of a token, in bytes.
	maxToken = 128
	// keySize is the length in bytes up to which a token is its own key.
	keySize = 8
	// rankBits is the width of a rank in a slot; the length of the token stands above it.
	rankBits = 28
)

// vocabulary gives the rank of each token. It is immutable.
//
// Tokens of at most keySize bytes, three quarters of all and nearly all that a text asks for, are in an open-addressed
// table under their bytes, so that a look-up compares one number and copies nothing. The longer ones are in another.
type vocabulary struct {
	pairs []int32 // rank by the two bytes of a token
	slots []slot
	shift int
	long  longTable
}

// slot holds a token of at most keySize bytes: its bytes, the first lowest, and its length and rank. The latter is 0 if
// the slot is empty.
type slot struct {
	key   uint64
	sized uint32
}

// parseVocabulary reads a vocabulary as published: a token in base64, a space, its rank; one to a line. Every start of a
// program that counts waits for it, so it takes a line apart by hand, which is three times as fast as with the standard
// library's decoders.
func parseVocabulary(data []byte) (*vocabulary, error) {
	lines := bytes.Count(data, []byte{'\n'}) + 1
	width := bits.Len(uint(lines))
	v := &vocabulary{
		pairs: make([]int32, 1<<16),
		slots: make([]slot, 1<<width), // more than there are tokens, so that a search ends
		shift: 64 - width,
		long:  newLongTable(lines / 4),
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	var buf [maxToken + 3]byte
	var wait waiting
	for number := 1; len(data) > 0; number++ {
		var line []byte
		line, data = cut(data, '\n')
		if len(line) == 0 {
			continue
		}
		coded, digits := cut(line, ' ')
		if len(coded)/4*3 > len(buf) {
			return nil, fmt.Errorf("line %d: token of more than %d bytes", number, maxToken)
		}
		n, ok := decodeToken(&buf, coded)
		if !ok {
			return nil, fmt.Errorf("line %d: the token is not in base64", number)
		}
		rank, ok := parseRank(digits)
		if !ok {
			return nil, fmt.Errorf("line %d: the rank is not a number of less than %d bits", number, rankBits+1)
		}
		if n == 0 || n > maxToken {
			return nil, fmt.Errorf("line %d: token of %d bytes", number, n)
		}
		v.add(&wait, buf[:n], rank)
	}
	v.place(&wait)
	v.long.settle()
	for b := range 256 {
		if v.find(uint64(b), 1) == noRank {
			return nil, fmt.Errorf("byte %#x is no token", b)
		}
	}
	return v, nil
}

// waiting are slots that are still to be placed. Their places are far apart in memory: looking at many of them before any is
// written lets the processor fetch them at the same time, which makes reading a vocabulary a third faster.
type waiting struct {
	slots [32]slot
	homes [32]int
	n     int
	seen  uint32 // keeps the compiler from leaving out the looking
}

func (v *vocabulary) add(wait *waiting, token []byte, rank uint32) {
	if len(token) > keySize {
		v.long.add(token, int32(rank))
		return
	}
	if len(token) == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = int32(rank)
	}
	var key uint64
	for i, b := range token {
		key |= uint64(b) << (8 * i)
	}
	if wait.n == len(wait.slots) {
		v.place(wait)
	}
	wait.slots[wait.n] = slot{key: key, sized: uint32(len(token))<<rankBits | rank}
	wait.homes[wait.n] = v.home(key)
	wait.n++
}

// place puts what waits into its slots.
func (v *vocabulary) place(wait *waiting) {
	seen := uint32(0)
	for _, i := range wait.homes[:wait.n] {
		seen |= v.slots[i].sized
	}
	wait.seen = seen
	for k, i := range wait.homes[:wait.n] {
		for v.slots[i].sized != 0 {
			i = (i + 1) & (len(v.slots) - 1)
		}
		v.slots[i] = wait.slots[k]
	}
	wait.n = 0
}

// home is the slot where the search for a key begins.
func (v *vocabulary) home(key uint64) int {
	high, low := bits.Mul64(key, 0x9e3779b97f4a7c15)
	return int((high ^ low) >> v.shift)
}

// find returns the rank of the token of size bytes with that key, or noRank.
func (v *vocabulary) find(key uint64, size int) int32 {
	for i := v.home(key); ; i = (i + 1) & (len(v.slots) - 1) {
		switch s := v.slots[i]; {
		case s.sized == 0:
			return noRank
		case s.key == key && int(s.sized>>rankBits) == size:
			return int32(s.sized & (1<<rankBits - 1))
		}
	}
}

// rank returns the rank of text[from:to], which is not empty, or noRank.
func (v *vocabulary) rank(text string, from, to int) int32 {
	if size := to - from; size <= keySize {
		return v.find(keyAt(text, from, size), size)
	}
	return v.rankLong(text[from:to])
}

func (v *vocabulary) rankLong(text string) int32 {
	if len(text) <= maxToken {
		return v.long.rank(text)
	}
	return noRank
}

// missingNumber returns a number of up to three digits that is no token, "" if all of them are.
func (v *vocabulary) missingNumber() string {
	for size, count := range [...]int{1: 10, 2: 100, 3: 1000} {
		for n := range count {
			var digits [3]byte
			for i, rest := size-1, n; i >= 0; i, rest = i-1, rest/10 {
				digits[i] = '0' + byte(rest%10)
			}
			if text := digits[:size]; v.find(keyAt(string(text), 0, size), size) == noRank {
				return string(text)
			}
		}
	}
	return ""
}

// keyAt returns the key of the size bytes of text at i, 1 to keySize of them.
func keyAt(text string, i, size int) uint64 {
	if i+keySize <= len(text) {
		return load8(text, i) & (math.MaxUint64 >> (64 - 8*size))
	}
	var key uint64
	for j := size - 1; j >= 0; j-- {
		key = key<<8 | uint64(text[i+j])
	}
	return key
}
