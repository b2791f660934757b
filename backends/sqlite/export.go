package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/exports"
)

// Progress says how far an export or import is.
type Progress = upkeep.Transfer

// Export writes everything the store holds to w, as of one moment: JSON, one line for each entry and view, between a
// header and a line with their numbers. Import reads it. progress, when not nil, is called now and then, and at the end.
// Appends go on meanwhile; the write-ahead log cannot shrink until Export is done. progress must not use the store.
func (s *Store) Export(ctx context.Context, w io.Writer, progress func(Progress)) error {
	out := exports.NewWriter(w, s.now(), progress)
	return s.read(ctx, "export", "", func(tx *sql.Tx) error {
		if err := out.Begin(); err != nil {
			return err
		}
		if err := s.everything(ctx, tx, out.Entry, out.View); err != nil {
			return err
		}
		return out.End()
	})
}

// Import stores what Export or Retain wrote, compressed with gzip or not, one or several of them one after the other.
// Entries that are there already count as duplicates, and a session that has a view keeps it. Entries that share a position, as older stores let them, go
// on doing so until they are mended. So an import that was
// interrupted is resumed by starting it again. progress, when not nil, is called after every batch.
//
// What is no export is core.ErrInvalid naming the line; so is one that was cut off, after all that it holds was stored.
func (s *Store) Import(ctx context.Context, r io.Reader, progress func(Progress)) (Progress, error) {
	in := exports.Reader{
		Append: func(ctx context.Context, batch []core.Entry) (core.AppendResult, error) {
			return s.append(ctx, batch, true)
		},
		View:     s.importView,
		Progress: progress,
	}
	if err := in.Read(ctx, r); err != nil {
		return in.Done, fmt.Errorf("sqlite: import: %w", err)
	}
	return in.Done, nil
}

// importView stores a view as it is, whatever its version, unless the session has one.
func (s *Store) importView(ctx context.Context, v *core.View) (kept bool, err error) {
	body, sum, err := s.encodeView(v, new(bytes.Buffer))
	if err != nil {
		return false, err
	}
	err = s.write(ctx, "import view", v.Session.String(), func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		scope, _, err := s.ensureScope(quiet, tx, v.Session)
		if err != nil {
			return err
		}
		res, err := tx.ExecContext(quiet, "INSERT INTO views (scope, version, body, sum) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			scope, int64(v.Version), body, sum)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		kept = n == 0
		return err
	})
	return kept, err
}
