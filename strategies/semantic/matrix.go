package semantic

// blockVectors is how many vectors lie in one block of memory.
const blockVectors = 64

// matrix holds the vectors of one length, one behind the other, so that a scan reads memory in order. Beside each lies a code of one bit for
// each dimension, see coder. Removing a vector moves the last one into its place.
type matrix struct {
	dimensions int
	items      []*item
	blocks     [][]float32
	coder      *coder
	codes      []uint64 // coder.words for each vector
	scale      []float32
	doubt      []float32
}

func newMatrix(dimensions int) *matrix {
	return &matrix{dimensions: dimensions, coder: newCoder(dimensions)}
}

// at returns the vector in a slot.
func (m *matrix) at(slot int) []float32 {
	from := slot % blockVectors * m.dimensions
	return m.blocks[slot/blockVectors][from : from+m.dimensions : from+m.dimensions]
}

func (m *matrix) code(slot int) []uint64 {
	from := slot * m.coder.words
	return m.codes[from : from+m.coder.words : from+m.coder.words]
}

// add copies the vector of an item, which must be of length 1 or zero, into the next slot.
func (m *matrix) add(it *item, vector []float32) {
	slot := len(m.items)
	if slot/blockVectors == len(m.blocks) {
		m.blocks = append(m.blocks, make([]float32, blockVectors*m.dimensions))
	}
	copy(m.at(slot), vector)
	m.items = append(m.items, it)
	m.codes = append(m.codes, make([]uint64, m.coder.words)...)
	scale, doubt := m.coder.encode(vector, m.code(slot))
	m.scale, m.doubt = append(m.scale, scale), append(m.doubt, doubt)
	it.rows, it.slot = m, slot
}

// remove forgets the vector of an item. Nothing of it stays in memory: it may stand for what had to be erased.
func (m *matrix) remove(it *item) {
	slot, last := it.slot, len(m.items)-1
	if slot != last {
		copy(m.at(slot), m.at(last))
		copy(m.code(slot), m.code(last))
		m.scale[slot], m.doubt[slot] = m.scale[last], m.doubt[last]
		m.items[slot] = m.items[last]
		m.items[slot].slot = slot
	}
	clear(m.at(last))
	clear(m.code(last))
	m.items[last], m.scale[last], m.doubt[last] = nil, 0, 0
	m.items, m.scale, m.doubt = m.items[:last], m.scale[:last], m.doubt[:last]
	m.codes = m.codes[:last*m.coder.words]
	if last%blockVectors == 0 {
		m.blocks = m.blocks[:last/blockVectors]
	}
	it.rows, it.slot = nil, 0
}

// dot is the scalar product of two vectors of the same length. Eight sums that do not wait for each other take about half the time of one.
func dot(a, b []float32) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	n := len(a) &^ 7
	for i := 0; i < n; i += 8 {
		x, y := a[i:i+8:i+8], b[i:i+8:i+8]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
	}
	for i := n; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return float64(s0) + float64(s1) + float64(s2) + float64(s3) + float64(s4) + float64(s5) + float64(s6) + float64(s7)
}
