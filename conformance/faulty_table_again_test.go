package conformance_test

import (
	"context"
	"maps"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// againStores go wrong when the same is done once more, or after something else.
func againStores() []broken {
	var out []broken
	update := func(name string, from int, skip func(c *core.Change)) {
		out = append(out, brokenStoreOf("store: once more", name, func(s *brokenStore) {
			var mu sync.Mutex
			times := map[string]int{}
			s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
				mu.Lock()
				times[scope.Agent+id]++
				n := times[scope.Agent+id]
				mu.Unlock()
				if n >= from {
					skip(&c)
				}
				return s.Store.Update(ctx, scope, id, c)
			}
		}))
	}
	update("the second update does nothing", 2, func(c *core.Change) { *c = core.Change{} })
	update("the third update does nothing", 3, func(c *core.Change) { *c = core.Change{} })
	update("the second update leaves the message", 2, func(c *core.Change) { c.Message = nil })
	update("the second update leaves the fingerprint", 2, func(c *core.Change) { c.Fingerprint = "first" })
	out = append(out, brokenStoreOf("store: once more", "keys of what was deleted alone stay taken", func(s *brokenStore) {
		var mu sync.Mutex
		gone := map[string]bool{}
		s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
			taken := map[string]bool{}
			if got, err := s.Store.Get(context.WithoutCancel(ctx), scope, ids); err == nil {
				for _, e := range got {
					taken[e.SessionID().String()+e.Key] = true
				}
			}
			n, err := s.Store.Delete(ctx, scope, ids)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				maps.Copy(gone, taken)
			}
			return n, err
		}
		s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range entries {
				if gone[e.SessionID().String()+e.Key] {
					return core.AppendResult{}, core.ErrConflict
				}
			}
			return s.Store.Append(ctx, entries)
		}
	}))
	return out
}
