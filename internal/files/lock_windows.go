package files

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// The flags and the error of LockFileEx; see the Windows API's fileapi.h.
const (
	lockExclusive   = 2
	failImmediately = 1
	lockViolation   = syscall.Errno(33)
)

func kernel(proc string, f *os.File, args ...uintptr) error {
	p := syscall.NewLazyDLL("kernel32.dll").NewProc(proc)
	if err := p.Find(); err != nil {
		return fmt.Errorf("%s: %w", proc, err)
	}
	var at syscall.Overlapped
	all := append([]uintptr{f.Fd()}, args...)
	if ok, _, err := p.Call(append(all, uintptr(unsafe.Pointer(&at)))...); ok == 0 {
		return err
	}
	return nil
}

// TryLock takes an exclusive lock of the operating system on a file, or returns ErrLocked. It ends with the file's last handle, and so with its process.
func TryLock(f *os.File) error {
	err := kernel("LockFileEx", f, lockExclusive|failImmediately, 0, 1, 0)
	if errors.Is(err, lockViolation) {
		return ErrLocked
	}
	return err
}

// Unlock gives a lock back.
func Unlock(f *os.File) error { return kernel("UnlockFileEx", f, 0, 1, 0) }

// SyncDir has nothing to do: folders cannot be flushed here.
func SyncDir(string) error { return nil }
