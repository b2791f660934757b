package openai

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Option sets what no configuration file can hold.
type Option func(*endpoint)

// WithHTTPClient sends requests through client instead of one with the default transport. A copy is used, changed to
// follow no redirects. A nil client changes nothing.
func WithHTTPClient(client *http.Client) Option {
	return func(e *endpoint) {
		if client != nil {
			e.http = *client
		}
	}
}

// WithSleep replaces the wait between attempts. It returns nil after d, or ctx's error as soon as ctx ends.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) Option {
	return func(e *endpoint) {
		if sleep != nil {
			e.sleep = sleep
		}
	}
}

// WithClock replaces time.Now for endpoints that name a date before which they do not want to be asked again.
func WithClock(now func() time.Time) Option {
	return func(e *endpoint) {
		if now != nil {
			e.now = now
		}
	}
}

// WithLogger reports retries, at level debug, without contents. The default discards.
func WithLogger(logger *slog.Logger) Option {
	return func(e *endpoint) {
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
