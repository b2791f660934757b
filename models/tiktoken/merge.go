package tiktoken

import "math"

// noRank marks a pair that is not in the vocabulary.
const noRank = math.MaxInt32

// merger counts the tokens of one word by byte pair merging in n log n time. Its buffers are reused between words; it
// is not safe for concurrent use.
//
// The order is that of the reference: always the pair of the lowest rank, the leftmost of equals. Parts are named by
// the position of their first byte.
type merger struct {
	next  []int32 // next[i]: where the part at i ends; 0 once i is inside another part
	prev  []int32 // prev[i]: where the part before the one at i starts, -1 for the first
	rank  []int32 // rank[i]: rank of the part at i joined with its successor
	first []uint64
	later queue
}

// count returns the number of tokens of piece. Every single byte is in ranks.
func (m *merger) count(ranks map[string]int, piece []byte) int {
	if len(piece) == 0 {
		return 0
	}
	if _, ok := ranks[string(piece)]; ok {
		return 1
	}
	m.reset(ranks, piece)
	parts := len(piece)
	for {
		rank, at, ok := m.pop()
		if !ok {
			return parts
		}
		if m.next[at] == 0 || m.rank[at] != rank {
			continue // outdated: one of the two was merged with another part meanwhile
		}
		m.join(ranks, piece, at)
		parts--
	}
}

// reset prepares the parts, one for each byte, and the first round of pairs.
func (m *merger) reset(ranks map[string]int, piece []byte) {
	n := len(piece)
	m.next, m.prev, m.rank = resize(m.next, n), resize(m.prev, n), resize(m.rank, n)
	m.first, m.later = m.first[:0], m.later[:0]
	for i := range n {
		m.next[i], m.prev[i] = int32(i+1), int32(i-1)
	}
	for i := range n {
		m.rank[i] = m.pairRank(ranks, piece, int32(i))
		if m.rank[i] != noRank {
			m.first = append(m.first, pack(m.rank[i], int32(i)))
		}
	}
	sortDescending(m.first)
}

// join merges the part at i with its successor and renews the two pairs that this changes.
func (m *merger) join(ranks map[string]int, piece []byte, i int32) {
	gone := m.next[i]
	end := m.next[gone]
	m.next[i], m.next[gone] = end, 0
	if int(end) < len(piece) {
		m.prev[end] = i
	}
	m.renew(ranks, piece, i)
	if m.prev[i] >= 0 {
		m.renew(ranks, piece, m.prev[i])
	}
}

func (m *merger) renew(ranks map[string]int, piece []byte, i int32) {
	rank := m.pairRank(ranks, piece, i)
	m.rank[i] = rank
	if rank != noRank {
		m.later.push(pack(rank, i))
	}
}

func (m *merger) pairRank(ranks map[string]int, piece []byte, i int32) int32 {
	mid := m.next[i]
	if int(mid) >= len(piece) {
		return noRank
	}
	end := m.next[mid]
	if end-i > maxToken {
		return noRank
	}
	if rank, ok := ranks[string(piece[i:end])]; ok {
		return int32(rank)
	}
	return noRank
}

// pop takes the pair of the lowest rank, leftmost first, from the sorted first round or the queue of later ones.
func (m *merger) pop() (rank, at int32, ok bool) {
	var key uint64
	switch last := len(m.first) - 1; {
	case last >= 0 && (len(m.later) == 0 || m.first[last] <= m.later[0]):
		key, m.first = m.first[last], m.first[:last]
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
