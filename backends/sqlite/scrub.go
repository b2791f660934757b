package sqlite

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core/upkeep"
)

var _ upkeep.Scrubber = (*Store)(nil)

// Scrub implements upkeep.Scrubber: it rewrites the file, as Vacuum does, because SQLite leaves copies of what it moved within a page, and
// empties the write-ahead log. It waits for readers that still need the log, also those of other processes, until ctx ends or
// Config.BusyTimeout has passed; then it is core.ErrUnavailable, and to be called again.
//
// What the disk itself keeps of a file that was written over or made shorter is beyond it, as are copies of the file.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("sqlite: scrub: %w", err)
	}
	defer s.leave()
	return s.failed(ctx, "scrub", "", s.alone(ctx, func() error {
		if err := s.rewrite(ctx); err != nil {
			return err
		}
		return s.patiently(ctx, func() error {
			done, err := s.checkpoint(ctx)
			if err == nil && !done {
				err = errLogHeld
			}
			return err
		})
	}))
}

// rewrite has SQLite write the whole file anew. Who calls it has the turn.
func (s *Store) rewrite(ctx context.Context) error {
	// An interrupted connection is closed.
	if err := s.releaseDirect(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return s.patiently(ctx, func() error {
		_, err := s.writer.ExecContext(ctx, "VACUUM")
		return err
	})
}
