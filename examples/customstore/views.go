package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

var _ core.ViewStore = Ledger{}

// LoadView implements core.ViewStore, an optional companion of a store. Views know of forks, resets and compactions, which entries
// alone do not: without them an engine that is restarted begins its windows anew.
func (l Ledger) LoadView(ctx context.Context, id core.SessionID) (v core.View, err error) {
	err = l.t.tx(ctx, "load view", func() error {
		text, ok := l.t.views[id]
		if !ok {
			return fmt.Errorf("session %q: %w", id, core.ErrNotFound)
		}
		return json.Unmarshal(text, &v)
	})
	return v, err
}

// SwapView implements core.ViewStore: it is compare-and-swap on the version.
func (l Ledger) SwapView(ctx context.Context, v core.View) error {
	return l.t.tx(ctx, "swap view", func() error {
		var stored struct{ Version uint64 }
		if text, ok := l.t.views[v.Session]; ok {
			if err := json.Unmarshal(text, &stored); err != nil {
				return err
			}
		}
		if stored.Version != v.Version-1 {
			return fmt.Errorf("session %q: version %d is stored, cannot put %d: %w", v.Session, stored.Version, v.Version, core.ErrConflict)
		}
		text, err := json.Marshal(v) // what nobody can write to
		if err == nil {
			l.t.views[v.Session] = text
		}
		return err
	})
}

// DeleteView implements core.ViewStore.
func (l Ledger) DeleteView(ctx context.Context, id core.SessionID) error {
	return l.t.tx(ctx, "delete view", func() error {
		delete(l.t.views, id)
		return nil
	})
}

// ListViews implements core.ViewStore.
func (l Ledger) ListViews(ctx context.Context, q core.ViewQuery) (ids []core.SessionID, err error) {
	err = l.t.tx(ctx, "list views", func() error {
		for id := range l.t.views {
			if (q.Agent == "" || id.Agent == q.Agent) && id.Compare(q.After) > 0 {
				ids = append(ids, id)
			}
		}
		return nil
	})
	slices.SortFunc(ids, core.SessionID.Compare)
	return ids[:min(len(ids), q.Limit)], err
}
