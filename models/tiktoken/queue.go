package tiktoken

// queue is a min-heap with four children to a node: half as deep as a binary one, and its children share a cache line.
type queue []uint64

func (q *queue) push(key uint64) {
	h := append(*q, key)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if h[parent] <= key {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = key
	*q = h
}

// pop takes the smallest key. The queue is not empty.
func (q *queue) pop() uint64 {
	h := *q
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		for j := child + 1; j < min(4*i+5, len(h)); j++ {
			if h[j] < h[child] {
				child = j
			}
		}
		if h[child] >= last {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return top
}
