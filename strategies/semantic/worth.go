package semantic

import (
	"fmt"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// enoughTexts is how many different texts with one and the same vector say that an embedder tells none apart. A few may be the same to a model that does not know
// all words.
const enoughTexts = 8

// worth is what is known of whether an embedder's vectors can be compared. One that answers zeros, or the same for everything, finds anything.
type worth struct {
	mu sync.Mutex
	// differ says that two texts had different vectors; what follows is not needed from then on.
	differ bool
	// vector is that of all texts so far.
	vector []float32
	texts  map[string]bool
}

// note takes the vector of a text into account.
func (w *worth) note(text string, vector []float32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.differ:
	case w.vector == nil:
		w.vector, w.texts = vector, map[string]bool{text: true}
	case !slices.Equal(vector, w.vector):
		w.differ, w.vector, w.texts = true, nil, nil
	case len(w.texts) < enoughTexts:
		w.texts[text] = true
	}
}

// judge takes an embedder's answer into account, nil for texts whose vectors have no length, and returns an error that wraps core.ErrUnavailable when nothing of
// it can be compared. One text alone may have no vector where others had.
func (w *worth) judge(texts []string, vectors [][]float32) error {
	zeros := 0
	for i, v := range vectors {
		if v == nil {
			zeros++
			continue
		}
		w.note(texts[i], v)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case zeros > 0 && zeros == len(vectors) && (zeros > 1 || !w.differ && w.vector == nil):
		return fmt.Errorf("it answers zeros, which cannot be compared: %w", core.ErrUnavailable)
	case len(w.texts) >= enoughTexts:
		return fmt.Errorf("it answers the same vector for different texts, which cannot be compared: %w", core.ErrUnavailable)
	}
	return nil
}
