package endpoint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/contextengine/contextengine/internal/endpoint"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, " 0.5 ": 500 * time.Millisecond, "0": 0, "1e300": 1e6 * time.Second,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": -5 * time.Second,
	} {
		if got, ok := endpoint.RetryAfter(text, now); got != want || !ok {
			t.Errorf("RetryAfter(%q) = %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soon", "-1", "null"} {
		if got, ok := endpoint.RetryAfter(text, now); ok {
			t.Errorf("RetryAfter(%q) = %v, want none", text, got)
		}
	}
}

func TestSleep(t *testing.T) {
	if err := endpoint.Sleep(t.Context(), 1); err != nil {
		t.Errorf("Sleep: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := endpoint.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep = %v, want Canceled", err)
	}
}
