package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// Backup writes a copy of the store to path, as of one moment, while everybody goes on reading and writing. It is there in full, and on
// the disk, when Backup returns nil, and not at all when it returns an error. A file that is there already is core.ErrConflict.
//
// The copy is a store like any other: Open it where it is, or put it in the place of one that is not open, after deleting what stands
// beside that ("-wal", "-shm" and the folder ".d"). It is a file of its own to those who follow changes: what they know of the
// original does not count.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: backup: %w", err)
	}
	defer s.leave()
	if err := (Config{Path: path}).Validate(); err != nil || path == "" {
		return fmt.Errorf("sqlite: backup %q: the path is not one of a file: %w", path, core.ErrInvalid)
	}
	whole, err := filepath.Abs(path) // SQLite is given addresses, which are never relative
	if err == nil {
		err = s.backup(ctx, whole)
	}
	return s.failed(ctx, "backup", path, err)
}

func (s *Store) backup(ctx context.Context, path string) (err error) {
	if err := vacant(path); err != nil {
		return err
	}
	// A folder holds what SQLite makes beside a file while it is written, and SQLite has its own locks on that file.
	dir, remove, err := files.TempDir(filepath.Dir(path), ".backup")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	part := filepath.Join(dir, "store.db")
	// The file is made here so that nobody else can read it.
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.copyTo(ctx, part); err != nil {
		return err
	}
	return publish(part, path)
}

func vacant(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return fmt.Errorf("%s is there: choose another path: %w", path, core.ErrConflict)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyTo writes a copy to an empty file and gives it an identity of its own.
func (s *Store) copyTo(ctx context.Context, part string) error {
	// A connection of its own keeps neither readers nor the writer waiting.
	params, err := s.params()
	if err != nil {
		return err
	}
	from, err := connectDB(s.file, params, 1, "deferred", s.cfg.BusyTimeout, 2048)
	if err != nil {
		return err
	}
	_, err = from.ExecContext(ctx, "VACUUM INTO ?", part)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	to, err := connectDB(part, nil, 1, "immediate", s.cfg.BusyTimeout, 2048, "synchronous(FULL)")
	if err != nil {
		return err
	}
	return errors.Join(s.reidentify(ctx, to), to.Close())
}

// reidentify gives the store in db a new identity. Runs and changes are of the old one, so they begin anew.
func (s *Store) reidentify(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After Commit it does nothing.
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{"DELETE FROM runs", "DELETE FROM changes"} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	copied := &Store{file: s.file, log: s.log, identity: s.identity}
	owners, err := copied.owners(ctx, tx)
	if err != nil {
		return err
	}
	if err := copied.identify(ctx, tx); err != nil {
		return err
	}
	for agent, owner := range owners {
		if _, err := tx.ExecContext(ctx, "UPDATE vectors SET owner = ? WHERE owner = ?", copied.owner(agent), owner); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// owners returns the owner of every agent.
func (s *Store) owners(ctx context.Context, tx *sql.Tx) (map[string]int64, error) {
	agents, err := column(ctx, tx, "SELECT DISTINCT agent FROM scopes ORDER BY agent")
	if err != nil {
		return nil, err
	}
	owners := make(map[string]int64, len(agents))
	for _, agent := range agents {
		owners[agent] = s.owner(agent)
	}
	return owners, nil
}

// publish puts a finished file in its place, unless another one is there.
func publish(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	// A link never takes the place of a file, as one of another backup to this path; not every file system has links.
	if err := os.Link(part, path); err != nil {
		if err := vacant(path); err != nil {
			return err
		}
		if err := os.Rename(part, path); err != nil {
			return err
		}
	}
	return files.SyncDir(filepath.Dir(path))
}
