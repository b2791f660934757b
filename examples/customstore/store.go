package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Ledger is a core.Store in this process. Every method is one transaction, as it would be with a database.
type Ledger struct {
	mu     sync.Mutex
	closed bool
	table  table
}

var _ core.Store = (*Ledger)(nil)

// NewLedger returns an empty store.
func NewLedger() *Ledger { return &Ledger{table: newTable()} }

// do runs f alone, unless the store is closed or ctx has ended. It wraps errors, so that errors.Is finds the cause.
func (l *Ledger) do(ctx context.Context, op string, f func(t *table) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := ctx.Err()
	if l.closed {
		err = core.ErrClosed
	}
	if err == nil {
		err = f(&l.table)
	}
	if err != nil {
		return fmt.Errorf("ledger: %s: %w", op, err)
	}
	return nil
}

// Append implements core.Store. A batch that fails is taken back before anybody sees it.
func (l *Ledger) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	err = l.do(ctx, "append", func(t *table) error {
		var added []*row
		for _, e := range entries {
			if known := t.keys[keyOf(e)]; known != nil {
				res.IDs, res.Duplicates = append(res.IDs, known.ID), res.Duplicates+1
				continue
			}
			if t.ids[e.ID] != nil {
				for _, r := range added {
					t.remove(r)
				}
				res = core.AppendResult{}
				return fmt.Errorf("entry %q is known with another key: %w", e.ID, core.ErrConflict)
			}
			added = append(added, t.add(e))
			res.IDs = append(res.IDs, e.ID)
		}
		return nil
	})
	return res, err
}

// Get implements core.Store.
func (l *Ledger) Get(ctx context.Context, scope core.Scope, ids []string) (out []core.Entry, err error) {
	err = l.do(ctx, "get", func(t *table) error {
		for _, id := range ids {
			r, err := t.find(scope, id)
			if err != nil {
				out = nil
				return err
			}
			out = append(out, own(r.Entry))
		}
		return nil
	})
	return out, err
}

// Scan implements core.Store. A cursor names the place of the last row, not a count: rows may come and go between two pages.
func (l *Ledger) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	err = l.do(ctx, "scan", func(t *table) error {
		return t.page(q, &page)
	})
	return page, err
}

// Update implements core.Store.
func (l *Ledger) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	return l.do(ctx, "update", func(t *table) error {
		r, err := t.find(scope, id)
		if err != nil {
			return err
		}
		if c.Message != nil {
			r.Message, r.Tokens, r.Fingerprint = *c.Message, c.Tokens, c.Fingerprint
		}
		if c.Meta != nil {
			r.Meta = own(core.Entry{Meta: c.Meta}).Meta
		}
		return nil
	})
}

// Delete implements core.Store.
func (l *Ledger) Delete(ctx context.Context, scope core.Scope, ids []string) (n int, err error) {
	err = l.do(ctx, "delete", func(t *table) error {
		for _, id := range ids {
			if r, err := t.find(scope, id); err == nil {
				t.remove(r)
				n++
			}
		}
		return nil
	})
	return n, err
}

// Close implements core.Store.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.table = true, table{}
	return nil
}
