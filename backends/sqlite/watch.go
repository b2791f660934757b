package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// A file that is too large to be read whole as it is opened is read whole by a process that has had it open for firstVerify, and every verifyAgain from then on.
const (
	firstVerify = time.Minute
	verifyAgain = 24 * time.Hour
)

// watch verifies the file in the background. What it finds stays: from then on nothing is written, because what stands in a damaged file is not kept.
type watch struct {
	first, again time.Duration
	cancel       context.CancelFunc
	done         chan struct{}

	mu     sync.Mutex
	rounds int
	err    error
}

// found returns what is wrong with the file, as far as is known.
func (w *watch) found() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// stop ends the goroutine, if there is one.
func (w *watch) stop() {
	w.mu.Lock()
	cancel := w.cancel
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		<-w.done
	}
}

// startWatch begins to verify a file that Open has not read.
func (s *Store) startWatch() error {
	info, err := os.Stat(s.file)
	if err != nil {
		return fmt.Errorf("cannot look at the store: %w", err)
	}
	if s.cfg.Check != CheckAuto || info.Size() <= autoCheck {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.watch.mu.Lock()
	s.watch.cancel, s.watch.done = cancel, make(chan struct{})
	s.watch.mu.Unlock()
	go s.verifyNowAndThen(ctx)
	return nil
}

func (s *Store) verifyNowAndThen(ctx context.Context) {
	defer close(s.watch.done)
	timer := time.NewTimer(s.watch.first)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := s.verifyAll(ctx)
		if ctx.Err() != nil {
			return
		}
		broken := errors.Is(err, ErrDamaged)
		s.watch.mu.Lock()
		if s.watch.rounds++; broken {
			s.watch.err = err
		}
		s.watch.mu.Unlock()
		switch {
		case broken:
			s.log.ErrorContext(ctx, "the file is damaged: nothing is written any more; restore a copy, or export what can be read", "file", s.file, "error", err)
			return
		case err != nil:
			s.log.WarnContext(ctx, "the file could not be verified", "file", s.file, "error", err)
		}
		timer.Reset(s.watch.again)
	}
}

// verifyAll compares each table with its indexes, on a connection of its own. Each in a transaction of its own, so that the write-ahead log need not be kept
// for longer.
func (s *Store) verifyAll(ctx context.Context) error {
	s.open.RLock()
	params, err := s.params()
	if s.full {
		err = s.writable()
	}
	s.open.RUnlock()
	if err != nil {
		return err
	}
	db, err := connectDB(s.file, params, 1, "deferred", s.cfg.BusyTimeout, 2048, "query_only(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
	if err != nil {
		return describe(s.file, err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return describe(s.file, err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return describe(s.file, err)
	}
	for _, name := range tables {
		if err := s.compare(ctx, db, "PRAGMA integrity_check("+quoteName(name)+")"); err != nil {
			return describe(s.file, err)
		}
	}
	return nil
}

// quoteName writes a table's name as SQL.
func quoteName(name string) string { return `"` + name + `"` }
