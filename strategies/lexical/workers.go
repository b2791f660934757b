package lexical

import (
	"context"
	"runtime"
	"sync"
)

// worker is the working memory of one of the goroutines that share a search.
type worker struct {
	load     int // postings to read
	list     []byte
	postings []posting // of the terms that it reads, one after the other
	bits     []byte    // of bitmaps, with the passages that count alone
	bounds   []float64 // by block: what those terms are worth
	common   []float64 // by block: and what frequent terms are worth
	extra    []uint32  // by block
	at       []int     // by term: how far the postings were looked at
	touched  []uint32  // passages that it gave scores
	differ   [window - 1 + block + 2*reach]uint32
	err      error
}

const (
	// maxHands bounds the goroutines of a search.
	maxHands = 4
	// defaultPerHand is the number of passages that are worth another goroutine: with fewer, waking it takes as long as what it saves.
	defaultPerHand = 1 << 18
)

// handsFor returns how many goroutines a search among so many passages is shared by. On two threads of
// one core it takes 0.83 times as long among 370,000, and a fifth more processor time.
func (w *scratch) handsFor(passages int) int {
	per := w.perWorker
	if per == 0 {
		per = defaultPerHand
	}
	return min(maxHands, runtime.GOMAXPROCS(0), 1+passages/per)
}

// onWorkers has f done by all workers at once, the first one here, and returns when they are done.
func (w *scratch) onWorkers(ctx context.Context, f func(ctx context.Context, h *worker, i int) error) error {
	var others sync.WaitGroup
	for i := range w.workers[1:] {
		h := &w.workers[i+1]
		others.Go(func() { h.err = f(ctx, h, i+1) })
	}
	err := f(ctx, &w.workers[0], 0)
	others.Wait()
	for i := range w.workers[1:] {
		if err == nil {
			err = w.workers[i+1].err
		}
	}
	return err
}

// assign gives each term to the worker that has least to read so far, those with most postings first.
func (w *scratch) assign() {
	for i := range w.workers {
		w.workers[i].load = 0
	}
	for i := len(w.parts) - 1; i >= 0; i-- { // by df, ascending
		least := 0
		for j := range w.workers {
			if w.workers[j].load < w.workers[least].load {
				least = j
			}
		}
		w.parts[i].worker = least
		w.workers[least].load += int(w.parts[i].df)
	}
}
