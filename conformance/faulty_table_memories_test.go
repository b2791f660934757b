package conformance_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

// tableMemories are stores that keep what they once answered, and do not forget it with every call that makes it wrong.
func tableMemories() []broken {
	var out []broken
	add := func(name string, change func(*brokenStore)) {
		out = append(out, brokenStoreOf("store: memories of its own", name, change, conformance.WithExactly(25, 20260301), conformance.WithClaims("sequence.same")))
	}
	add("get keeps an entry for every scope", func(s *brokenStore) { cachedGets(s, func(call string) bool { return call != "get" }, false) })
	for _, but := range []string{"append", "update", "delete"} {
		add("get keeps what it read over each "+but, func(s *brokenStore) { cachedGets(s, func(call string) bool { return call != but }, true) })
	}
	add("the list of views is read anew after a swap alone", func(s *brokenStore) {
		var mu sync.Mutex
		kept := map[core.ViewQuery][]core.SessionID{}
		s.swap = func(ctx context.Context, v core.View) error {
			mu.Lock()
			defer mu.Unlock()
			clear(kept)
			return s.Store.SwapView(ctx, v)
		}
		s.listViews = func(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
			mu.Lock()
			defer mu.Unlock()
			if ids, ok := kept[q]; ok {
				return ids, ctx.Err()
			}
			ids, err := s.Store.ListViews(ctx, q)
			if err == nil {
				kept[q] = ids
			}
			return ids, err
		}
	})
	add("a view that was deleted is kept for who reads it", func(s *brokenStore) {
		var mu sync.Mutex
		kept := map[core.SessionID]core.View{}
		s.swap = func(ctx context.Context, v core.View) error {
			mu.Lock()
			defer mu.Unlock()
			delete(kept, v.Session)
			return s.Store.SwapView(ctx, v)
		}
		s.load = func(ctx context.Context, id core.SessionID) (core.View, error) {
			mu.Lock()
			defer mu.Unlock()
			if v, ok := kept[id]; ok {
				return v.Clone(), ctx.Err()
			}
			v, err := s.Store.LoadView(ctx, id)
			if err == nil {
				kept[id] = v.Clone()
			}
			return v, err
		}
	})
	add("an id that was deleted is passed over for ever", func(s *brokenStore) {
		var mu sync.Mutex
		gone := map[string]bool{}
		s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			n, err := s.Store.Delete(ctx, scope, ids)
			for _, id := range ids {
				gone[id] = gone[id] || n > 0
			}
			return n, err
		}
		s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if gone[id] {
					return nil, core.ErrNotFound
				}
			}
			return s.Store.Get(ctx, scope, ids)
		}
	})
	plain := func(name, id string, change func(*brokenStore)) {
		out = append(out, brokenStoreOf("store: "+id, name, change, conformance.WithClaims(id)))
	}
	plain("the cause of a cancelled context is returned", "cancel.store", func(s *brokenStore) {
		s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return s.Store.Get(ctx, scope, ids)
		}
	})
	plain("a batch is stored in parts of five thousand", "odd.batch", func(s *brokenStore) {
		s.append = func(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
			for part := range slices.Chunk(entries, 5000) {
				r, err := s.Store.Append(ctx, part)
				if err != nil {
					return core.AppendResult{}, err
				}
				res.IDs, res.Duplicates = append(res.IDs, r.IDs...), res.Duplicates+r.Duplicates
			}
			return res, ctx.Err()
		}
	})
	return out
}

// cachedGets has a store keep what Get finds, and what it does not, by id and, when asked, by scope; clears reports the calls that make it forget.
func cachedGets(s *brokenStore, clears func(call string) bool, scoped bool) {
	type key struct {
		scope core.Scope
		id    string
	}
	var mu sync.Mutex
	kept := map[key]*core.Entry{}
	forget := func(call string) {
		mu.Lock()
		defer mu.Unlock()
		if clears(call) {
			clear(kept)
		}
	}
	s.append = func(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
		defer forget("append")
		return s.Store.Append(ctx, entries)
	}
	s.update = func(ctx context.Context, scope core.Scope, id string, c core.Change) error {
		defer forget("update")
		return s.Store.Update(ctx, scope, id, c)
	}
	s.deleteFunc = func(ctx context.Context, scope core.Scope, ids []string) (int, error) {
		defer forget("delete")
		return s.Store.Delete(ctx, scope, ids)
	}
	s.get = func(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
		mu.Lock()
		defer mu.Unlock()
		var out []core.Entry
		fresh := map[key]*core.Entry{}
		for _, id := range ids {
			k := key{scope, id}
			if !scoped {
				k.scope.Session = ""
			}
			e, ok := kept[k]
			if !ok {
				found, err := s.Store.Get(ctx, scope, []string{id})
				if err != nil && !errors.Is(err, core.ErrNotFound) {
					return nil, err
				}
				if err == nil {
					e = &found[0]
				}
				if e != nil || scoped {
					fresh[k] = e
				}
			}
			if e == nil {
				maps.Copy(kept, fresh)
				return nil, core.ErrNotFound
			}
			out = append(out, e.Clone())
		}
		maps.Copy(kept, fresh)
		return out, ctx.Err()
	}
}
