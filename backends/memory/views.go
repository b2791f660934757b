package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// LoadView implements core.ViewStore.
func (s *Store) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if err := id.Validate(); err != nil {
		return core.View{}, fmt.Errorf("memory: load view: %w", err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "load view"); err != nil {
		return core.View{}, err
	}
	v, ok := s.views[id]
	if !ok {
		return core.View{}, fmt.Errorf("memory: load view %q: %w", id, core.ErrNotFound)
	}
	return cloneView(&v), nil
}

// SwapView implements core.ViewStore.
func (s *Store) SwapView(ctx context.Context, v core.View) error {
	if err := v.Session.Validate(); err != nil {
		return fmt.Errorf("memory: swap view: %w", err)
	}
	if v.Version == 0 {
		return fmt.Errorf("memory: swap view %q: version is 0: the first version of a view is 1: %w", v.Session, core.ErrInvalid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx, "swap view"); err != nil {
		return err
	}
	if have := s.views[v.Session].Version; have != v.Version-1 {
		return fmt.Errorf("memory: swap view %q: version %d is stored, %d does not follow it: %w", v.Session, have, v.Version, core.ErrConflict)
	}
	s.views[v.Session] = cloneView(&v)
	return nil
}

// DeleteView implements core.ViewStore.
func (s *Store) DeleteView(ctx context.Context, id core.SessionID) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("memory: delete view: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx, "delete view"); err != nil {
		return err
	}
	delete(s.views, id)
	return nil
}

// ListViews implements core.ViewStore.
func (s *Store) ListViews(ctx context.Context, q core.ViewQuery) ([]core.SessionID, error) {
	if err := core.CheckLimit("memory: list views", q.Limit); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "list views"); err != nil {
		return nil, err
	}
	var out []core.SessionID
	for id := range s.views {
		if (q.Agent == "" || id.Agent == q.Agent) && id.Compare(q.After) > 0 {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, core.SessionID.Compare)
	return out[:min(len(out), q.Limit)], nil
}

// Tail implements core.Tailer: several engines of one program may serve the same session.
func (s *Store) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx, "tail"); err != nil {
		return core.Tail{}, err
	}
	t := core.Tail{View: s.views[id].Version}
	if a := s.agents[id.Agent]; a != nil && a.byName[id.Session] != nil {
		t.Next = a.byName[id.Session].run.next()
	}
	return t, nil
}
