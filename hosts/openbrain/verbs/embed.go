package verbs

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/models/ollama"
	"github.com/contextengine/contextengine/models/openai"
)

// embedFlags says which model makes vectors; without a model searches go by words.
type embedFlags struct {
	api, url, model string
	dimensions      int
	timeout         time.Duration
}

func (f *embedFlags) register(cmd *cobra.Command, cfg *openbrain.Config) {
	fs := cmd.Flags()
	fs.StringVar(&f.model, "embed-model", "", "model that makes vectors, so that thoughts are found by meaning too; none by default")
	fs.StringVar(&f.api, "embed-api", "ollama", "what the endpoint of --embed-model speaks: ollama or openai")
	fs.StringVar(&f.url, "embed-url", "", `its address; for openai up to the version, as in "http://127.0.0.1:8000/v1"; ollama's else from `+ollama.EnvHost)
	fs.IntVar(&f.dimensions, "embed-dimensions", 0, "length of the vectors; 0 takes that of the first one")
	fs.IntVar(&cfg.EmbedMaxBytes, "embed-max-bytes", cfg.EmbedMaxBytes, "how much of a thought is embedded, in bytes")
	fs.DurationVar(&f.timeout, "embed-timeout", time.Minute, "how long one request for vectors may take")
}

// open returns nil when no model is set.
func (f *embedFlags) open(getenv func(string) string, log *slog.Logger) (core.Embedder, error) {
	if f.model == "" && f.url != "" {
		return nil, fmt.Errorf("--embed-url: needs --embed-model: %w", core.ErrInvalid)
	}
	if f.model == "" {
		return nil, nil
	}
	switch f.api {
	case "openai":
		cfg := openai.DefaultConfig()
		cfg.BaseURL, cfg.APIKey, cfg.Model = f.url, getenv(EnvEmbedKey), f.model
		cfg.Dimensions, cfg.Timeout = f.dimensions, f.timeout
		e, err := openai.NewEmbedder(cfg, openai.WithLogger(log))
		if err != nil {
			return nil, fmt.Errorf("--embed-url, --embed-model: %w", err)
		}
		return e, nil
	case "ollama":
		cfg := ollama.DefaultConfig()
		cfg.BaseURL = f.url
		cfg = cfg.WithEnv(getenv)
		cfg.APIKey, cfg.Model = getenv(EnvEmbedKey), f.model
		cfg.Dimensions, cfg.Timeout = f.dimensions, f.timeout
		e, err := ollama.NewEmbedder(cfg, ollama.WithLogger(log))
		if err != nil {
			return nil, fmt.Errorf("--embed-url, --embed-model: %w", err)
		}
		return e, nil
	}
	return nil, fmt.Errorf("--embed-api: must be ollama or openai: %w", core.ErrInvalid)
}
