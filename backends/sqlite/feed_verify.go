package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/contextengine/contextengine/core"
)

// coverage finds entries that should be in a run and are in none: who follows the feed would never hear of them.
func (s *Store) coverage(ctx context.Context, tx *sql.Tx) error {
	is, err := s.readIdentity(tx.QueryRowContext(ctx, selectIdentity))
	if err != nil {
		return err
	}
	agents, err := column(ctx, tx, "SELECT DISTINCT agent FROM scopes ORDER BY agent")
	if err != nil {
		return err
	}
	for _, agent := range agents {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		f := follower{s: s, q: core.ChangeQuery{Agent: agent, Limit: core.MaxPage}, owner: s.owner(agent)}
		// The checksums of all runs and changes.
		for after := int64(0); ; {
			runs, err := f.runs(ctx, pooled{tx}, after)
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				break
			}
			after = runs[len(runs)-1].last
		}
		for after := int64(math.MinInt64); ; {
			changed, err := f.changed(ctx, pooled{tx}, after)
			if err != nil {
				return err
			}
			if len(changed) == 0 {
				break
			}
			after = changed[len(changed)-1].n
		}
		var lost storedID
		err := s.scanned(tx.QueryRowContext(ctx, `SELECT e.id FROM scopes s CROSS JOIN entries e ON e.scope = s.id WHERE s.agent = ?1 AND e.n <= ?3 AND
			coalesce((SELECT r.last FROM runs r WHERE r.owner = ?2 AND r.first <= e.n ORDER BY r.first DESC LIMIT 1), 0) < e.n LIMIT 1`,
			agent, f.owner, is.covered).Scan(&lost))
		if err == nil {
			return s.damaged("entry %q is in no run", lost)
		}
		if !errors.Is(err, core.ErrNotFound) {
			return err
		}
	}
	return nil
}
