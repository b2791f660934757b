package sqlite

import (
	"context"
	"fmt"
	"os"

	"github.com/contextengine/contextengine/core"
)

// A store on a full disk is opened for reading, as one that nobody changes: there is no room for the index by which processes tell each other. Another process may
// find room first. So every call looks whether there is room, or whether somebody wrote, and opens the file anew.

// again opens a file anew that was opened on a full disk, where that may be over. It fails where what is open is not what is stored any more.
func (s *Store) again(ctx context.Context) error {
	if !s.open.TryLock() {
		return nil // somebody is reading, or does this
	}
	defer s.open.Unlock()
	if s.closed || !s.full {
		return nil
	}
	changed := s.changed()
	if !changed && s.room() != nil {
		return nil
	}
	fresh := &Store{file: s.file, cfg: s.cfg, log: s.log, now: s.now, pause: s.pause, turn: s.turn, tail: s.tail}
	if err := fresh.connect(ctx, migrations()); err != nil {
		if changed {
			return s.failed(ctx, "open", "", err)
		}
		return nil
	}
	if err := s.releaseDirect(ctx); err != nil {
		return err
	}
	// Closing them here could end locks of the new ones, see handles.
	s.handles.later(s.readers, s.writer)
	old := s.handles
	s.writer, s.readers, s.w, s.r = fresh.writer, fresh.readers, fresh.w, fresh.r
	s.identity, s.covered, s.handles, s.opened, s.logged = fresh.identity, fresh.covered, fresh.handles, fresh.opened, fresh.logged
	s.readOnly, s.full = fresh.readOnly, fresh.full
	s.length.Store(fresh.length.Load())
	s.high.file, s.high.boot = fresh.high.file, fresh.high.boot
	s.high.last.Store(fresh.high.last.Load())
	return old.release()
}

// changed reports whether somebody wrote to the file since it was opened.
func (s *Store) changed() bool {
	now, err := os.Stat(s.file)
	if err != nil || !os.SameFile(now, s.opened) || now.Size() != s.opened.Size() || !now.ModTime().Equal(s.opened.ModTime()) {
		return true
	}
	log, err := os.Stat(s.file + "-wal")
	return err == nil && log.Size() > 0
}

// still fails when what was just read on a full disk may be of two moments.
func (s *Store) still() error {
	if s.full && s.changed() {
		return fmt.Errorf("%s was written by another process: try again: %w", s.file, core.ErrUnavailable)
	}
	return nil
}
