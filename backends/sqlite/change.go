package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. The entry keeps its place; unless Config.Insecure is set, what it said before leaves the
// file.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := validScope("update", scope); err != nil {
		return err
	}
	err := s.write(ctx, "update", id, func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		n, _, e, err := s.lookup(quiet, tx.StmtContext(quiet, s.w.rowByID), scope, id)
		if err != nil {
			return err
		}
		if change.Message != nil {
			e.Message, e.Tokens, e.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
		}
		if change.Meta != nil {
			e.Meta = change.Meta
		}
		e.Type, e.Key = cmp.Or(change.Type, e.Type), cmp.Or(change.Key, e.Key)
		r := s.makeRow(&e)
		_, err = tx.StmtContext(quiet, s.w.update).ExecContext(quiet, r.kind, r.tokens, shortKey(r.key), r.fingerprint, nullable(r.meta), r.body, r.sum, n)
		return err
	})
	if err == nil {
		s.forget(ctx)
	}
	return err
}

// Delete implements core.Store. Unless Config.Insecure is set, the entries' bytes leave the file. A damaged entry can be
// deleted like any other.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := validScope("delete", scope); err != nil {
		return 0, err
	}
	n := 0
	err := s.write(ctx, "delete", "", func(tx *sql.Tx) error {
		n = 0
		quiet := context.WithoutCancel(ctx)
		find, remove := tx.StmtContext(quiet, s.w.rowByID), tx.StmtContext(quiet, s.w.remove)
		touched := map[int64]bool{}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return err
			}
			row, number, _, err := s.lookup(quiet, find, scope, id)
			if errors.Is(err, core.ErrNotFound) {
				continue
			}
			if err != nil && (!errors.Is(err, ErrDamaged) || row == 0) {
				return err
			}
			if _, err := remove.ExecContext(quiet, row); err != nil {
				return err
			}
			n++
			touched[number] = true
		}
		return s.dropEmpty(quiet, tx, touched)
	})
	if err != nil {
		return 0, err
	}
	if n > 0 {
		s.forget(ctx)
	}
	return n, nil
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
