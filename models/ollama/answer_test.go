package ollama

import (
	"errors"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// FuzzAnswer: whatever a server answers, there is one vector of the right length for each text, or an error.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"embeddings":[[1,2,3]]}`, `{"embeddings":[[1,2],[3]]}`, `{"embeddings":null}`, `{"embeddings":[[1e999]]}`, `{"embeddings":["x"]}`,
		`{"embeddings":[[]]}`, `[]`, `{"embeddings":[[0.1,null,3]],"model":"m"}`, ``,
	} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, want int) {
		e := &Embedder{}
		vectors, err := decodeAnswer(data)
		if err != nil {
			return
		}
		if failed := e.dimensions.Settle(vectors, want, core.ErrUnavailable, ""); failed != nil {
			if !errors.Is(failed, core.ErrUnavailable) || e.Dimensions() != 0 {
				t.Errorf("settle = %v, dimensions %d", failed, e.Dimensions())
			}
			return
		}
		if len(vectors) != want {
			t.Errorf("%d vectors for %d texts", len(vectors), want)
		}
		for _, v := range vectors {
			if len(v) == 0 || len(v) != e.Dimensions() {
				t.Errorf("vector of %d, dimensions %d", len(v), e.Dimensions())
			}
		}
	})
}
