package engine_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// crowd counts how many are somewhere at the same time.
type crowd struct{ now, most atomic.Int32 }

func (c *crowd) stay() {
	n := c.now.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	time.Sleep(time.Second)
	c.now.Add(-1)
}

type crowdedStore struct {
	*memory.Store
	crowd
}

func (s *crowdedStore) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	s.stay()
	return s.Store.Append(ctx, entries)
}

type crowdedCompactor struct {
	counting
	crowd
}

func (k *crowdedCompactor) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	k.stay()
	return k.counting.Compact(ctx, c)
}

// TestOneCallAtATime: calls of one session store one after the other, and a session is compacted by one call at a time; those of other sessions do not wait.
func TestOneCallAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, compactor := &crowdedStore{Store: memory.New()}, &crowdedCompactor{}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = store, compactor })
		together := func(ids ...core.SessionID) (stored, compacted int32) {
			store.most.Store(0)
			compactor.most.Store(0)
			var wg sync.WaitGroup
			for _, id := range ids {
				wg.Go(func() { f.say(id, false, user("one"), assistant("two"), user("three"), assistant("four")) })
			}
			wg.Wait()
			stored = store.most.Load()
			for _, id := range ids {
				wg.Go(func() {
					if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: id, Budget: 100, Force: true}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return stored, compactor.most.Load()
		}
		if stored, compacted := together(f.id, f.id, f.id); stored != 1 || compacted != 1 {
			t.Errorf("one session: %d appends and %d compactions at a time, want one each", stored, compacted)
		}
		a, b := core.SessionID{Agent: "main", Session: "a"}, core.SessionID{Agent: "main", Session: "b"}
		if stored, compacted := together(a, b); stored != 2 || compacted != 2 {
			t.Errorf("two sessions: %d appends and %d compactions at a time, want two each", stored, compacted)
		}
		if err := f.engine.Dispose(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
