package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/contextengine/contextengine/core"
)

// The pauses between two tries to get the write lock from another process.
const (
	minPause = 200 * time.Microsecond
	maxPause = 10 * time.Millisecond
)

// transact waits for the writer, runs f in a transaction, and commits unless f fails or ctx has ended.
func (s *Store) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	return s.alone(ctx, func() error {
		if err := s.writable(); err != nil {
			return err
		}
		// An interrupted connection is thrown away with its statements, and what runs in here is short: ctx is looked at
		// between statements instead.
		quiet := context.WithoutCancel(ctx)
		var tx *sql.Tx
		err := s.patiently(ctx, func() (err error) {
			tx, err = s.writer.BeginTx(quiet, nil)
			return err
		})
		if err != nil {
			return err
		}
		if err = f(tx); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			// The error of the transaction is the one that counts; a failed rollback shows when the next one begins.
			_ = tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		var highest int64
		if s.high.file != nil && s.writer.QueryRowContext(quiet, selectHighest).Scan(&highest) == nil {
			s.markUpTo(ctx, highest)
		}
		return s.inPlace()
	})
}

// writable returns why nothing is to be written to the file.
func (s *Store) writable() error {
	if s.full {
		return fmt.Errorf("%s: %w: %w", s.file, errFull, core.ErrUnavailable)
	}
	if s.readOnly {
		return fmt.Errorf("%s: %w: %w", s.file, errReadOnly, core.ErrUnavailable)
	}
	return s.watch.found()
}

// alone runs f while no other goroutine uses the writer.
func (s *Store) alone(ctx context.Context, f func() error) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := f()
	if errors.Is(err, errLogGone) {
		// What was acknowledged before is in the log, which lasts as long as it is open.
		_, saved := s.checkpoint(ctx)
		err = errors.Join(err, saved)
	}
	return err
}

// inPlace fails when the file at the store's path is not the one that is open. It comes behind every commit, before that is acknowledged.
func (s *Store) inPlace() error {
	now, err := s.found()
	if now == nil || err != nil {
		return err
	}
	if err := s.logInPlace(); err != nil {
		return err
	}
	return s.notCut(now.Size())
}

// errLogGone is what ErrMoved is where nothing is in the place of the write-ahead log. Beside another one what the log held must not go into the file: whoever opens
// that next would lay the other one over it.
var errLogGone = fmt.Errorf("what it held was put into the store's file, start again: %w", ErrMoved)

// logInPlace fails when the write-ahead log at its path is not the one that is open: it stays where it is while anybody has the file open.
func (s *Store) logInPlace() error {
	if s.logged == nil {
		return nil
	}
	now, err := os.Stat(s.file + "-wal")
	switch {
	case err == nil && os.SameFile(s.logged, now):
		return nil
	case err == nil:
		return fmt.Errorf("%s-wal was replaced while it was open: take what is there away, or put the right one back: %w", s.file, ErrMoved)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the write-ahead log cannot be looked at: %w", err)
	}
	return fmt.Errorf("%s-wal was moved or removed while it was open: %w", s.file, errLogGone)
}

// found returns what is at the store's path, nil when nothing is, and an error when that is not what is open.
func (s *Store) found() (os.FileInfo, error) {
	if s.opened == nil {
		return nil, nil
	}
	now, err := os.Stat(s.file)
	switch {
	case err == nil && os.SameFile(s.opened, now):
		return now, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s cannot be looked at: %w", s.file, err)
	}
	return now, fmt.Errorf("%s was moved, removed or replaced while it was open: put it back or start again: %w", s.file, ErrMoved)
}

// notCut fails when the file is shorter than it was and than it says itself. SQLite shortens it only after saying so at its beginning; where it was cut off
// what is read next may be of pages that are kept in memory, and what is written next would leave holes. Another process that copies the write-ahead log into
// the file writes the beginning first and the end last: the end is waited for. If it was killed in between, the end is in the log for as long as nobody copies it.
func (s *Store) notCut(size int64) error {
	for wait := time.Millisecond; size < s.length.Load(); wait *= 2 {
		page, says, err := s.saidLength()
		if err == nil && (says <= size || s.logHolds(page, size/page+1, says/page)) {
			break
		}
		if wait > maxSettle {
			return fmt.Errorf("%s was cut off while it was open: it has %d bytes: put a copy in its place and start again: %w", s.file, size, ErrDamaged)
		}
		s.pause(wait)
		if now, err := os.Stat(s.file); err == nil {
			size = now.Size()
		}
	}
	s.length.Store(size)
	return nil
}

// maxSettle is the longest of the waits for the end of a file, each twice as long as the one before: about two seconds in all.
const maxSettle = 1 << 10 * time.Millisecond

// saidLength is how long a page of the file is by its own account, and how long all of it, in bytes.
func (s *Store) saidLength() (page, length int64, err error) {
	var head [32]byte
	err = s.handles.with(s.file, os.O_RDONLY, func(f *os.File) error {
		_, err := f.ReadAt(head[:], 0)
		return err
	})
	page = int64(binary.BigEndian.Uint16(head[16:])) // 1 stands for 65,536, which this program does not use
	if err == nil && page == 0 {
		err = errors.New("it names no length of a page")
	}
	return page, page * int64(binary.BigEndian.Uint32(head[28:])), err
}

// patiently repeats try while another process has the lock, until ctx ends or the busy timeout has passed without anything written by anyone: where many
// write, on a slow disk, one of them waits long. SQLite's own waiting would not end with ctx.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	var timeout *time.Timer
	var before [indexCopied + 4]byte
	for pause := minPause; ; pause = min(pause*2, maxPause) {
		err := try()
		if !isBusy(err) {
			return err
		}
		if timeout == nil {
			timeout = time.NewTimer(s.cfg.BusyTimeout)
			before, _ = s.indexHead() // what cannot be read is as if nothing were written
			defer timeout.Stop()
		}
		// Some chance in the pause keeps two processes from meeting at every try.
		again := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-again.C:
		case <-timeout.C:
			again.Stop()
			now, _ := s.indexHead()
			if now == before {
				return err
			}
			before = now
			timeout.Reset(s.cfg.BusyTimeout)
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
}

// forget makes what was deleted or changed leave the write-ahead log too. Readers that still need the log keep it; then it
// goes with a later call, or with Close.
func (s *Store) forget(ctx context.Context) {
	if s.cfg.Insecure || s.enter(ctx) != nil {
		return
	}
	defer s.leave()
	err := s.alone(ctx, func() error {
		_, err := s.checkpoint(ctx)
		return err
	})
	if err != nil {
		s.log.WarnContext(ctx, "deleted content is still in the write-ahead log", "file", s.file, "error", describe(s.file, err))
	}
}

// checkpoint moves the write-ahead log into the file and truncates it, as far as readers allow. It reports whether the
// log is empty now.
func (s *Store) checkpoint(ctx context.Context) (bool, error) {
	var busy, logged, moved int
	err := s.writer.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &logged, &moved)
	return busy == 0, err
}
