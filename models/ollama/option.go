package ollama

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/contextengine/contextengine/internal/endpoint"
)

// Option sets what no configuration file can hold.
type Option func(*endpoint.Client)

// WithHTTPClient sends requests through client instead of one with the default transport. A copy is used, changed to
// follow no redirects. A nil client changes nothing.
func WithHTTPClient(client *http.Client) Option { return endpoint.WithHTTPClient(client) }

// WithSleep replaces the wait between attempts. It returns nil after d, or ctx's error as soon as ctx ends.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return endpoint.WithSleep(sleep)
}

// WithLogger reports retries, at level debug, without contents. The default discards.
func WithLogger(logger *slog.Logger) Option { return endpoint.WithLogger(logger) }
