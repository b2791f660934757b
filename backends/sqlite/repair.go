package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/internal/files"
)

var _ upkeep.Repairer = (*Store)(nil)

// Repair implements upkeep.Repairer: where the indexes of the file do not agree with its tables, they are made anew from these. The file as it was is copied
// first, with its write-ahead log, to the path that is returned. Other processes wait meanwhile. It returns ErrDamaged where the tables are damaged as well,
// and leaves the file as it was.
func (s *Store) Repair(ctx context.Context) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", fmt.Errorf("sqlite: repair: %w", err)
	}
	defer s.leave()
	if err := s.integrity(ctx, s.readers); err == nil || !errors.Is(err, ErrDamaged) {
		return "", s.failed(ctx, "repair", "", err)
	}
	path := s.file + ".before-repair-" + time.Now().UTC().Format("20060102T150405.000000")
	err := s.alone(ctx, func() error {
		if err := s.releaseDirect(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		tx, err := s.writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// After Commit it does nothing.
		defer func() { _ = tx.Rollback() }()
		if err := s.whole(ctx, tx); err != nil {
			return err
		}
		for _, suffix := range []string{"", "-wal"} {
			if err := s.copyFile(s.file+suffix, path+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "REINDEX"); err != nil {
			return err
		}
		if err := s.compare(ctx, tx, "PRAGMA integrity_check(5)"); err != nil {
			return err
		}
		if err := s.everything(ctx, tx, func(*core.Entry) error { return nil }, func(*core.View) error { return nil }); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		for _, suffix := range []string{"", "-wal"} {
			_ = os.Remove(path + suffix) // the file is as it was
		}
		return "", s.failed(ctx, "repair", "", err)
	}
	return path, nil
}

// whole fails where an index names more entries than the table has: what is missing there cannot be made again.
func (s *Store) whole(ctx context.Context, tx *sql.Tx) error {
	count := func(how string) (n int64, err error) {
		err = tx.QueryRowContext(ctx, "SELECT count(*) FROM entries "+how).Scan(&n)
		return n, err
	}
	const special = " WHERE type <> 'message'"
	for _, of := range []struct {
		which   string
		indexes []string
	}{
		{"", []string{"entries_order", "sqlite_autoindex_entries_1", "sqlite_autoindex_entries_2"}},
		{special, []string{"entries_types", "entries_special"}},
	} {
		table, err := count("NOT INDEXED" + of.which)
		if err != nil {
			return err
		}
		for _, index := range of.indexes {
			// An index that cannot be read says nothing.
			if n, err := count("INDEXED BY " + index + of.which); err == nil && n > table {
				return s.damaged("the table has %d entries, and its index %s names %d", table, index, n)
			}
		}
	}
	return nil
}

// copyFile copies a file to a path that is not there yet, and onto the medium. Under that name it is there in full or not at all.
func (s *Store) copyFile(from, to string) error {
	out, err := files.Temp(filepath.Dir(to), ".repair")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // it has its name by then if all went well
	err = s.handles.with(from, os.O_RDONLY, func(in *os.File) error {
		_, err := io.Copy(out, io.NewSectionReader(in, 0, math.MaxInt64))
		return err
	})
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return publish(out.Name(), to)
}
