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

// Ledger is a core.Store in this process: a table of rows and a unique index over (agent, session, key). With a database every
// method is one transaction, and Scan reads an index over (agent, session, seq, n) where this sorts. NewLedger makes one.
type Ledger struct {
	mu     sync.RWMutex
	closed bool
	n      int64
	rows   map[string]row // by entry id
	keys   map[key]string // entry ids
}

// row is an entry and its number, which orders entries of equal Seq and never changes, so that a cursor can name it.
type row struct {
	core.Entry
	n int64
}

type key struct{ agent, session, key string }

var _ core.Store = (*Ledger)(nil)

// NewLedger returns an empty store.
func NewLedger() *Ledger { return &Ledger{rows: map[string]row{}, keys: map[key]string{}} }

// Append implements core.Store. Nobody sees a batch before the lock is released, so a batch that fails can be taken back.
func (l *Ledger) Append(ctx context.Context, entries []core.Entry) (res core.AppendResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(ctx, "append"); err != nil {
		return res, err
	}
	var added []string
	for _, e := range entries {
		k := key{e.Agent, e.Session, e.Key}
		if id, known := l.keys[k]; known {
			res.IDs, res.Duplicates = append(res.IDs, id), res.Duplicates+1
			continue
		}
		if _, taken := l.rows[e.ID]; taken {
			l.remove(added)
			return core.AppendResult{}, fmt.Errorf("ledger: append %q: known with another key: %w", e.ID, core.ErrConflict)
		}
		l.n++
		l.rows[e.ID], l.keys[k] = row{owned(e), l.n}, e.ID
		res.IDs, added = append(res.IDs, e.ID), append(added, e.ID)
	}
	return res, nil
}

// Get implements core.Store.
func (l *Ledger) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := l.usable(ctx, "get"); err != nil {
		return nil, err
	}
	out := make([]core.Entry, len(ids))
	for i, id := range ids {
		r, ok := l.rows[id]
		if !ok || !scope.Contains(r.SessionID()) {
			return nil, fmt.Errorf("ledger: get %q: %w", id, core.ErrNotFound)
		}
		out[i] = owned(r.Entry)
	}
	return out, nil
}

// Scan implements core.Store. The cursor names the last row by its place, not by a count: rows may come and go between two pages.
func (l *Ledger) Scan(ctx context.Context, q core.ScanQuery) (page core.Page, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := l.usable(ctx, "scan"); err != nil {
		return page, err
	}
	last := row{Entry: core.Entry{Agent: q.Scope.Agent}}
	if q.Cursor != "" {
		if _, err := fmt.Sscanf(string(q.Cursor), "%d %d %q", &last.Seq, &last.n, &last.Session); err != nil {
			return page, fmt.Errorf("ledger: scan: the cursor is not one of this store: %w", core.ErrInvalid)
		}
	}
	var found []row
	for _, r := range l.rows {
		inside := q.Scope.Session == "" || r.Seq >= q.FromSeq && (q.ToSeq <= 0 || r.Seq < q.ToSeq)
		if inside && q.Scope.Contains(r.SessionID()) && (q.Cursor == "" || compare(last, r, q.Reverse) < 0) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b row) int { return compare(a, b, q.Reverse) })
	for _, r := range found[:min(q.Limit, len(found))] {
		page.Entries = append(page.Entries, owned(r.Entry))
		last = r
	}
	if len(found) > q.Limit {
		page.Next = core.Cursor(fmt.Sprintf("%d %d %q", last.Seq, last.n, last.Session))
	}
	return page, nil
}
