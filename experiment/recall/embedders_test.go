package recall_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// bag embeds a text as the sum of what its words point at, each in a direction of its own: the fewer dimensions, the more words look alike. Of 0 dimensions
// it draws a direction for the whole text, and finds nothing.
type bag struct {
	dims int
	mu   sync.Mutex
	of   map[string][]float32
}

func direction(text string, dims int) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	out := make([]float32, dims)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func (b *bag) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if b.dims == 0 {
			out[i] = direction(text, b.Dimensions())
			continue
		}
		out[i] = make([]float32, b.dims)
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			word = strings.Trim(word, ".,;:!?\"'()")
			if len(word) < 4 {
				continue // most of them say nothing
			}
			v, ok := b.of[word]
			if !ok {
				v = direction(word, b.dims)
				b.of[word] = v
			}
			for d := range v {
				out[i][d] += v[d]
			}
		}
		out[i][0] += 0.001
	}
	return out, ctx.Err()
}

func (b *bag) Dimensions() int {
	if b.dims == 0 {
		return 64
	}
	return b.dims
}
func (b *bag) Model() string { return fmt.Sprintf("bag-%d", b.dims) }

// meaning makes retrievers that ask a bag of so many dimensions beside the words.
func meaning(dims int) retriever {
	return func(words core.Searcher, log *slog.Logger) (core.Retriever, error) {
		vectors := semantic.DefaultVectorConfig()
		vectors.PerSearch, vectors.Batch = 1_000_000, 2048
		index, err := semantic.NewVector(vectors, &bag{dims: dims, of: map[string][]float32{}})
		if err != nil {
			return nil, err
		}
		return hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"semantic": index, "lexical": words}, hybrid.WithLogger(log))
	}
}

// TestWeakEmbedders: vectors beside the words never cost more than a point, however little they find alone. It looks for no races, and takes minutes under their detector.
func TestWeakEmbedders(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	for name, group := range map[string]string{"locomo/locomo-dev.json": "categories 1-4", "beam": "all"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := realData(t, name)
			arms := []recall.Arm{arm(t, "words", memoryStore, plain, nil)}
			for _, dims := range []int{0, 16, 128} {
				arms = append(arms, arm(t, fmt.Sprintf("with %d dimensions", dims), memoryStore, meaning(dims), nil))
			}
			res := measure(t, recall.Plan{Dataset: set, Arms: arms})
			words := recallOf(t, res.Arms[0], group, "R@10")
			for _, a := range res.Arms {
				got := recallOf(t, a, group, "R@10")
				t.Logf("%s: R@10 %.1f", a.Name, got)
				if got < words-1 {
					t.Errorf("%s: R@10 is %.1f, and %.1f of words alone", a.Name, got, words)
				}
			}
		})
	}
}
