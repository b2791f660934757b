package soak

import (
	"math"
	"sync/atomic"
	"time"
)

// steps is how many buckets a histogram has for each doubling of time: a quantile is right to about 5 %.
const steps = 14

// buckets reach from a microsecond to more than an hour.
const buckets = 33 * steps

// histogram counts durations, always in the same memory. It is safe for concurrent use.
type histogram [buckets]atomic.Int64

func (h *histogram) add(d time.Duration) {
	us := max(float64(d)/float64(time.Microsecond), 1)
	h[min(int(math.Log2(us)*steps), buckets-1)].Add(1)
}

// counts is a histogram at rest.
type counts [buckets]int64

func (h *histogram) take() *counts {
	var c counts
	for i := range h {
		c[i] = h[i].Swap(0)
	}
	return &c
}

func (c *counts) add(o *counts) {
	for i := range c {
		c[i] += o[i]
	}
}

// quantile returns the duration that the share q of all stays below, in milliseconds; 0 when there are none.
func (c *counts) quantile(q float64) float64 {
	total := int64(0)
	for _, n := range c {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := max(int64(math.Ceil(q*float64(total))), 1)
	for i, n := range c {
		if rank -= n; rank <= 0 {
			return math.Exp2((float64(i)+0.5)/steps) / 1000
		}
	}
	return 0
}
