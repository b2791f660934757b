package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// protect lets nobody write to a folder: by its mode, or with a mount for those whom modes do not bind.
func protect(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Chmod(file, 0o400); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		return
	}
	err := syscall.Mount(dir, dir, "", syscall.MS_BIND, "")
	if err == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		err = syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	}
	if errors.Is(err, syscall.EPERM) {
		t.Skip("not run: the right to mount, or a user other than root")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFolderThatCannotBeWritten: a store in it is read, shown, exported, inspected and verified; what would write says why it does not.
func TestFolderThatCannotBeWritten(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	if _, err := newEngine(t, s).IngestBatch(t.Context(), core.IngestBatchRequest{Session: ann, Messages: talk(6)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	protect(t, filepath.Dir(cfg.Path))
	s = open(t, cfg)
	if err := errors.Join(s.Ping(t.Context()), s.Verify(t.Context())); err != nil {
		t.Error(err)
	}
	if got, err := s.Stats(t.Context()); err != nil || got.Entries != 6 {
		t.Errorf("Stats = %+v, %v", got, err)
	}
	if _, err := s.Beside("lexical"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Beside = %v, want ErrUnsupported", err)
	}
	var out bytes.Buffer
	if err := s.Export(t.Context(), &out, nil); err != nil || !strings.Contains(out.String(), "message3") {
		t.Errorf("Export wrote %d bytes, %v", out.Len(), err)
	}
	e := newEngine(t, s)
	for range 2 {
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 900, PromptMode: core.PromptNone})
		if err != nil || len(res.Messages) != 6 {
			t.Errorf("Assemble shows %d messages, %v", len(res.Messages), err)
		}
	}
	if _, err := s.Append(t.Context(), entries(ann, 20, 21)); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "can only be read") {
		t.Errorf("Append = %v, want ErrUnavailable and why", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLogThatCannotBeRead: where nothing can be written, a file with a write-ahead log that a crash left is refused, not read without it.
func TestLogThatCannotBeRead(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	if _, err := s.Append(t.Context(), entries(ann, 0, 4)); err != nil {
		t.Fatal(err)
	}
	left := copyStore(t, cfg)
	protect(t, filepath.Dir(left.Path))
	if _, err := sqlite.Open(t.Context(), left); err == nil || !strings.Contains(err.Error(), "copy both files") {
		t.Errorf("Open = %v, want the remedy", err)
	}
	both := config(t)
	for _, tail := range []string{"", "-wal", "-shm"} {
		b, err := os.ReadFile(cfg.Path + tail)
		if err == nil {
			err = os.WriteFile(both.Path+tail, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	protect(t, filepath.Dir(both.Path))
	if n, err := opens(t, both); err != nil || n != 4 {
		t.Errorf("with the index of the log: %d entries, %v", n, err)
	}
}
