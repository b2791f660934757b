package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// Vacuum rewrites the file without its free space, and forgets all but the newest 100,000 changes and deletions. It needs twice as much
// room on the disk as the file has, and other processes cannot write meanwhile.
func (s *Store) Vacuum(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: vacuum: %w", err)
	}
	defer s.leave()
	err := s.prune(ctx, keepChanges)
	if err == nil {
		err = s.alone(ctx, func() error {
			if err := s.rewrite(ctx); err != nil {
				return err
			}
			_, err := s.checkpoint(ctx)
			return err
		})
	}
	return s.failed(ctx, "vacuum", "", err)
}

// Verify reads everything in the file: SQLite's own integrity check, then the checksum of every entry, view, change and vector. It returns ErrDamaged
// for the first thing that is not what was written.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: verify: %w", err)
	}
	defer s.leave()
	err := s.integrity(ctx, s.readers)
	if err == nil {
		err = s.snapshot(ctx, func(tx *sql.Tx) error {
			err := s.everything(ctx, tx, func(*core.Entry) error { return nil }, func(*core.View) error { return nil })
			if err == nil {
				err = s.coverage(ctx, tx)
			}
			if err == nil {
				err = s.verifyVectors(ctx, tx)
			}
			return err
		})
	}
	return s.failed(ctx, "verify", "", err)
}

// everything calls entry for every entry, session by session and in order, then view for every view.
func (s *Store) everything(ctx context.Context, tx *sql.Tx, entry func(*core.Entry) error, view func(*core.View) error) error {
	rows, err := tx.QueryContext(ctx, "SELECT "+rowColumns+`, s.agent, s.session FROM entries e LEFT JOIN scopes s ON s.id = e.scope
		ORDER BY e.scope, e.seq, e.n`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var r row
	var agent, session sql.NullString
	dest := r.columns(&agent, &session)
	for rows.Next() {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		if err := s.scanned(rows.Scan(dest...)); err != nil {
			return err
		}
		e, err := s.entry(core.SessionID{Agent: agent.String, Session: session.String}, &r)
		if err != nil {
			return err
		}
		if err := entry(&e); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return s.everyView(ctx, tx, "", view)
}

// everyView calls f for every view of an agent, or of all agents when agent is empty.
func (s *Store) everyView(ctx context.Context, tx *sql.Tx, agent string, f func(*core.View) error) error {
	rows, err := tx.QueryContext(ctx, `SELECT v.version, v.body, v.sum, s.agent, s.session FROM views v LEFT JOIN scopes s ON s.id = v.scope
		WHERE ?1 = '' OR s.agent = ?1 ORDER BY v.scope`, agent)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		var version, sum int64
		var body []byte
		var name, session sql.NullString
		if err := s.scanned(rows.Scan(&version, &body, &sum, &name, &session)); err != nil {
			return err
		}
		v, err := s.decodeView(core.SessionID{Agent: name.String, Session: session.String}, version, body, sum)
		if err != nil {
			return err
		}
		if err := f(&v); err != nil {
			return err
		}
	}
	return rows.Err()
}
