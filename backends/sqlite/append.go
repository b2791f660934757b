package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Append implements core.Store: one transaction, committed when it returns. The keys of deleted entries are free again.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	return s.append(ctx, entries, false)
}

// append is Append. ties lets in entries at positions that others have, as files have them that were written before positions existed once.
func (s *Store) append(ctx context.Context, entries []core.Entry, ties bool) (core.AppendResult, error) {
	rows := make([]row, len(entries))
	for i := range entries {
		if err := entries[i].Check("sqlite: append"); err != nil {
			return core.AppendResult{}, err
		}
		// Encoding is the larger part of the work, and needs no lock.
		rows[i] = s.makeRow(&entries[i])
	}
	var res core.AppendResult
	if err := s.enter(ctx); err != nil {
		return core.AppendResult{}, fmt.Errorf("sqlite: append: %w", err)
	}
	defer s.leave()
	b := batch{s: s, ties: ties}
	err := s.transactDirect(ctx, func(d *direct) error {
		quiet := context.WithoutCancel(ctx)
		b.d, res.IDs = d, make([]string, len(entries))
		for i := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			id, err := b.add(quiet, &entries[i], &rows[i])
			if err != nil {
				return fmt.Errorf("entry %q: %w", entries[i].ID, err)
			}
			res.IDs[i] = id
		}
		res.Duplicates = b.duplicates
		return nil
	}, func(conn *sql.Conn) error { return s.cover(context.WithoutCancel(ctx), conn, b.next) })
	if err != nil {
		return core.AppendResult{}, s.failed(ctx, "append", "", err)
	}
	s.markUpTo(ctx, b.next-1)
	return res, nil
}

// batch is the state of one transaction that appends.
type batch struct {
	s *Store
	d *direct
	// ties lets in entries at positions that others have.
	ties bool
	// next is the number of the next entry.
	next       int64
	scopes     map[core.SessionID]int64
	args       []driver.Value
	duplicates int
}

// scope returns the number of a session, and makes the session when it is new.
func (b *batch) scope(ctx context.Context, id core.SessionID) (int64, error) {
	if scope, ok := b.scopes[id]; ok {
		return scope, nil
	}
	var found [2]driver.Value
	err := b.d.one(ctx, b.d.scope, found[:], id.Agent, id.Session)
	if errors.Is(err, sql.ErrNoRows) {
		var res driver.Result
		if res, err = b.d.exec(ctx, b.d.addScope, id.Agent, id.Session); err != nil {
			return 0, err
		}
		if found[0], err = res.LastInsertId(); err == nil {
			err = b.d.one(ctx, b.d.next, found[1:])
		}
	}
	if err != nil {
		return 0, err
	}
	scope, ok := found[0].(int64)
	next, is := found[1].(int64)
	if !ok || !is {
		return 0, b.s.damaged("the numbers of a session are a %T and a %T", found[0], found[1])
	}
	b.next = next
	if b.scopes == nil {
		b.scopes = make(map[core.SessionID]int64, 1)
	}
	b.scopes[id] = scope
	return scope, nil
}

// add stores one entry unless its key is known, and returns the id under which it is stored.
func (b *batch) add(ctx context.Context, e *core.Entry, r *row) (string, error) {
	scope, err := b.scope(ctx, e.SessionID())
	if err != nil {
		return "", err
	}
	b.args = append(r.args(append(b.args[:0], b.next, scope)), b.ties)
	res, err := b.d.exec(ctx, b.d.insert, b.args...)
	if err != nil {
		return "", err
	}
	added, err := res.RowsAffected()
	if err != nil {
		return "", err
	}
	if added == 0 {
		b.duplicates++
		return b.known(ctx, scope, e)
	}
	b.next++
	return e.ID, nil
}

// known returns the id of the stored entry that has the key of e, or core.ErrConflict when the id of e belongs to an entry
// with another key, or its position to another entry.
func (b *batch) known(ctx context.Context, scope int64, e *core.Entry) (string, error) {
	var found [2]driver.Value
	err := b.d.one(ctx, b.d.byID, found[:], shortID(e.ID))
	switch {
	case err == nil && (found[0] != driver.Value(scope) || longKey(found[1]) != e.Key):
		return "", fmt.Errorf("the id belongs to an entry with another key: %w", core.ErrConflict)
	case err == nil:
		return e.ID, nil
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	err = b.d.one(ctx, b.d.byKey, found[:1], scope, shortKey(e.Key))
	var id storedID
	ok := id.Scan(found[0]) == nil && id != ""
	if errors.Is(err, sql.ErrNoRows) && !b.ties {
		return "", fmt.Errorf("another entry of the session has position %d: %w", e.Seq, core.ErrConflict)
	}
	if errors.Is(err, sql.ErrNoRows) || err == nil && !ok {
		return "", b.s.damaged("entry %q was refused as known, and is not there", e.ID)
	}
	return string(id), err
}

// ensureScope returns the number of a session, a new one if it has none, and the number of what happens next.
func (s *Store) ensureScope(ctx context.Context, tx *sql.Tx, id core.SessionID) (scope, next int64, err error) {
	err = tx.StmtContext(ctx, s.w.scope).QueryRowContext(ctx, id.Agent, id.Session).Scan(&scope, &next)
	if !errors.Is(err, sql.ErrNoRows) {
		return scope, next, err
	}
	res, err := tx.StmtContext(ctx, s.w.addScope).ExecContext(ctx, id.Agent, id.Session)
	if err != nil {
		return 0, 0, err
	}
	if scope, err = res.LastInsertId(); err != nil {
		return 0, 0, err
	}
	next, err = s.nextNumber(ctx, tx)
	return scope, next, err
}
