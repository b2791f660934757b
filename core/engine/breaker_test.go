package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
)

// TestBreaker: a part that fails twice, or is waited for in vain once, is left alone, longer each time.
func TestBreaker(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	late := fmt.Errorf("part: %w", context.DeadlineExceeded)
	down := errors.New("part: status 500")
	for _, c := range []struct {
		name string
		errs []error
		// paused is for how long nobody asks then.
		paused time.Duration
	}{
		{"sound", []error{nil}, 0},
		{"one failure", []error{down}, 0},
		{"two failures", []error{down, down}, 30 * time.Second},
		{"not in a row", []error{down, nil, down}, 0},
		{"late", []error{late}, 30 * time.Second},
		{"late again", []error{late, late}, time.Minute},
		{"for ever", []error{late, late, late, late, late, late, late, late}, 10 * time.Minute},
		{"back", []error{late, nil}, 0},
		{"cancelled by the caller", []error{down, context.Canceled}, 0},
		{"a bad question", []error{down, core.ErrInvalid}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b core.Breaker
			for _, err := range c.errs {
				b.Note(start, err)
			}
			if c.paused > 0 {
				err := b.Try(start.Add(c.paused - time.Second))
				if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "part: ") {
					t.Errorf("Try() within the pause = %v, want core.ErrUnavailable with the last failure", err)
				}
			}
			if err := b.Try(start.Add(c.paused)); err != nil {
				t.Errorf("Try() behind the pause = %v, want none", err)
			}
			if err := b.Try(start.Add(c.paused)); (err != nil) != (c.paused > 0) {
				t.Errorf("the second Try() behind the pause = %v, want the first to go alone", err)
			}
		})
	}
}
