package openai

import (
	"context"

	library "github.com/sashabaranov/go-openai"

	"github.com/contextengine/contextengine/internal/endpoint"
)

// service is what Completer and Embedder share: one configured client.
type service struct {
	cfg    Config
	client *endpoint.Client
}

func newService(cfg Config, opts []Option) (*service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &service{cfg: cfg, client: endpoint.New("openai", cfg.settings(), opts)}, nil
}

// do runs call until it succeeds, fails for good, runs out of retries, or ctx ends. limit bounds an answer in bytes.
func (s *service) do(ctx context.Context, op, model string, limit int64, call func(context.Context, *library.Client) error) error {
	return s.client.Do(ctx, op, model, func(ctx context.Context) *endpoint.Failure {
		x := &exchange{client: &s.client.HTTP, limit: limit, now: s.client.Now}
		cfg := library.DefaultConfig(s.cfg.APIKey)
		cfg.BaseURL, cfg.HTTPClient = s.cfg.BaseURL, x
		if err := call(ctx, library.NewClientWithConfig(cfg)); err != nil {
			return x.failure(err)
		}
		return nil
	})
}
