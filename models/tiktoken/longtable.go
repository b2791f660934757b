package tiktoken

import (
	"hash/maphash"
	"math/bits"
)

// longTable gives the ranks of tokens of more than keySize bytes. Their bytes stand in one block of memory, where a map would have an
// allocation for each. After settle it is immutable.
type longTable struct {
	text   []byte
	tokens []longToken
	slots  []uint32 // number+1 of a token, 0 when free; a power of two of them
	seed   maphash.Seed
}

// longToken is where a token lies in the text.
type longToken struct {
	at   uint32
	size uint32
	rank int32
}

func newLongTable(size int) longTable {
	return longTable{text: make([]byte, 0, size*12), tokens: make([]longToken, 0, size), seed: maphash.MakeSeed()}
}

// add notes a token, which rank finds after settle.
func (t *longTable) add(token []byte, rank int32) {
	t.tokens = append(t.tokens, longToken{at: uint32(len(t.text)), size: uint32(len(token)), rank: rank})
	t.text = append(t.text, token...)
}

// settle places all tokens. Of two equal ones the later counts.
func (t *longTable) settle() {
	t.slots = make([]uint32, 2<<bits.Len(uint(len(t.tokens))))
	mask := uint64(len(t.slots) - 1)
	for i, k := range t.tokens {
		text := t.text[k.at : k.at+k.size]
		h := maphash.Bytes(t.seed, text)
		for ; t.slots[h&mask] != 0; h++ {
			if other := t.tokens[t.slots[h&mask]-1]; string(t.text[other.at:other.at+other.size]) == string(text) {
				break
			}
		}
		t.slots[h&mask] = uint32(i + 1)
	}
}

// rank returns the rank of a token, or noRank.
func (t *longTable) rank(text string) int32 {
	mask := uint64(len(t.slots) - 1)
	for h := maphash.String(t.seed, text); ; h++ {
		n := t.slots[h&mask]
		if n == 0 {
			return noRank
		}
		k := &t.tokens[n-1]
		if int(k.size) == len(text) && string(t.text[k.at:k.at+k.size]) == text {
			return k.rank
		}
	}
}
