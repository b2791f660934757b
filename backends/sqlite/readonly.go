package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// errReadOnly is the cause when something is to be written to a file that can only be read.
var errReadOnly = errors.New("it can only be read here: its file or folder may not be written to")

// prepareFile makes the file when there is none, and finds out whether it can be written: SQLite needs to make files beside it for that.
func (s *Store) prepareFile() error {
	err := s.makeFile()
	if err == nil {
		if s.besides() {
			return nil
		}
		var probe *os.File
		if probe, err = files.Temp(filepath.Dir(s.file), ".probe"); err == nil {
			return errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if s.handles == nil {
		return err // it is not there, and cannot be made
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		if errors.Is(err, syscall.ENOSPC) {
			return nil // SQLite will say what it cannot do
		}
		return err
	}
	if s.handles.with(s.file, os.O_RDONLY, func(*os.File) error { return nil }) != nil {
		return err
	}
	s.readOnly = true
	return nil
}

// besides reports whether SQLite's files beside the store are there.
func (s *Store) besides() bool {
	for _, name := range []string{"-wal", "-shm"} {
		if s.handles.with(s.file+name, os.O_RDWR, func(*os.File) error { return nil }) != nil {
			return false
		}
	}
	return true
}

// readOnlyParams are the parameters of connections to a file that can only be read. One without a log is taken for one that nobody changes.
func (s *Store) readOnlyParams() (map[string]string, error) {
	info, err := os.Stat(s.file + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return map[string]string{"mode": "ro", "immutable": "1"}, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.file + "-shm"); err != nil {
		return nil, fmt.Errorf("%s has a write-ahead log, which cannot be read where nothing can be written: copy both files to a folder that can be written: %w", s.file, core.ErrUnavailable)
	}
	return map[string]string{"mode": "ro"}, nil
}
