// Package endpoint is what clients of a service over HTTP share: how it is configured, how it fails, when it is asked again, and how all of that is said without
// the key or anything the service sent. Models use all of it through Client; a backend with rules of its own uses the pieces.
package endpoint

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Client is one service and its rules of retrying. It is safe for concurrent use.
type Client struct {
	// HTTP sends the requests. It follows no redirects.
	HTTP http.Client
	// Now is what dates of the service are compared with.
	Now func() time.Time

	name     string
	settings Settings
	sleep    func(ctx context.Context, d time.Duration) error
	log      *slog.Logger
}

// New returns a client for settings that were checked. name begins its errors.
func New[O ~func(*Client)](name string, settings Settings, opts []O) *Client {
	c := &Client{name: name, settings: settings, sleep: Sleep, Now: time.Now, log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(c)
	}
	// A redirect would carry texts to a host nobody configured.
	c.HTTP.CheckRedirect = NoRedirect
	return c
}

// NoRedirect hands the redirect itself to the caller.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// WithHTTPClient sends requests through a copy of client; nil changes nothing.
func WithHTTPClient(client *http.Client) func(*Client) {
	return func(c *Client) {
		if client != nil {
			c.HTTP = *client
		}
	}
}

// WithSleep replaces Sleep between attempts; nil changes nothing.
func WithSleep(sleep func(ctx context.Context, d time.Duration) error) func(*Client) {
	return func(c *Client) {
		if sleep != nil {
			c.sleep = sleep
		}
	}
}

// WithClock replaces time.Now; nil changes nothing.
func WithClock(now func() time.Time) func(*Client) {
	return func(c *Client) {
		if now != nil {
			c.Now = now
		}
	}
}

// WithLogger reports retries, at level debug, without contents; nil changes nothing.
func WithLogger(logger *slog.Logger) func(*Client) {
	return func(c *Client) {
		if logger != nil {
			c.log = logger
		}
	}
}

// Do makes attempts, each under the configured timeout, until one succeeds, fails for good, retries run out, or ctx ends.
func (c *Client) Do(ctx context.Context, op, model string, attempt func(context.Context) *Failure) error {
	failed := c.do(ctx, op, model, attempt)
	if failed == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", c.name, op, model, failed)
}

func (c *Client) do(ctx context.Context, op, model string, attempt func(context.Context) *Failure) error {
	for tried := 0; ; tried++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		failed := c.once(ctx, attempt)
		if failed == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !failed.Retry || tried == c.settings.MaxRetries {
			return fmt.Errorf("attempt %d: %w", tried+1, failed)
		}
		wait, ok := c.wait(ctx, tried, failed)
		if !ok {
			return fmt.Errorf("attempt %d: next one not before %v: %w", tried+1, wait.Round(time.Second), failed)
		}
		c.log.DebugContext(ctx, "model request failed, trying again", "service", c.name, "operation", op, "model", model,
			"attempt", tried+1, "status", failed.Status, "wait", wait)
		if err := c.sleep(ctx, wait); err != nil {
			return fmt.Errorf("after %s: %w", failed.Text, err)
		}
	}
}

func (c *Client) once(ctx context.Context, attempt func(context.Context) *Failure) *Failure {
	ctx, cancel := context.WithTimeout(ctx, c.settings.Timeout)
	defer cancel()
	failed := attempt(ctx)
	if failed != nil && ctx.Err() != nil {
		return Unavailable(fmt.Sprintf("no answer within %v", c.settings.Timeout))
	}
	return failed
}

// wait returns how long to wait before the next attempt. ok is false if that is longer than the configuration or the
// deadline of ctx allow: then the caller gets the remaining time back.
func (c *Client) wait(ctx context.Context, tried int, failed *Failure) (d time.Duration, ok bool) {
	d = max(Backoff(c.settings.RetryDelay, c.settings.MaxRetryDelay, tried), failed.After)
	if failed.After > c.settings.MaxRetryDelay {
		return d, false
	}
	deadline, has := ctx.Deadline()
	return d, !has || time.Until(deadline) > d
}

// Backoff returns a wait after so many tries before this one: anywhere above 0 and up to a bound that begins with first and doubles up to last, so that clients
// that failed together do not come back together.
func Backoff(first, last time.Duration, tried int) time.Duration {
	bound := min(first, last)
	for range tried {
		bound = min(2*bound, last)
	}
	return rand.N(bound) + 1
}

// Sleep waits for d or for ctx, whichever ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
