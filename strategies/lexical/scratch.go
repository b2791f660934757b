package lexical

// match is a doc with the score of its best passage.
type match struct {
	doc, passage uint32
	score        float64
}

// scratch is the working memory of a search: dense arrays, all zero between searches unless they say otherwise.
type scratch struct {
	score     []float64 // by passage
	found     []match   // by doc
	touched   []uint32  // passages with a score
	met       []uint32  // docs with a match
	heap      []match
	parts     []queryTerm
	named     []bool // by actor
	list      []byte
	sums      sums
	upper     upper
	workers   []worker
	perWorker int // passages that are worth another worker, the default when 0

	mask    []byte    // the passages that count; nil for all
	bounds  []float64 // by block: what its passages can have, negative once they have their scores; the first worker's
	common  []float64 // by block: what of that is from frequent terms; the first worker's
	least   []float64 // by block: what a score has to be to matter
	lengths []float64 // by block: what a frequency is compared with at least
	chosen  []uint32  // blocks whose passages have their scores
}

func (w *scratch) fit(s *segment) {
	w.sums.fit(s.weights)
	w.score = grow(w.score, len(s.metas))
	w.least, w.lengths = sized(w.least, len(s.floors)), sized(w.lengths, len(s.floors))
	w.workers = sized(w.workers, w.handsFor(len(s.metas)))
	for i := range w.workers {
		h := &w.workers[i]
		h.bounds, h.common = sized(h.bounds, len(s.floors)), sized(h.common, len(s.floors))
		h.postings, h.bits, h.touched = h.postings[:0], h.bits[:0], h.touched[:0]
	}
	w.bounds, w.common = w.workers[0].bounds, w.workers[0].common
	w.found = grow(w.found, len(s.docs))
	w.named = grow(w.named, len(s.actors))
	w.touched, w.met, w.heap, w.chosen = w.touched[:0], w.met[:0], w.heap[:0], w.chosen[:0]
}

// grow returns a slice of at least n elements, keeping those of b.
func grow[T any](b []T, n int) []T {
	if n <= len(b) {
		return b
	}
	return append(b, make([]T, n-len(b)+n/8)...)
}

// sized returns a slice of n elements, whatever they are.
func sized[T any](b []T, n int) []T {
	if n <= cap(b) {
		return b[:n]
	}
	return make([]T, n, n+n/8)
}

// reset makes all arrays zero again, also after a search that was broken off between two terms.
func (w *scratch) reset() {
	for _, r := range w.chosen {
		clear(w.score[r*block : min((r+1)*block, uint32(len(w.score)))])
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
