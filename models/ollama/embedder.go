package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Embedder turns texts into vectors. It is safe for concurrent use and holds nothing that needs closing.
type Embedder struct {
	cfg        Config
	url        string
	http       http.Client
	sleep      func(ctx context.Context, d time.Duration) error
	log        *slog.Logger
	dimensions atomic.Int64
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
	e := &Embedder{cfg: cfg, url: base.JoinPath("api", "embed").String(), sleep: sleep, log: slog.New(slog.DiscardHandler)}
	e.dimensions.Store(int64(cfg.Dimensions))
	for _, opt := range opts {
		opt(e)
	}
	// A redirect would carry texts to a host nobody configured.
	e.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
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
			return nil, fmt.Errorf("ollama: embed %q: %w", e.cfg.Model, err)
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
		return nil, fmt.Errorf("encode request: %w", core.ErrInvalid)
	}
	for tried := 0; ; tried++ {
		vectors, failed := e.attempt(ctx, body, len(texts))
		if failed == nil {
			return vectors, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !failed.retry || tried == e.cfg.MaxRetries {
			return nil, fmt.Errorf("attempt %d: %w", tried+1, failed)
		}
		wait, ok := e.wait(ctx, tried, failed)
		if !ok {
			return nil, fmt.Errorf("attempt %d: next one not before %v: %w", tried+1, wait.Round(time.Second), failed)
		}
		e.log.DebugContext(ctx, "ollama: retry", slog.String("model", e.cfg.Model), slog.Int("attempt", tried+1), slog.Duration("wait", wait))
		if err := e.sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("after %s: %w", failed.text, err)
		}
	}
}

// wait returns how long to wait before the next attempt. ok is false if that is longer than the configuration or the
// deadline of ctx allow.
func (e *Embedder) wait(ctx context.Context, tried int, failed *failure) (d time.Duration, ok bool) {
	bound := e.cfg.RetryDelay
	for range tried {
		bound = min(2*bound, e.cfg.MaxRetryDelay)
	}
	// Anywhere between 0 and the bound, so that clients that failed together do not come back together.
	d = max(rand.N(bound+1), failed.after)
	if failed.after > e.cfg.MaxRetryDelay {
		return d, false
	}
	deadline, has := ctx.Deadline()
	return d, !has || time.Until(deadline) > d
}

// settle checks that there is a vector of the right length for each text.
func (e *Embedder) settle(vectors [][]float32, want int) *failure {
	if len(vectors) != want {
		return nonsense(fmt.Sprintf("holds %d vectors for %d texts", len(vectors), want))
	}
	// All are checked before the length is learnt, so that a broken answer settles nothing.
	dimensions := e.Dimensions()
	for _, v := range vectors {
		if len(v) == 0 {
			return nonsense("holds an empty vector")
		}
		if dimensions == 0 {
			dimensions = len(v)
		}
		if len(v) != dimensions {
			return wrongLength(len(v), dimensions)
		}
	}
	if !e.dimensions.CompareAndSwap(0, int64(dimensions)) && e.Dimensions() != dimensions {
		return wrongLength(dimensions, e.Dimensions()) // a concurrent call learnt another length first
	}
	return nil
}

// wrongLength is about the model, not about a text: all texts wait until it is set right.
func wrongLength(got, want int) *failure {
	return &failure{
		text: fmt.Sprintf("dimensions: vector has %d numbers, expected are %d; set dimensions to the model's", got, want),
		kind: core.ErrUnavailable,
	}
}
