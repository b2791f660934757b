package needs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk mounts a file system of its own, with options of tmpfs, and returns its folder. Where that is not allowed the test is skipped.
func Disk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	switch err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); {
	case errors.Is(err, syscall.EPERM):
		t.Skip("not run: the right to mount")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// FillDisk leaves no room on a disk, and returns what gives it back.
func FillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, n))
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || f.Close() != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}
