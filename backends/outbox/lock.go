package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// fileLock is a lock between processes: one of the operating system on an empty file. It ends with its holder, however that ends.
type fileLock struct {
	path string
	f    *os.File
}

// open makes the file. The lock is not taken.
func (l *fileLock) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	l.f = f
	return nil
}

// close gives the lock back if it is held.
func (l *fileLock) close() error {
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// The pauses between two tries to get a lock, and how long one waits for another process that holds it only for moments.
const (
	minPause = 100 * time.Microsecond
	maxPause = 10 * time.Millisecond
	maxBusy  = 30 * time.Second
)

// wait takes the lock, and waits for it until ctx ends.
func (l *fileLock) wait(ctx context.Context) error {
	var since time.Time
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := files.TryLock(l.f)
		if errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("%w: set volatile", err)
		}
		if !errors.Is(err, files.ErrLocked) {
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) > maxBusy {
			return fmt.Errorf("%s is held by another process: try again later: %w", l.path, core.ErrUnavailable)
		}
		again := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
}
