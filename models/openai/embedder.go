package openai

import (
	"context"
	"strings"

	library "github.com/sashabaranov/go-openai"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// maxEmbeddingBytes bounds the answer to one batch: 2048 vectors of 4096 numbers with room for long digits.
const maxEmbeddingBytes = 256 << 20

// Embedder turns texts into vectors. It is safe for concurrent use and holds nothing that needs closing.
type Embedder struct {
	end        *service
	dimensions endpoint.Dimensions
}

var _ core.Embedder = (*Embedder)(nil)

// NewEmbedder returns an Embedder, or a core.ErrInvalid for a Config that Validate refuses. It does not call the
// endpoint.
func NewEmbedder(cfg Config, opts ...Option) (*Embedder, error) {
	end, err := newService(cfg, opts)
	if err != nil {
		return nil, err
	}
	e := &Embedder{end: end}
	e.dimensions.Store(int64(cfg.Dimensions))
	return e, nil
}

// Model returns the configured name of the model.
func (e *Embedder) Model() string { return e.end.cfg.Model }

// Dimensions returns the length of every vector; 0 before the first answer if the configuration does not say.
func (e *Embedder) Dimensions() int { return int(e.dimensions.Load()) }

// Embed returns one vector per text, in order. Texts go in as few requests as the configured bounds allow, one after
// the other; a failed request fails the whole call. Endpoints refuse empty texts, so an empty one is sent as a single
// space. Vectors of another length than Dimensions are a core.ErrInvalid.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := e.batch(texts)
		part, err := e.embed(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, part...)
		texts = texts[n:]
	}
	return vectors, nil
}

// batch returns how many of texts, at least one, the next request takes.
func (e *Embedder) batch(texts []string) int {
	tokens := 0
	for i, text := range texts {
		tokens += max(1, (len(text)+2)/3)
		if i > 0 && (i == e.end.cfg.BatchInputs || tokens > e.end.cfg.BatchTokens) {
			return i
		}
	}
	return len(texts)
}

func (e *Embedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	input := make([]string, len(texts))
	for i, text := range texts {
		if input[i] = text; text == "" {
			input[i] = " "
		}
	}
	cfg := e.end.cfg
	req := library.EmbeddingRequest{
		Input: input, Model: library.EmbeddingModel(cfg.Model), EncodingFormat: library.EmbeddingEncodingFormatFloat,
	}
	if cfg.RequestDimensions || strings.Contains(cfg.Model, "text-embedding-3") {
		req.Dimensions = cfg.Dimensions
	}
	var vectors [][]float32
	err := e.end.do(ctx, "embed", cfg.Model, maxEmbeddingBytes, func(ctx context.Context, client *library.Client) error {
		resp, err := client.CreateEmbeddings(ctx, req)
		if err != nil {
			return err
		}
		vectors, err = e.arrange(resp.Data, len(input))
		return err
	})
	return vectors, err
}

// arrange puts the vectors in the order of the texts and checks that there is one of the right length for each.
func (e *Embedder) arrange(data []library.Embedding, want int) ([][]float32, error) {
	vectors := make([][]float32, len(data))
	for _, item := range data {
		if item.Index < 0 || item.Index >= len(data) || vectors[item.Index] != nil {
			return nil, endpoint.Nonsense("does not number its vectors from 0 up")
		}
		vectors[item.Index] = item.Embedding
	}
	failed := e.dimensions.Settle(vectors, want, core.ErrInvalid, "set dimensions to the model's, or requestDimensions if the model can shorten its vectors")
	if failed != nil {
		return nil, failed
	}
	return vectors, nil
}
