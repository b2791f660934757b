package ollama

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Option sets what no configuration file can hold.
type Option func(*Embedder)

// WithHTTPClient sends requests through client instead of one with the default transport. A copy is used, changed to
// follow no redirects. A nil client changes nothing.
func WithHTTPClient(client *http.Client) Option {
	return func(e *Embedder) {
		if client != nil {
			e.http = *client
		}
	}
}

// WithSleep replaces the wait between attempts. It returns nil after d, or ctx's error as soon as ctx ends.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(e *Embedder) {
		if sleep != nil {
			e.sleep = sleep
		}
	}
}

// WithLogger reports retries, at level debug, without contents. The default discards.
func WithLogger(logger *slog.Logger) Option {
	return func(e *Embedder) {
		if logger != nil {
			e.log = logger
		}
	}
}

// sleep is the default of WithSleep.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
