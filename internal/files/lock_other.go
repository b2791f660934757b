//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package files

import (
	"errors"
	"fmt"
	"os"
)

// TryLock returns errors.ErrUnsupported: there are no locks between processes here.
func TryLock(*os.File) error {
	return fmt.Errorf("files cannot be locked on this system: %w", errors.ErrUnsupported)
}

// Unlock returns errors.ErrUnsupported.
func Unlock(*os.File) error { return errors.ErrUnsupported }

// SyncDir has nothing to do: nobody knows whether folders can be flushed here.
func SyncDir(string) error { return nil }
