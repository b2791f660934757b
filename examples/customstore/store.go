package main

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Ledger is a core.Store over a table in this process. It is what remains to be written where a database has transactions and indexes.
type Ledger struct{ t *table }

var _ core.Store = Ledger{}

// NewLedger returns an empty store.
func NewLedger() Ledger { return Ledger{newTable()} }

// Append implements core.Store. The transaction takes the whole batch back when one entry fails.
func (l Ledger) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	err = l.t.tx(ctx, "append", func() error {
		for _, e := range entries {
			if known := l.t.keys[keyOf(e)]; known != nil {
				res.IDs, res.Duplicates = append(res.IDs, known.ID), res.Duplicates+1
				continue
			}
			if l.t.ids[e.ID] != nil {
				return fmt.Errorf("entry %q is known with another key: %w", e.ID, core.ErrConflict)
			}
			if err := l.t.add(e); err != nil {
				return err
			}
			res.IDs = append(res.IDs, e.ID)
		}
		return nil
	})
	if err != nil {
		return core.AppendResult{}, err
	}
	return res, nil
}

// Get implements core.Store.
func (l Ledger) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	out := make([]core.Entry, len(ids))
	err := l.t.tx(ctx, "get", func() error {
		for i, id := range ids {
			r, err := l.t.find(scope, id)
			if err != nil {
				return err
			}
			out[i] = own(r.Entry)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Scan implements core.Store.
func (l Ledger) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	err = l.t.tx(ctx, "scan", func() (err error) {
		page, err = l.t.page(q)
		return err
	})
	return page, err
}

// Update implements core.Store.
func (l Ledger) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	return l.t.tx(ctx, "update", func() error {
		r, err := l.t.find(scope, id)
		if err == nil {
			err = l.t.set(r, c)
		}
		return err
	})
}

// Delete implements core.Store.
func (l Ledger) Delete(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
	err = l.t.tx(ctx, "delete", func() error {
		for _, id := range ids {
			if r, err := l.t.find(scope, id); err == nil {
				l.t.remove(r)
				n++
			}
		}
		return nil
	})
	return n, err
}

// Close implements core.Store.
func (l Ledger) Close() error { return l.t.close() }
