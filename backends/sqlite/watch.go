package sqlite

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// A file is read whole by a process that has had it open for firstVerify: then again whenever it is twice as large as it was, and every verifyAgain.
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

	// size is what the file had as it was read whole here last, at a time. The goroutine alone uses them.
	size int64
	at   time.Time
}

// due reports whether a file of a size is to be read whole.
func (w *watch) due(size int64, now time.Time) bool {
	return w.size == 0 || size >= 2*w.size || now.Sub(w.at) >= w.again
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

// startWatch begins to look whether the file is to be verified.
func (s *Store) startWatch() {
	if s.cfg.Check != CheckAuto {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.watch.mu.Lock()
	s.watch.cancel, s.watch.done = cancel, make(chan struct{})
	s.watch.mu.Unlock()
	go s.verifyNowAndThen(ctx)
}

func (s *Store) verifyNowAndThen(ctx context.Context) {
	defer close(s.watch.done)
	ticker := time.NewTicker(s.watch.first)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		info, err := os.Stat(s.file)
		if err != nil || !s.watch.due(info.Size(), time.Now()) { // one that is not there any more shows when something is written
			continue
		}
		s.watch.size, s.watch.at = info.Size(), time.Now()
		err = s.verifyAll(ctx)
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
