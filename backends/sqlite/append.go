package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Append implements core.Store: one transaction, committed when it returns. The keys of deleted entries are free again.
func (s *Store) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	rows := make([]row, len(entries))
	for i := range entries {
		if err := complete(&entries[i]); err != nil {
			return core.AppendResult{}, err
		}
		// Encoding is the larger part of the work, and needs no lock.
		rows[i] = s.makeRow(&entries[i])
	}
	var res core.AppendResult
	err := s.write(ctx, "append", "", func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		b := s.batch(quiet, tx)
		res = core.AppendResult{IDs: make([]string, len(entries))}
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
	})
	if err != nil {
		return core.AppendResult{}, err
	}
	return res, nil
}

// batch is the state of one transaction that appends.
type batch struct {
	s          *Store
	tx         *sql.Tx
	insert     *sql.Stmt
	scopes     map[core.SessionID]int64
	duplicates int
}

func (s *Store) batch(ctx context.Context, tx *sql.Tx) *batch {
	return &batch{s: s, tx: tx, insert: tx.StmtContext(ctx, s.w.insert), scopes: make(map[core.SessionID]int64, 1)}
}

// add stores one entry unless its key is known, and returns the id under which it is stored.
func (b *batch) add(ctx context.Context, e *core.Entry, r *row) (string, error) {
	scope, ok := b.scopes[e.SessionID()]
	if !ok {
		var err error
		if scope, err = b.s.ensureScope(ctx, b.tx, e.SessionID()); err != nil {
			return "", err
		}
		b.scopes[e.SessionID()] = scope
	}
	res, err := b.insert.ExecContext(ctx, append([]any{scope}, r.args()...)...)
	if err != nil {
		return "", err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return e.ID, err
	}
	b.duplicates++
	return b.known(ctx, scope, e)
}

// known returns the id of the stored entry that has the key of e, or core.ErrConflict when the id of e belongs to an entry
// with another key.
func (b *batch) known(ctx context.Context, scope int64, e *core.Entry) (string, error) {
	var otherScope int64
	var otherKey any
	err := b.tx.StmtContext(ctx, b.s.w.byID).QueryRowContext(ctx, e.ID).Scan(&otherScope, &otherKey)
	switch {
	case err == nil && (otherScope != scope || longKey(otherKey) != e.Key):
		return "", fmt.Errorf("the id belongs to an entry with another key: %w", core.ErrConflict)
	case err == nil:
		return e.ID, nil
	case !errors.Is(err, sql.ErrNoRows):
		return "", err
	}
	var id string
	err = b.tx.StmtContext(ctx, b.s.w.byKey).QueryRowContext(ctx, scope, shortKey(e.Key)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", b.s.damaged("entry %q was refused as known, and is not there", e.ID)
	}
	return id, err
}

// ensureScope returns the number of a session, a new one if it has none.
func (s *Store) ensureScope(ctx context.Context, tx *sql.Tx, id core.SessionID) (int64, error) {
	var scope int64
	err := tx.StmtContext(ctx, s.w.scope).QueryRowContext(ctx, id.Agent, id.Session).Scan(&scope)
	if !errors.Is(err, sql.ErrNoRows) {
		return scope, err
	}
	res, err := tx.StmtContext(ctx, s.w.addScope).ExecContext(ctx, id.Agent, id.Session)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

func complete(e *core.Entry) error {
	field := ""
	switch {
	case e.ID == "":
		field = "id"
	case e.Key == "":
		field = "key"
	case e.Agent == "":
		field = "agent"
	case e.Session == "":
		field = "session"
	default:
		return nil
	}
	return fmt.Errorf("sqlite: append %q: %s is empty: entries are complete before they are stored: %w", e.ID, field, core.ErrInvalid)
}
