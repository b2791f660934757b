package keyed

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/exact"
)

var _ core.ViewStore = (*Store)(nil)

func viewKey(id core.SessionID) string {
	return "view/" + url.PathEscape(id.Agent) + "/" + url.PathEscape(id.Session)
}

// LoadView implements core.ViewStore.
func (s *Store) LoadView(ctx context.Context, id core.SessionID) (v core.View, err error) {
	err = s.do(ctx, "load view", func(p *pending) error {
		v = core.View{}
		found, err := p.get(viewKey(id), &v)
		if err == nil && !found {
			err = fmt.Errorf("session %q: %w", id, core.ErrNotFound)
		}
		return err
	})
	return v, err
}

// SwapView implements core.ViewStore.
func (s *Store) SwapView(ctx context.Context, v core.View) error {
	return s.do(ctx, "swap view", func(p *pending) error {
		var stored struct {
			Version uint64
		}
		if _, err := p.get(viewKey(v.Session), &stored); err != nil {
			return err
		}
		if stored.Version != v.Version-1 {
			return fmt.Errorf("session %q: version %d is stored, cannot put %d: %w", v.Session, stored.Version, v.Version, core.ErrConflict)
		}
		return p.put(viewKey(v.Session), v)
	})
}

// DeleteView implements core.ViewStore.
func (s *Store) DeleteView(ctx context.Context, id core.SessionID) error {
	return s.do(ctx, "delete view", func(p *pending) error {
		var stored struct{ Version uint64 }
		found, err := p.get(viewKey(id), &stored)
		if found && err == nil {
			p.set(viewKey(id), nil)
		}
		return err
	})
}

// ListViews implements core.ViewStore. It reads the views of the agent, or all.
func (s *Store) ListViews(ctx context.Context, q core.ViewQuery) (ids []core.SessionID, err error) {
	of := "view/"
	if q.Agent != "" {
		of += url.PathEscape(q.Agent) + "/"
	}
	err = s.do(ctx, "list views", func(p *pending) error {
		ids = nil
		for pair, err := range p.Range(of, after(of), false) {
			if err != nil {
				return err
			}
			var v struct {
				Session core.SessionID
			}
			if err := exact.Unpack(pair.Value, &v); err != nil {
				return err
			}
			if v.Session.Compare(q.After) > 0 {
				ids = append(ids, v.Session)
			}
		}
		return nil
	})
	slices.SortFunc(ids, core.SessionID.Compare) // keys are escaped, which is another order
	return ids[:min(len(ids), q.Limit)], err
}
