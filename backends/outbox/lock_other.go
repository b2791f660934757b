//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package outbox

import (
	"errors"
	"fmt"
	"os"
)

// tryLock fails: without locks between processes a journal cannot be shared safely. A volatile queue needs none.
func tryLock(*os.File) error {
	return fmt.Errorf("files cannot be locked on this system, set volatile: %w", errors.ErrUnsupported)
}

func unlock(*os.File) error { return errors.ErrUnsupported }

func syncDir(string) error { return nil }
