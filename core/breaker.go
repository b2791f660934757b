package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How long a part is left alone: after breakAfter failures in a row, or the first time that it was waited for in vain, for firstPause, and twice as long each
// time that it fails again.
const (
	breakAfter = 2
	firstPause = 30 * time.Second
	maxPause   = 10 * time.Minute
)

// Breaker stops asking a part that does not answer, so that a caller does not wait for it turn after turn. Ask Try before, and tell Note how it went. When a
// pause is over one caller tries again, and the others wait for what comes of it. The zero value is ready; it is safe for concurrent use.
type Breaker struct {
	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time
	last     error
}

// Try returns nil when the part may be asked now. Otherwise the error wraps ErrUnavailable and says until when the part is left alone, and why.
func (b *Breaker) Try(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pause == 0 {
		return nil
	}
	if !now.Before(b.until) {
		b.until = now.Add(b.pause)
		return nil
	}
	return fmt.Errorf("not asked before %s, after %d failures: %s: %w", b.until.UTC().Format(time.TimeOnly), b.failures, b.last.Error(), ErrUnavailable)
}

// Note says how a try went. What is the caller's doing, a cancelled call or a question that cannot be answered (ErrInvalid), counts for nothing.
func (b *Breaker) Note(now time.Time, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrInvalid) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.failures, b.pause, b.last = 0, 0, nil
		return
	}
	b.failures++
	b.last = err
	switch {
	case b.pause > 0:
		b.pause = min(2*b.pause, maxPause)
	case b.failures >= breakAfter || errors.Is(err, context.DeadlineExceeded):
		b.pause = firstPause
	default:
		return
	}
	b.until = now.Add(b.pause)
}
