package tiktoken

import (
	"math"
	"slices"
)

// merger counts the tokens of one word by byte pair merging in n log n time. Its buffers are reused between words; it
// is not safe for concurrent use.
//
// The order is that of the reference: always the pair of the lowest rank, the leftmost of equals. Parts are named by
// the position of their first byte.
type merger struct {
	next  []int32  // next[i]: where the part at i ends; 0 once i is inside another part
	prev  []int32  // prev[i]: where the part before the one at i starts, -1 for the first
	rank  []int32  // rank[i]: rank of the part at i joined with its successor
	first []uint64 // the first round of pairs by rank, then position
	done  int      // how many of them were taken
	later queue
}

// count returns the number of tokens of piece.
func (m *merger) count(v *vocabulary, piece string) int {
	m.reset(v, piece)
	parts := len(piece)
	for {
		rank, at, ok := m.pop()
		if !ok {
			return parts
		}
		if m.next[at] == 0 || m.rank[at] != rank {
			continue // outdated: one of the two was merged with another part meanwhile
		}
		m.join(v, piece, at)
		parts--
	}
}

// reset prepares the parts, one for each byte, and the first round of pairs.
func (m *merger) reset(v *vocabulary, piece string) {
	n := len(piece)
	m.next, m.prev, m.rank = resize(m.next, n), resize(m.prev, n), resize(m.rank, n)
	m.first, m.later = slices.Grow(m.first[:0], n), m.later[:0]
	for i := range n {
		m.next[i], m.prev[i] = int32(i+1), int32(i-1)
	}
	for i := range n {
		m.rank[i] = m.pairRank(v, piece, int32(i))
		if m.rank[i] != noRank {
			m.first = append(m.first, pack(m.rank[i], int32(i)))
		}
	}
	slices.Sort(m.first)
	m.done = 0
}

// join merges the part at i with its successor and renews the two pairs that this changes.
func (m *merger) join(v *vocabulary, piece string, i int32) {
	gone := m.next[i]
	end := m.next[gone]
	m.next[i], m.next[gone] = end, 0
	if int(end) < len(piece) {
		m.prev[end] = i
	}
	m.renew(v, piece, i)
	if m.prev[i] >= 0 {
		m.renew(v, piece, m.prev[i])
	}
}

func (m *merger) renew(v *vocabulary, piece string, i int32) {
	rank := m.pairRank(v, piece, i)
	m.rank[i] = rank
	if rank != noRank {
		m.later.push(pack(rank, i))
	}
}

func (m *merger) pairRank(v *vocabulary, piece string, i int32) int32 {
	mid := m.next[i]
	if int(mid) >= len(piece) {
		return noRank
	}
	end := m.next[mid]
	return v.rank(piece, int(i), int(end))
}

// pop takes the pair of the lowest rank, leftmost first, from the sorted first round or the queue of later ones.
func (m *merger) pop() (rank, at int32, ok bool) {
	var key uint64
	switch {
	case m.done < len(m.first) && (len(m.later) == 0 || m.first[m.done] <= m.later[0]):
		key = m.first[m.done]
		m.done++
	case len(m.later) > 0:
		key = m.later.pop()
	default:
		return 0, 0, false
	}
	return int32(key >> 32), int32(key & math.MaxUint32), true
}

func pack(rank, at int32) uint64 { return uint64(rank)<<32 | uint64(at) }

func resize(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}

// size is the length in bytes of the longest word the buffers have room for.
func (m *merger) size() int { return cap(m.next) }
