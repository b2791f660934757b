package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// Embedder turns texts into vectors. It is safe for concurrent use and holds nothing that needs closing.
type Embedder struct {
	cfg        Config
	url        string
	client     *endpoint.Client
	dimensions endpoint.Dimensions
}

var (
	_ core.Embedder = (*Embedder)(nil)
	_ core.Pinger   = (*Embedder)(nil)
)

// NewEmbedder returns an Embedder, or a core.ErrInvalid for a Config that Validate refuses. It does not call the
// server.
func NewEmbedder(cfg Config, opts ...Option) (*Embedder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("ollama: config: baseUrl: %w", core.ErrInvalid) // Validate has parsed it
	}
	e := &Embedder{cfg: cfg, url: base.JoinPath("api", "embed").String(), client: endpoint.New("ollama", cfg.settings(), opts)}
	e.dimensions.Store(int64(cfg.Dimensions))
	return e, nil
}

// Model returns the configured name of the model.
func (e *Embedder) Model() string { return e.cfg.Model }

// Dimensions returns the length of every vector; 0 before the first answer if the configuration does not say.
func (e *Embedder) Dimensions() int { return int(e.dimensions.Load()) }

// Ping implements core.Pinger: it has a word embedded.
func (e *Embedder) Ping(ctx context.Context) error {
	_, err := e.Embed(ctx, []string{"ping"})
	return err
}

// Embed returns one vector per text, in order. Texts go in requests of at most Config.BatchInputs, one after the other; a failed
// request fails the whole call. A text that is longer than the model takes is a core.ErrInvalid, never cut: the caller knows better
// what to leave out. An empty text is sent as a single space. Vectors of another length than Dimensions are a core.ErrUnavailable.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(len(texts), e.cfg.BatchInputs)
		part, err := e.embed(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, part...)
		texts = texts[n:]
	}
	return vectors, nil
}

// request is the body of POST /api/embed.
type request struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
	// Truncate is always sent: Ollama cuts long texts without a word unless it is false.
	Truncate   bool   `json:"truncate"`
	Dimensions int    `json:"dimensions,omitempty"`
	KeepAlive  string `json:"keep_alive,omitempty"`
}

func (e *Embedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	req := request{Model: e.cfg.Model, Input: make([]string, len(texts))}
	for i, text := range texts {
		if req.Input[i] = strings.ToValidUTF8(text, "\uFFFD"); text == "" {
			req.Input[i] = " "
		}
	}
	if e.cfg.RequestDimensions {
		req.Dimensions = e.cfg.Dimensions
	}
	if e.cfg.KeepAlive > 0 {
		req.KeepAlive = e.cfg.KeepAlive.String()
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("ollama: embed %q: encode request: %w", e.cfg.Model, core.ErrInvalid)
	}
	var vectors [][]float32
	err = e.client.Do(ctx, "embed", e.cfg.Model, func(ctx context.Context) (failed *endpoint.Failure) {
		vectors, failed = e.attempt(ctx, body, len(texts))
		return failed
	})
	return vectors, err
}
