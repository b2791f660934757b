package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/contextengine/contextengine/core"
)

// ErrDamaged means that the file, or an entry or view in it, is not what was written. The text names the file. Verify tells
// how far the damage goes; a copy made earlier, or Export of what can still be read, is the way out.
var ErrDamaged = errors.New("damaged")

// ErrSchema means that the file belongs to another program, or to a newer version of this one. The text names the file and the versions.
var ErrSchema = errors.New("schema not supported")

// ErrMoved means that the store's file is not at its path any more: it was moved, removed or replaced while the process ran. What is written now would be gone
// with it, so nothing is acknowledged. Put it back, or start again.
var ErrMoved = errors.New("the file is not in its place any more")

// errLogHeld means that a reader needs what is in the write-ahead log.
var errLogHeld = errors.New("a reader needs the write-ahead log")

// code returns the primary result code of SQLite in err, 0 when there is none.
func code(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err)
	return errors.Is(err, errLogHeld) || c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// failed wraps the error of an operation, once: what carries one of the house's errors only gets its place in front.
func (s *Store) failed(ctx context.Context, op, id string, err error) error {
	if err == nil {
		return nil
	}
	where := "sqlite: " + op
	if id != "" {
		where = fmt.Sprintf("sqlite: %s %q", op, id)
	}
	// A query that was interrupted has the driver's error; what the caller must see is why.
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%s: %w", where, ended)
	}
	return fmt.Errorf("%s: %w", where, describe(s.file, err))
}

// describe says in the words of an operator what SQLite reported about file.
func describe(file string, err error) error {
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrMoved) || errors.Is(err, core.ErrUnavailable) {
		return err // it was described where it happened
	}
	if errors.Is(err, errLogHeld) {
		return fmt.Errorf("%s is being read at length: %w: try again later: %w", file, err, core.ErrUnavailable)
	}
	if isFull(err) {
		return fmt.Errorf("%s: the disk is full: %w: %w", file, err, core.ErrUnavailable)
	}
	switch code(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT:
		return fmt.Errorf("%s: %w: %w", file, err, ErrDamaged)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return fmt.Errorf("%s is being written by another process: try again later: %w", file, core.ErrUnavailable)
	case lib.SQLITE_FULL:
		return fmt.Errorf("%s: the disk is full: %w", file, core.ErrUnavailable)
	case lib.SQLITE_IOERR:
		if e, ok := errors.AsType[*driver.Error](err); ok && e.Code() == lib.SQLITE_IOERR_SHMSIZE {
			return fmt.Errorf("%s: the disk is full, there is no room for the index of the write-ahead log: %w: %w", file, err, core.ErrUnavailable)
		}
		return fmt.Errorf("%s: %w: %w", file, err, core.ErrUnavailable)
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_READONLY, lib.SQLITE_AUTH:
		return fmt.Errorf("%s cannot be opened for reading and writing, check its folder, owner and permissions: %w", file, err)
	case lib.SQLITE_ERROR, lib.SQLITE_SCHEMA, lib.SQLITE_MISMATCH:
		// The statements are constant, so an error in one means that the schema in the file is not what it was.
		return fmt.Errorf("%s: %w: %w", file, err, ErrDamaged)
	}
	if strings.Contains(err.Error(), "sql: Scan error") { // it quotes what it read
		return fmt.Errorf("%s: a column holds another kind of value than was written to it: %w", file, ErrDamaged)
	}
	return err
}

// damaged says that something read from the file is not what was written.
func (s *Store) damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", s.file, fmt.Sprintf(format, args...), ErrDamaged)
}
