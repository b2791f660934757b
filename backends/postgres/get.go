package postgres

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/core"
)

// Get implements core.Store. An id that is asked for twice is returned twice.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := scope.Check("postgres: get"); err != nil {
		return nil, err
	}
	var out []core.Entry
	err := s.call(ctx, "get", "", repeatable, func(ctx context.Context) error {
		out = nil
		found, err := s.find(ctx, s.main, s.sql.get, scope, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			e, ok := found[id]
			if !ok {
				return fmt.Errorf("entry %q: %w", id, core.ErrNotFound)
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return own(out), nil
}

// rows is a pool or a transaction.
type rows interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// find returns those of the entries that the scope holds, by id. text is statements.get or lockEntry.
func (s *Store) find(ctx context.Context, from rows, text string, scope core.Scope, ids []string) (map[string]core.Entry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := from.Query(ctx, text, []byte(scope.Agent), names(ids), session(scope))
	if err != nil {
		return nil, err
	}
	found := make(map[string]core.Entry, len(ids))
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := r.scan(rows); err != nil {
			return nil, err
		}
		e, err := r.entry(scope.Agent)
		if err != nil {
			return nil, err
		}
		found[e.ID] = e
	}
	return found, rows.Err()
}

func names(ids []string) [][]byte {
	out := make([][]byte, len(ids))
	for i, id := range ids {
		out[i] = []byte(id)
	}
	return out
}

// own gives entries that are in the list twice a metadata map each.
func own(entries []core.Entry) []core.Entry {
	seen := make(map[string]bool, len(entries))
	for i := range entries {
		if seen[entries[i].ID] {
			meta := make(map[string]string, len(entries[i].Meta))
			maps.Copy(meta, entries[i].Meta)
			entries[i].Meta = meta
		}
		seen[entries[i].ID] = true
	}
	return entries
}
