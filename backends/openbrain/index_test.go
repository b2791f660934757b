package openbrain

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Indexes of agents that nobody writes to make room; that of the agent in use stays.
func TestIndexesAreBounded(t *testing.T) {
	var a agents
	fill := func(name string, n int) *agent {
		g, err := a.acquire(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		g.set(census{}, false)
		for i := range n {
			g.add(record{entry: core.Entry{ID: fmt.Sprint(i), Session: "s", Key: fmt.Sprint(i)}, thought: fmt.Sprint(i)})
		}
		return g
	}
	idle := fill("idle", maxIndexed/2)
	a.release(idle)
	busy := fill("busy", 1)
	used := fill("used", maxIndexed/2+1)
	a.release(used)
	if idle.loaded || !used.loaded || !busy.loaded {
		t.Errorf("loaded: idle %t, used %t, busy %t; want only the idle one dropped", idle.loaded, used.loaded, busy.loaded)
	}
	a.release(busy)
	if want := maxIndexed/2 + 2; a.indexed != want {
		t.Errorf("indexed = %d, want %d", a.indexed, want)
	}
}

func TestThoughtIDsAreBounded(t *testing.T) {
	var ids thoughtIDs
	for i := range maxThoughtIDs + 10 {
		ids.put(fmt.Sprint(i), "x")
	}
	if len(ids.m) != maxThoughtIDs {
		t.Errorf("%d ids remembered, want %d", len(ids.m), maxThoughtIDs)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, " 0.5 ": 500 * time.Millisecond, "0": 0, "1e300": 1e6 * time.Second,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": -5 * time.Second,
	} {
		if got, ok := retryAfter(text, now); got != want || !ok {
			t.Errorf("retryAfter(%q) = %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soon", "-1", "null"} {
		if got, ok := retryAfter(text, now); ok {
			t.Errorf("retryAfter(%q) = %v, want none", text, got)
		}
	}
}

func TestSleepFor(t *testing.T) {
	if err := sleepFor(t.Context(), 1); err != nil {
		t.Errorf("sleepFor: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sleepFor(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("sleepFor = %v, want Canceled", err)
	}
}
