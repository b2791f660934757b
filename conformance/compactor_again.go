package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// onceOnly is a compactor of which every patch is compared with what the same call published, whichever check asks.
type onceOnly struct {
	core.Compactor
	mu sync.Mutex
	// text says what was proposed again, if anything was.
	text string
}

// Requires says what the compactor asks of its host.
func (o *onceOnly) Requires() core.Requirements {
	if q, ok := o.Compactor.(core.Requirer); ok {
		return q.Requires()
	}
	return nil
}

// Compact implements core.Compactor.
func (o *onceOnly) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	var mu sync.Mutex
	taken := map[string]bool{}
	if publish := c.Publish; publish != nil {
		c.Publish = func(ctx context.Context, p core.Patch) error {
			o.compare(&mu, taken, p)
			err := publish(ctx, p)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				for _, rep := range p.Replace {
					for _, id := range slices.Concat(rep.Entries, rep.Summaries) {
						taken[id] = true
					}
				}
			}
			return err
		}
	}
	p, err := o.Compactor.Compact(ctx, c)
	if err == nil {
		o.compare(&mu, taken, p)
	}
	return p, err
}

func (o *onceOnly) compare(mu *sync.Mutex, taken map[string]bool, p core.Patch) {
	mu.Lock()
	defer mu.Unlock()
	for _, rep := range p.Replace {
		for _, id := range slices.Concat(rep.Entries, rep.Summaries) {
			if taken[id] {
				o.mu.Lock()
				o.text = fmt.Sprintf("%q was published, and is replaced once more", id)
				o.mu.Unlock()
			}
		}
	}
}

// found returns what was proposed again, if anything was.
func (o *onceOnly) found() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text
}
