package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// shelf is a store that engines share, with what listens to it. Each engine announces its own appends; a shelf passes them
// on to the indexes, and to the parts of the other engines.
type shelf struct {
	store     core.Store
	searchers map[string]core.Searcher // only the maker touches it

	mu        sync.RWMutex
	observers []subscription
}

// subscription is an observer, and the relay of the engine that tells it everything anyway (nil for indexes).
type subscription struct {
	observer core.Observer
	teller   *relay
}

// relay is the observer that an engine gets for all of a shelf.
type relay struct {
	shelf *shelf
}

var (
	_ core.Observer   = (*relay)(nil)
	_ upkeep.Scrubber = (*relay)(nil)
)

func (r *relay) each(tell func(core.Observer) error) error {
	r.shelf.mu.RLock()
	defer r.shelf.mu.RUnlock()
	var errs []error
	for _, s := range r.shelf.observers {
		if s.teller != r {
			if err := tell(s.observer); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func (r *relay) Appended(ctx context.Context, entries []core.Entry) error {
	return r.each(func(o core.Observer) error { return o.Appended(ctx, entries) })
}

func (r *relay) Updated(ctx context.Context, entry core.Entry) error {
	return r.each(func(o core.Observer) error { return o.Updated(ctx, entry) })
}

func (r *relay) Deleted(ctx context.Context, scope core.Scope, ids []string) error {
	return r.each(func(o core.Observer) error { return o.Deleted(ctx, scope, ids) })
}

// Scrub asks everything that listens to remove what is left of erased entries.
func (r *relay) Scrub(ctx context.Context) error {
	return r.each(func(o core.Observer) error {
		if s, ok := o.(upkeep.Scrubber); ok {
			return s.Scrub(ctx)
		}
		return nil
	})
}

// searchOnly is what retrievers get of a shared searcher: it is fed and attached already, and a retriever that passes
// announcements on to its searchers must not feed it twice.
type searchOnly struct {
	searcher core.Searcher
}

func (s searchOnly) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	return s.searcher.Search(ctx, q)
}

// ByMeaning implements core.ByMeaning for a searcher that does.
func (s searchOnly) ByMeaning() bool {
	m, ok := s.searcher.(core.ByMeaning)
	return ok && m.ByMeaning()
}

// ReadsStore implements core.StoreReader for a searcher that does.
func (s searchOnly) ReadsStore() bool { return core.ReadsStore(s.searcher) }

// searcherKey identifies a searcher on a shelf: vectors of two embedders do not belong into one index.
func searcherKey(c Choice, env Env) string { return key(c) + key(env.Config.Embedder) }

// searcher returns a registered searcher over the store of env, opened, attached and fed.
func (m *maker) searcher(ctx context.Context, env Env, name string) (core.Searcher, error) {
	s := env.shelf
	d := decoder{r: m.r, engine: env.Config.Engine.Type}
	c, err := d.complete(Choice{Type: name, Options: env.Config.Searchers[name]}, KindSearcher, path{"searchers", name})
	if err != nil {
		return nil, fmt.Errorf("registry: searcher: %w", err)
	}
	k := searcherKey(c, env)
	if found := s.searchers[k]; found != nil {
		return searchOnly{found}, nil
	}
	env.maker, env.shelf = nil, nil
	opened, err := open[core.Searcher](ctx, m, KindSearcher, c, env)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := opened.(core.Attacher); ok {
		if err := a.Attach(s.store); err != nil {
			return nil, errors.Join(fmt.Errorf("registry: searcher %q: attach: %w", name, err), closeAll([]any{opened}))
		}
	}
	if o, ok := opened.(core.Observer); ok {
		s.observers = append(s.observers, subscription{observer: o})
	}
	s.searchers[k] = opened
	m.opened = append(m.opened, opened)
	return searchOnly{opened}, nil
}
