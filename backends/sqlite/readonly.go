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

// errFull is the cause when something is to be written to a file that was opened for reading because of a full disk.
var errFull = errors.New("the disk is full: what is stored can be read, and is written to again once there is room")

// prepareFile makes the file when there is none, and finds out whether it can be written: SQLite needs to make files beside it for that.
func (s *Store) prepareFile() error {
	err := s.makeFile()
	if err == nil {
		if s.besides() {
			return nil
		}
		if err = s.room(); err == nil {
			return nil
		}
	}
	if s.handles == nil {
		return err // it is not there, and cannot be made
	}
	full := isFull(err)
	if !full && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	if s.handles.with(s.file, os.O_RDONLY, func(*os.File) error { return nil }) != nil {
		return err
	}
	s.readOnly, s.full = true, full
	return nil
}

// indexSize is what SQLite's index of the write-ahead log takes at least, in bytes. Without it nothing is read that may be written.
const indexSize = 32 << 10

// room fails where SQLite could not make its files beside the store.
func (s *Store) room() error {
	probe, err := files.Temp(filepath.Dir(s.file), ".probe")
	if err != nil {
		return err
	}
	_, err = probe.Write(make([]byte, indexSize))
	return errors.Join(err, probe.Close(), os.Remove(probe.Name()))
}

// isFull reports whether an error says that there is no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

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
