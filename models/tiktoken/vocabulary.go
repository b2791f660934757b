package tiktoken

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"math/bits"
	"strconv"
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
// table under their bytes, so that a look-up compares one number and copies nothing.
type vocabulary struct {
	pairs []int32 // rank by the two bytes of a token
	slots []slot
	shift int
	long  map[string]int32
}

// slot holds a token of at most keySize bytes: its bytes, the first lowest, and its length and rank. The latter is 0 if
// the slot is empty.
type slot struct {
	key   uint64
	sized uint32
}

// parseVocabulary reads a vocabulary as published: a token in base64, a space, its rank; one to a line.
func parseVocabulary(data []byte) (*vocabulary, error) {
	lines := bytes.Count(data, []byte{'\n'}) + 1
	width := bits.Len(uint(lines))
	v := &vocabulary{
		pairs: make([]int32, 1<<16),
		slots: make([]slot, 1<<width), // more than there are tokens, so that a search ends
		shift: 64 - width,
		long:  make(map[string]int32, lines/4),
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	var buf [maxToken + 3]byte
	for number := 1; len(data) > 0; number++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		if len(line) == 0 {
			continue
		}
		coded, digits, _ := bytes.Cut(line, []byte{' '})
		if base64.StdEncoding.DecodedLen(len(coded)) > len(buf) {
			return nil, fmt.Errorf("line %d: token of more than %d bytes", number, maxToken)
		}
		n, err := base64.StdEncoding.Decode(buf[:], coded)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rank, err := strconv.ParseUint(string(digits), 10, rankBits)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if n == 0 || n > maxToken {
			return nil, fmt.Errorf("line %d: token of %d bytes", number, n)
		}
		v.add(buf[:n], uint32(rank))
	}
	for b := range 256 {
		if v.find(uint64(b), 1) == noRank {
			return nil, fmt.Errorf("byte %#x is no token", b)
		}
	}
	return v, nil
}

func (v *vocabulary) add(token []byte, rank uint32) {
	if len(token) > keySize {
		v.long[string(token)] = int32(rank)
		return
	}
	if len(token) == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = int32(rank)
	}
	var key uint64
	for i, b := range token {
		key |= uint64(b) << (8 * i)
	}
	i := v.home(key)
	for v.slots[i].sized != 0 {
		i = (i + 1) & (len(v.slots) - 1)
	}
	v.slots[i] = slot{key: key, sized: uint32(len(token))<<rankBits | rank}
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
		if rank, ok := v.long[text]; ok {
			return rank
		}
	}
	return noRank
}

// keyAt returns the key of the size bytes of text at i, 1 to keySize of them.
func keyAt(text string, i, size int) uint64 {
	if i+keySize <= len(text) {
		b := text[i : i+keySize]
		key := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56 // one load
		return key & (math.MaxUint64 >> (64 - 8*size))
	}
	var key uint64
	for j := size - 1; j >= 0; j-- {
		key = key<<8 | uint64(text[i+j])
	}
	return key
}
