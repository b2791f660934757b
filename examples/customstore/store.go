package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/contextengine/contextengine/core"
)

// Ledger is a core.Store in this process: one sorted table. In a database the loops are indexes. The zero value is ready.
type Ledger struct {
	mu     sync.Mutex
	closed bool
	n      int64
	rows   []row
}

// row numbers an entry: n orders equal positions, and a cursor can name a row that is gone by the next page.
type row struct {
	*core.Entry
	n int64
}

func (a row) compare(b row) int {
	return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.n, b.n))
}

// own copies what a caller may write to: messages are values. A row's entry is never written to either.
func own(e core.Entry) *core.Entry { e.Meta = maps.Clone(e.Meta); return &e }

// do runs f as a transaction: alone, on a copy of the table that takes its place unless f fails.
func (l *Ledger) do(ctx context.Context, op string, f func(rows []row) ([]row, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows, err := slices.Clone(l.rows), ctx.Err()
	if l.closed {
		err = core.ErrClosed
	}
	if err == nil {
		rows, err = f(rows)
	}
	if err != nil {
		return fmt.Errorf("ledger: %s: %w", op, err)
	}
	l.rows = rows
	return nil
}

// find returns the place of an entry in the table.
func find(rows []row, scope core.Scope, id string) (int, error) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.ID == id && scope.Contains(r.SessionID()) })
	if i < 0 {
		return 0, fmt.Errorf("entry %q: %w", id, core.ErrNotFound)
	}
	return i, nil
}

// Append implements core.Store.
func (l *Ledger) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	return res, l.do(ctx, "append", func(rows []row) ([]row, error) {
		for _, e := range entries {
			if i := slices.IndexFunc(rows, func(r row) bool { return r.Key == e.Key && r.SessionID() == e.SessionID() }); i >= 0 {
				res.IDs, res.Duplicates = append(res.IDs, rows[i].ID), res.Duplicates+1
				continue
			}
			if _, err := find(rows, core.Scope{}, e.ID); err == nil {
				return nil, core.ErrConflict
			}
		}
		return rows, nil
	})
}
