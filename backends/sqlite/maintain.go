package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/contextengine/contextengine/core"
)

// Stats is what a store holds.
type Stats struct {
	// Path is the file.
	Path string `json:"path"`
	// Bytes is the size of the file and of its write-ahead log, Free the part of the file that Vacuum would give back.
	Bytes int64 `json:"bytes"`
	Free  int64 `json:"free"`
	// Agents, Sessions, Entries and Views count what is stored.
	Agents   int64 `json:"agents"`
	Sessions int64 `json:"sessions"`
	Entries  int64 `json:"entries"`
	Views    int64 `json:"views"`
	// Schema is the version of the schema.
	Schema int `json:"schema"`
}

// Stats counts what the store holds. It reads an index from end to end, about a second for ten million entries.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	st := Stats{Path: s.file}
	err := s.read(ctx, "stats", "", func(tx *sql.Tx) error {
		var free, page int64
		for query, to := range map[string]any{
			"SELECT count(DISTINCT agent) FROM scopes":         &st.Agents,
			"SELECT count(*) FROM scopes":                      &st.Sessions,
			"SELECT count(*) FROM entries":                     &st.Entries,
			"SELECT count(*) FROM views":                       &st.Views,
			"SELECT max(version) FROM schema_version":          &st.Schema,
			"SELECT freelist_count FROM pragma_freelist_count": &free,
			"SELECT page_size FROM pragma_page_size":           &page,
		} {
			if err := tx.QueryRowContext(ctx, query).Scan(to); err != nil {
				return err
			}
		}
		st.Free = free * page
		for _, name := range []string{s.file, s.file + "-wal"} {
			info, err := os.Stat(name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err == nil {
				st.Bytes += info.Size()
			}
		}
		return nil
	})
	if err != nil {
		return Stats{}, err
	}
	return st, nil
}

// Vacuum rewrites the file without its free space. It needs as much room on the disk as the file has again, and other
// processes cannot write meanwhile.
func (s *Store) Vacuum(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: vacuum: %w", err)
	}
	defer s.leave()
	return s.failed(ctx, "vacuum", "", s.alone(ctx, func() error {
		err := s.patiently(ctx, func() error {
			_, err := s.writer.ExecContext(ctx, "VACUUM")
			return err
		})
		if err != nil {
			return err
		}
		return s.checkpoint(ctx)
	}))
}

// Verify reads everything in the file: SQLite's own integrity check, then the checksum of every entry and view. It returns ErrDamaged
// for the first thing that is not what was written.
func (s *Store) Verify(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: verify: %w", err)
	}
	defer s.leave()
	err := s.integrity(ctx, s.readers)
	if err == nil {
		err = s.snapshot(ctx, func(tx *sql.Tx) error {
			return s.everything(ctx, tx, func(*core.Entry) error { return nil }, func(*core.View) error { return nil })
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
	for rows.Next() {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		var r row
		var agent, session sql.NullString
		if err := s.scanned(r.scan(rows, &agent, &session)); err != nil {
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
