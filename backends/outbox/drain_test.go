package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
)

// TestDrainWaitsForWhatWasThere: a writer that never pauses does not keep Drain from coming back, and all that was there before is delivered then.
func TestDrainWaitsForWhatWasThere(t *testing.T) {
	t.Parallel()
	far := newRemote()
	var s *outbox.Store
	var over atomic.Bool
	var last atomic.Int64
	last.Store(4)
	far.fail = func(op string, ids []string, after bool) error {
		if op != "append" || !after || over.Load() {
			return nil
		}
		// Before anything counts as delivered there is more.
		_, err := s.Append(context.Background(), entries(ann, int(last.Load())+1, int(last.Add(1))+1))
		return err
	}
	s = open(t, volatile(func(c *outbox.Config) { c.BatchEntries = 1 }), memory.New(), far)
	mustAppend(t, s, entries(ann, 0, 5)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	left, err := s.Drain(ctx)
	over.Store(true)
	if left != 0 || err != nil {
		t.Errorf("Drain = %d, %v, want nothing left of what was there", left, err)
	}
	if got := all(t, far.Store, ann.Scope()); len(got) < 5 {
		t.Errorf("%d entries were delivered, want the 5 that were there", len(got))
	}
}
