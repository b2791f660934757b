package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

var _ upkeep.Statter = (*Store)(nil)

// Stats implements upkeep.Statter. It reads an index from end to end, about a second for ten million entries. Oldest and Newest are looked for
// among the first and last entries of sessions. RawBytes is not known.
func (s *Store) Stats(ctx context.Context) (upkeep.Stats, error) {
	var st upkeep.Stats
	err := s.read(ctx, "stats", "", func(tx *sql.Tx) error {
		var oldest, newest sql.NullInt64
		err := tx.QueryRowContext(ctx, `SELECT min(min(first, last)), max(max(first, last)) FROM (SELECT
			(SELECT time FROM entries WHERE scope = s.id ORDER BY seq LIMIT 1) first,
			(SELECT time FROM entries WHERE scope = s.id ORDER BY seq DESC LIMIT 1) last FROM scopes s)`).Scan(&oldest, &newest)
		if err != nil {
			return err
		}
		if oldest.Valid {
			st.Oldest, st.Newest = time.UnixMilli(oldest.Int64).UTC(), time.UnixMilli(newest.Int64).UTC()
		}
		if err := figures(ctx, tx, map[string]any{
			"SELECT count(DISTINCT agent) FROM scopes": &st.Agents,
			"SELECT count(*) FROM scopes":              &st.Sessions,
			"SELECT count(*) FROM entries":             &st.Entries,
		}); err != nil {
			return err
		}
		st.Bytes, err = s.size()
		return err
	})
	if err != nil {
		return upkeep.Stats{}, err
	}
	return st, nil
}

// Details is what only this kind of store has.
type Details = upkeep.Details

// Details counts what Stats does not speak of. It reads all entries.
func (s *Store) Details(ctx context.Context) (Details, error) {
	d := Details{Path: s.file}
	err := s.read(ctx, "details", "", func(tx *sql.Tx) error {
		var free, page int64
		err := figures(ctx, tx, map[string]any{
			"SELECT count(*) FROM entries WHERE type = '" + string(core.TypeErased) + "'": &d.Erased,
			"SELECT count(*) FROM views":                        &d.Views,
			"SELECT count(*) FROM vectors":                      &d.Vectors,
			"SELECT count(*) FROM changes WHERE id IS NOT NULL": &d.Changes,
			"SELECT max(version) FROM schema_version":           &d.Schema,
			"SELECT freelist_count FROM pragma_freelist_count":  &free,
			"SELECT page_size FROM pragma_page_size":            &page,
		})
		d.Free = free * page
		return err
	})
	if err != nil {
		return Details{}, err
	}
	return d, nil
}

// figures runs queries of one number each.
func figures(ctx context.Context, tx *sql.Tx, queries map[string]any) error {
	for query, to := range queries {
		if err := tx.QueryRowContext(ctx, query).Scan(to); err != nil {
			return err
		}
	}
	return nil
}

// size returns how many bytes the file and its write-ahead log have.
func (s *Store) size() (int64, error) {
	size := int64(0)
	for _, name := range []string{s.file, s.file + "-wal"} {
		info, err := os.Stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if err == nil {
			size += info.Size()
		}
	}
	return size, nil
}
