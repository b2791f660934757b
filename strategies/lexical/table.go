package lexical

import (
	"bytes"
	"hash/maphash"
)

// table numbers strings, from 0 in the order in which they were first met. It keeps them in one block of memory: a map of Go
// strings takes five times as much.
type table struct {
	text  []byte
	ends  []uint32 // of string i in text
	slots []uint32 // number+1 of a string, 0 when free; a power of two of them
	seed  maphash.Seed
}

func newTable(size int) table {
	t := table{seed: maphash.MakeSeed()}
	t.grow(size)
	return t
}

func (t *table) len() int { return len(t.ends) }

// at returns string i. The caller does not change it.
func (t *table) at(i uint32) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.text[start:t.ends[i]]
}

// find returns the number of a string.
func (t *table) find(s []byte) (uint32, bool) {
	mask := uint64(len(t.slots) - 1)
	for h := maphash.Bytes(t.seed, s); ; h++ {
		n := t.slots[h&mask]
		if n == 0 {
			return none, false
		}
		if bytes.Equal(t.at(n-1), s) {
			return n - 1, true
		}
	}
}

// number returns the number of a string, a new one when it is unknown.
func (t *table) number(s []byte) (n uint32, fresh bool) {
	if n, ok := t.find(s); ok {
		return n, false
	}
	if (len(t.ends)+1)*4 > len(t.slots)*3 {
		t.grow(2 * len(t.slots))
	}
	if len(t.text)+len(s) > cap(t.text) {
		t.text = append(make([]byte, 0, len(t.text)+len(t.text)/8+len(s)+64), t.text...)
	}
	t.text = append(t.text, s...)
	t.ends = push(t.ends, uint32(len(t.text)))
	n = uint32(len(t.ends) - 1)
	t.place(n)
	return n, true
}

// grow makes room for at least size slots and places all strings again.
func (t *table) grow(size int) {
	n := 16
	for n < size {
		n *= 2
	}
	t.slots = make([]uint32, n)
	for i := range t.ends {
		t.place(uint32(i))
	}
}

func (t *table) place(n uint32) {
	mask := uint64(len(t.slots) - 1)
	h := maphash.Bytes(t.seed, t.at(n))
	for t.slots[h&mask] != 0 {
		h++
	}
	t.slots[h&mask] = n + 1
}

// bytes is the memory that t takes.
func (t *table) bytes() int { return cap(t.text) + 4*cap(t.ends) + 4*cap(t.slots) }
