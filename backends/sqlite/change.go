package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. The entry keeps its place; its vectors go when it says something else now. Unless
// Config.Insecure is set, what it said before leaves the file.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := scope.Check("sqlite: update"); err != nil {
		return err
	}
	err := s.write(ctx, "update", id, func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		next, err := s.nextNumber(quiet, tx)
		if err != nil {
			return err
		}
		return s.change(quiet, tx, scope, id, change, next)
	})
	if err == nil {
		s.forget(ctx)
	}
	return err
}

// change changes an entry, as what happens at number next.
func (s *Store) change(ctx context.Context, tx *sql.Tx, scope core.Scope, id string, change core.Change, next int64) error {
	n, number, e, err := s.lookup(tx.StmtContext(ctx, s.w.rowByID).QueryRowContext(ctx, shortID(id)), scope)
	if err != nil {
		return err
	}
	if change.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
	}
	if change.Meta != nil {
		e.Meta = change.Meta
	}
	if change.Key != "" && change.Key != e.Key {
		var other storedID
		err := s.scanned(tx.StmtContext(ctx, s.w.byKey).QueryRowContext(ctx, number, shortKey(change.Key)).Scan(&other))
		if err == nil {
			return fmt.Errorf("another entry of the session has the key: %w", core.ErrConflict)
		}
		if !errors.Is(err, core.ErrNotFound) {
			return err
		}
	}
	e.Type, e.Key = cmp.Or(change.Type, e.Type), cmp.Or(change.Key, e.Key)
	r, owner := s.makeRow(&e), s.owner(e.Agent)
	if change.Message != nil || change.Type != "" {
		if _, err := tx.StmtContext(ctx, s.w.dropVectors).ExecContext(ctx, owner, n); err != nil {
			return err
		}
	}
	_, err = tx.StmtContext(ctx, s.w.update).
		ExecContext(ctx, r.kind, r.tokens, r.key, r.fingerprint, nullable(r.meta), r.body, r.sum, n)
	if err != nil {
		return err
	}
	return s.recordChange(ctx, tx, owner, next, id, n)
}

// Delete implements core.Store. Vectors of the entries go with them. Unless Config.Insecure is set, the entries' bytes leave the file. A
// damaged entry can be deleted like any other.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := scope.Check("sqlite: delete"); err != nil {
		return 0, err
	}
	n := 0
	err := s.write(ctx, "delete", "", func(tx *sql.Tx) (err error) {
		n, err = s.remove(ctx, tx, scope, ids)
		return err
	})
	if err != nil {
		return 0, err
	}
	if n > 0 {
		s.forget(ctx)
	}
	return n, nil
}

// remove deletes entries and returns how many were there.
func (s *Store) remove(ctx context.Context, tx *sql.Tx, scope core.Scope, ids []string) (int, error) {
	n := 0
	quiet := context.WithoutCancel(ctx)
	next, err := s.nextNumber(quiet, tx)
	if err != nil {
		return 0, err
	}
	find, remove := tx.StmtContext(quiet, s.w.rowByID), tx.StmtContext(quiet, s.w.remove)
	vectors, owner := tx.StmtContext(quiet, s.w.dropVectors), s.owner(scope.Agent)
	touched := map[int64]bool{}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		row, number, _, err := s.lookup(find.QueryRowContext(quiet, shortID(id)), scope)
		if errors.Is(err, core.ErrNotFound) {
			continue
		}
		if err != nil && (!errors.Is(err, ErrDamaged) || row == 0) {
			return 0, err
		}
		if _, err := vectors.ExecContext(quiet, owner, row); err != nil {
			return 0, err
		}
		if _, err := remove.ExecContext(quiet, row); err != nil {
			return 0, err
		}
		if err := s.recordChange(quiet, tx, owner, next, id, row); err != nil {
			return 0, err
		}
		next++
		n++
		touched[number] = true
	}
	return n, s.dropEmpty(quiet, tx, touched)
}

// dropEmpty forgets the sessions that have neither entries nor a view any more, names and all.
func (s *Store) dropEmpty(ctx context.Context, tx *sql.Tx, scopes map[int64]bool) error {
	drop := tx.StmtContext(ctx, s.w.dropScope)
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		if _, err := drop.ExecContext(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}
