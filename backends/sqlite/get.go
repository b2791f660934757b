package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Get implements core.Store. An id that is asked for twice is returned twice.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := validScope("get", scope); err != nil {
		return nil, err
	}
	var out []core.Entry
	err := s.read(ctx, "get", "", func(tx *sql.Tx) error {
		// The statements are short: ctx is looked at between them, which saves its being watched in each.
		quiet := context.WithoutCancel(ctx)
		one, many := tx.StmtContext(quiet, s.r.get), tx.StmtContext(quiet, s.r.getMany)
		found := make([]core.Entry, 0, len(ids))
		for from := 0; from < len(ids); from = len(found) {
			if err := ctx.Err(); err != nil {
				return err
			}
			some := ids[from:min(from+manyIDs, len(ids))]
			if len(some) < manyIDs/4 {
				_, _, e, err := s.lookup(quiet, one, scope, some[0])
				if err != nil {
					return fmt.Errorf("entry %q: %w", some[0], err)
				}
				found = append(found, e)
				continue
			}
			byID, err := s.lookupMany(quiet, many, scope, some)
			if err != nil {
				return err
			}
			for _, id := range some {
				e, ok := byID[id]
				if !ok {
					return fmt.Errorf("entry %q: %w", id, core.ErrNotFound)
				}
				found = append(found, e)
			}
		}
		out = found
		return nil
	})
	return out, err
}

// lookupMany returns those of at most manyIDs entries that the scope holds. Asked for one by one, fifty take 1.5 to 2 times as long. stmt is selectByIDs.
func (s *Store) lookupMany(ctx context.Context, stmt *sql.Stmt, scope core.Scope, ids []string) (map[string]core.Entry, error) {
	args := make([]any, manyIDs)
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]core.Entry, len(ids))
	var r row
	var number int64
	var owner core.SessionID
	for rows.Next() {
		if err := s.scanned(r.scan(rows, &number, &owner.Agent, &owner.Session)); err != nil {
			return nil, err
		}
		if !scope.Contains(owner) {
			continue
		}
		e, err := s.entry(owner, &r)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", r.id, err)
		}
		found[e.ID] = e
	}
	return found, rows.Err()
}

// lookup returns the entry with this id, its row number and that of its scope, or core.ErrNotFound when the scope does
// not hold it. stmt is selectByID.
func (s *Store) lookup(ctx context.Context, stmt *sql.Stmt, scope core.Scope, id string) (n, number int64, e core.Entry, err error) {
	var r row
	var owner core.SessionID
	if err := s.scanned(r.scan(stmt.QueryRowContext(ctx, id), &number, &owner.Agent, &owner.Session)); err != nil {
		return 0, 0, core.Entry{}, err
	}
	if !scope.Contains(owner) {
		return 0, 0, core.Entry{}, core.ErrNotFound
	}
	e, err = s.entry(owner, &r)
	return r.n, number, e, err
}

// scanned tells apart why reading a row failed: there was none, SQLite said why, or a value is not of the column's type.
func (s *Store) scanned(err error) error {
	switch {
	case err == nil, code(err) != 0, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrTxDone):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return core.ErrNotFound
	}
	return s.damaged("a row cannot be read: %v", err)
}

// column returns the first column of a query.
func column(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
