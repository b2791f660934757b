package openai

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	library "github.com/sashabaranov/go-openai"
)

// endpoint is what Completer and Embedder share: one configured client and its rules of retrying.
type endpoint struct {
	cfg   Config
	http  http.Client
	sleep func(ctx context.Context, d time.Duration) error
	now   func() time.Time
	log   *slog.Logger
}

func newEndpoint(cfg Config, opts []Option) (*endpoint, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &endpoint{cfg: cfg, sleep: sleep, now: time.Now, log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(e)
	}
	// A redirect would carry the prompt to a host nobody configured.
	e.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return e, nil
}

// do runs call until it succeeds, fails for good, runs out of retries, or ctx ends. limit bounds an answer in bytes.
func (e *endpoint) do(ctx context.Context, op, model string, limit int64, call func(context.Context, *library.Client) error) error {
	for tried := 0; ; tried++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("openai: %s %q: %w", op, model, err)
		}
		failed := e.attempt(ctx, limit, call)
		if failed == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("openai: %s %q: %w", op, model, err)
		}
		if !failed.retry || tried == e.cfg.MaxRetries {
			return fmt.Errorf("openai: %s %q: attempt %d: %w", op, model, tried+1, failed)
		}
		wait, ok := e.wait(ctx, tried, failed)
		if !ok {
			return fmt.Errorf("openai: %s %q: attempt %d: next one not before %v: %w", op, model, tried+1, wait.Round(time.Second), failed)
		}
		e.log.DebugContext(ctx, "openai: retry", "operation", op, "model", model, "attempt", tried+1, "status", failed.status, "wait", wait)
		if err := e.sleep(ctx, wait); err != nil {
			return fmt.Errorf("openai: %s %q: after %s: %w", op, model, failed.text, err)
		}
	}
}

// attempt makes one call under the configured timeout.
func (e *endpoint) attempt(ctx context.Context, limit int64, call func(context.Context, *library.Client) error) *failure {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	x := &exchange{client: &e.http, limit: limit, now: e.now}
	cfg := library.DefaultConfig(e.cfg.APIKey)
	cfg.BaseURL, cfg.HTTPClient = e.cfg.BaseURL, x
	err := call(ctx, library.NewClientWithConfig(cfg))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return unavailable(fmt.Sprintf("no answer within %v", e.cfg.Timeout))
	}
	return x.failure(err)
}

// wait returns how long to wait before the next attempt. ok is false if that is longer than the configuration or the
// deadline of ctx allow: then the caller gets the remaining time back.
func (e *endpoint) wait(ctx context.Context, tried int, failed *failure) (d time.Duration, ok bool) {
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
