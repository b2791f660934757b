package words

import (
	"iter"
	"math/bits"
)

// Sketch tells of most words that texts do not say that they do not, for a fraction of what it costs to look: a Bloom filter. The zero Sketch tells of none.
type Sketch []uint64

// bitsPerByte is about how many bits a byte of text gets: a word and what is around it are some seven bytes.
const bitsPerByte = 2

// SketchOf sketches all of some texts.
func SketchOf(texts iter.Seq[string]) Sketch {
	size := 0
	for text := range texts {
		size += len(text)
	}
	s := make(Sketch, 1<<bits.Len(uint(size*bitsPerByte/64)))
	for text := range texts {
		Each(text, func(w string) bool {
			a, b := s.places(hash(w))
			s[a/64] |= 1 << (a % 64)
			s[b/64] |= 1 << (b % 64)
			return true
		})
	}
	return s
}

// may reports whether the texts may say the word of a hash.
func (s Sketch) may(hash uint64) bool {
	if len(s) == 0 {
		return true
	}
	a, b := s.places(hash)
	return s[a/64]&(1<<(a%64)) != 0 && s[b/64]&(1<<(b%64)) != 0
}

// places returns the two bits of a hash.
func (s Sketch) places(hash uint64) (a, b uint64) {
	last := uint64(len(s))*64 - 1
	return hash & last, hash >> 32 & last
}

// hash is FNV-1a with a last step that spreads it over all bits.
func hash(word string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(word) {
		h = (h ^ uint64(word[i])) * 1099511628211
	}
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
