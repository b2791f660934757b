package openbrain

import (
	"math"
	"sync"
	"time"
)

// bucket is a token bucket. A nil bucket has no limit.
type bucket struct {
	rate, burst float64

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

func newBucket(cfg Config) *bucket {
	if cfg.RatePerSecond <= 0 {
		return nil
	}
	return &bucket{rate: cfg.RatePerSecond, burst: float64(cfg.RateBurst), tokens: float64(cfg.RateBurst)}
}

// take takes a token, or returns after how many whole seconds there will be one.
func (b *bucket) take(now time.Time) (wait int, ok bool) {
	if b == nil {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() {
		b.tokens = min(b.burst, b.tokens+b.rate*max(0, now.Sub(b.last).Seconds()))
	}
	b.last = now
	if b.tokens >= 1 {
		b.tokens--
		return 0, true
	}
	return int(math.Ceil(min((1-b.tokens)/b.rate, 86_400))), false
}
