package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. The entry keeps its place. What it said before stays in dead rows until the server vacuums the table, and in
// its log.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := scope.Check("postgres: update"); err != nil {
		return err
	}
	return s.call(ctx, "update", id, repeatable, func(ctx context.Context) error {
		return s.transact(ctx, func(tx pgx.Tx) error {
			// Holding the agent's row, as all writers do, keeps the order of the locks, and of the changes, the same for all.
			if _, err := tx.Exec(ctx, s.sql.bump, []byte(scope.Agent), int64(1)); err != nil {
				return err
			}
			found, err := s.find(ctx, tx, s.sql.lockEntry, scope, []string{id})
			if err != nil {
				return err
			}
			e, ok := found[id]
			if !ok {
				return core.ErrNotFound
			}
			return s.rewrite(ctx, tx, &e, change)
		})
	})
}

// rewrite stores what a change makes of an entry, and drops what was derived from what it was.
func (s *Store) rewrite(ctx context.Context, tx pgx.Tx, e *core.Entry, change core.Change) error {
	if change.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
	}
	if change.Meta != nil {
		e.Meta = maps.Clone(change.Meta)
	}
	e.Type, e.Key = cmp.Or(change.Type, e.Type), cmp.Or(change.Key, e.Key)
	if err := complete(e); err != nil {
		return fmt.Errorf("the change cannot be stored: %w", core.ErrInvalid)
	}
	r := makeRow(e)
	if _, err := tx.Exec(ctx, s.sql.update, []byte(e.Agent), r.id, r.kind, r.tokens, r.key, r.meta, r.body, r.raw, r.text, mark(e.Agent)); err != nil {
		return err
	}
	if s.vectors == nil || change.Message == nil && change.Type == "" {
		return nil
	}
	_, err := tx.Exec(ctx, s.sql.dropVectors, []byte(e.Agent), r.id)
	return err
}

// Delete implements core.Store. What the entries said stays in dead rows until the server vacuums the table, and in its log.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := scope.Check("postgres: delete"); err != nil {
		return 0, err
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(ids)))
	n := 0
	err := s.call(ctx, "delete", "", certain, func(ctx context.Context) error {
		if len(distinct) == 0 {
			return nil
		}
		b := &pgx.Batch{}
		b.Queue(s.sql.bump, []byte(scope.Agent), int64(len(distinct)))
		b.Queue(s.sql.remove, []byte(scope.Agent), names(distinct), session(scope))
		affected, err := s.exec(ctx, b)
		n = int(affected)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
