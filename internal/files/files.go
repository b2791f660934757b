// Package files has what programs need that share a folder: locks between processes, and temporary files that show whether somebody still writes them.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrLocked means that somebody else has a lock.
var ErrLocked = errors.New("locked")

const (
	// TempSuffix ends the name of every temporary file of this project that lies beside what it is going to be.
	TempSuffix = ".contextengine.tmp"
	// settled is how long a temporary file nobody has locked is left alone: it may have been made this moment, or be about to get its name.
	settled = time.Minute
	// lockName is the file in a temporary folder that is locked for it.
	lockName = "lock"
)

// Temp makes a temporary file in a folder, for its owner alone. Until it is closed it is locked, so that Abandoned knows it for one in use.
func Temp(dir, name string) (*os.File, error) {
	f, err := os.CreateTemp(dir, name+".*"+TempSuffix)
	if err != nil {
		return nil, err
	}
	hold(f)
	return f, nil
}

// TempDir makes a temporary folder in a folder, for files that others open or lock by themselves. remove ends its use, and removes it with what is in it.
func TempDir(dir, name string) (path string, remove func() error, err error) {
	if path, err = os.MkdirTemp(dir, name+".*"+TempSuffix); err != nil {
		return "", nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(path))
	}
	hold(f)
	return path, func() error { return errors.Join(f.Close(), os.RemoveAll(path)) }, nil
}

// hold locks a file that nobody else knows. Where files cannot be locked, Abandoned takes all of them for ones in use.
func hold(f *os.File) { _ = TryLock(f) }

// Abandoned lists the temporary files and folders directly in dir whose process ended before it was done with them. What a living process uses is never among
// them, nor what changed within the last minute before now. A folder that is not there holds none.
func Abandoned(dir string, now time.Time) ([]string, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, entry := range all {
		if !strings.HasSuffix(entry.Name(), TempSuffix) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < settled {
			continue
		}
		if info.Mode().IsRegular() && free(path) || info.IsDir() && freeDir(path) {
			out = append(out, path)
		}
	}
	return out, err
}

// free reports whether nobody has a file locked.
func free(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return TryLock(f) == nil
}

// freeDir reports whether nobody uses a temporary folder. One without a lock was never used.
func freeDir(path string) bool {
	lock := filepath.Join(path, lockName)
	if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return free(lock)
}
