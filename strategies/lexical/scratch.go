package lexical

// match is a doc with the score of its best passage.
type match struct {
	doc, passage uint32
	score        float64
}

// scratch is the working memory of a search: dense arrays, all zero between searches.
type scratch struct {
	tf      []uint32  // of one term, by passage: times unit while it is spread, or as it is packed
	score   []float64 // by passage
	found   []match   // by doc
	touched []uint32  // passages with a score
	hot     []uint32  // passages with a tf
	met     []uint32  // docs with a match
	heap    []match
	runs    []run
	parts   []queryTerm
	near    []uint32 // the neighbours of touched passages, row by row
	named   []bool   // by actor
	list    []byte
}

func (w *scratch) fit(s *segment) {
	// One more than there are passages: the one that stands for no neighbour.
	w.tf = grow(w.tf, len(s.metas)+1)
	w.score = grow(w.score, len(s.metas))
	w.found = grow(w.found, len(s.docs))
	w.named = grow(w.named, len(s.actors))
	w.touched, w.hot, w.met, w.heap, w.near = w.touched[:0], w.hot[:0], w.met[:0], w.heap[:0], w.near[:0]
}

// grow returns a slice of at least n elements, keeping those of b.
func grow[T any](b []T, n int) []T {
	if n <= len(b) {
		return b
	}
	return append(b, make([]T, n-len(b)+n/8)...)
}

// reset makes all arrays zero again, also after a search that was broken off between two terms.
func (w *scratch) reset() {
	for _, p := range w.touched {
		w.score[p] = 0
	}
	w.forgetDocs()
	clear(w.named)
}

// forgetDocs forgets the best passages of docs.
func (w *scratch) forgetDocs() {
	for _, d := range w.met {
		w.found[d] = match{}
	}
	w.met = w.met[:0]
}
