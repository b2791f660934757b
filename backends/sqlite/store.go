package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Store keeps entries and views in a file. Make one with Open; it is safe for concurrent use, also by other processes
// that have the same file open. It starts one goroutine, for files that are too large to be verified as they are opened; Close stops it.
type Store struct {
	file string
	cfg  Config
	log  *slog.Logger
	now  func() time.Time

	// writer has one connection, readers have Config.Readers.
	writer, readers *sql.DB
	w               writeStatements
	r               readStatements
	// direct is what Append uses; who has the turn uses it.
	direct direct
	// identity tells this file from all others, also from copies of it made by Backup.
	identity []byte
	// covered is about the number up to which entries are in runs, see cover; who has the turn uses it.
	covered int64
	// tail is longTail, less in tests.
	tail int64
	// turn is the right to use the writer: a channel, so that waiting for it ends with the context.
	turn chan struct{}

	// handles are those of the file and the index beside it that are not SQLite's.
	handles *handles
	// opened is the file as it was opened; readOnly says that nothing can be written to it, and full that this is for want of room.
	opened os.FileInfo
	// logged is the write-ahead log as it was opened, nil where nothing is written.
	logged         os.FileInfo
	readOnly, full bool
	// length is how large the file was last, in bytes.
	length atomic.Int64
	// pause waits before the file is looked at once more.
	pause func(time.Duration)
	high  highMark
	watch watch

	// open is held for reading by every call, so that Close waits for those that run.
	open    sync.RWMutex
	closed  bool
	closing atomic.Bool

	buffers sync.Pool
}

var (
	_ core.Store     = (*Store)(nil)
	_ core.ViewStore = (*Store)(nil)
	_ core.Tailer    = (*Store)(nil)
	_ core.Pinger    = (*Store)(nil)
)

// Option sets what no configuration file can hold.
type Option func(*Store)

// WithLogger sets the logger; without it nothing is logged. Contents are never logged.
func WithLogger(l *slog.Logger) Option { return func(s *Store) { s.log = l } }

// WithClock sets the clock that Retain measures ages with.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// Path returns the absolute path of the store's file.
func (s *Store) Path() string { return s.file }

// Ping implements core.Pinger: it reads from the file.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", "", func(tx *sql.Tx) error {
		if err := errors.Join(s.inPlace(), s.watch.found()); err != nil {
			return err
		}
		var n int
		return tx.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM scopes LIMIT 1)").Scan(&n)
	})
}

// Close implements core.Store. It waits for calls that run, moves what is in the write-ahead log into the file, and
// removes the log when no other process has the file open. It returns ErrMoved where the file was moved, removed or
// replaced meanwhile; where another one is at its path the log stays.
func (s *Store) Close() error {
	// Long calls look at this between their pages and give up.
	s.closing.Store(true)
	s.watch.stop()
	s.open.Lock()
	defer s.open.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	// The writer goes last: the last connection of all is the one that removes the log.
	err := s.readers.Close()
	var moved error
	if !s.readOnly {
		var now os.FileInfo
		var whole bool
		// Beside another file the log stays as it is, and the mark with it: what is stored last is in it, or somebody notices that it is not.
		if now, moved = s.found(); now == nil || moved == nil {
			var err error
			whole, err = s.checkpoint(context.Background())
			moved = errors.Join(moved, err)
		}
		moved = errors.Join(moved, s.high.close(s.identity, whole && moved == nil))
	}
	err = errors.Join(err, moved, s.releaseDirect(context.Background()), s.writer.Close(), s.handles.release())
	if err != nil {
		return fmt.Errorf("sqlite: close: %w", describe(s.file, err))
	}
	return nil
}

// enter begins a call. It is followed by leave when it returns nil.
func (s *Store) enter(ctx context.Context) error {
	s.open.RLock()
	err := ctx.Err()
	if s.full && !s.closed && err == nil {
		s.open.RUnlock()
		err = s.again(ctx)
		s.open.RLock()
	}
	if s.closed {
		err = core.ErrClosed
	}
	if err != nil {
		s.open.RUnlock()
	}
	return err
}

func (s *Store) leave() { s.open.RUnlock() }

// stopped returns the error of a long call that must not go on.
func (s *Store) stopped(ctx context.Context) error {
	if s.closing.Load() {
		return core.ErrClosed
	}
	return ctx.Err()
}

// read runs f in a read transaction: all it reads is of one moment.
func (s *Store) read(ctx context.Context, op, id string, f func(tx *sql.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: %s: %w", op, err)
	}
	defer s.leave()
	err := s.snapshot(ctx, f)
	if err == nil {
		err = s.still()
	}
	return s.failed(ctx, op, id, err)
}

func (s *Store) snapshot(ctx context.Context, f func(tx *sql.Tx) error) error {
	return reading(ctx, s.readers, f)
}

// reading runs f in a transaction that only reads. When it returns, nothing holds the log any more: a transaction that ends with ctx would
// be rolled back later, by a goroutine of its own.
func reading(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	// Nothing was written, so there is nothing that a failing rollback or release could lose.
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return f(tx)
}

// write runs f in a write transaction and commits it when f returns nil.
func (s *Store) write(ctx context.Context, op, id string, f func(tx *sql.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: %s: %w", op, err)
	}
	defer s.leave()
	return s.failed(ctx, op, id, s.transact(ctx, f))
}
