package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// TestBackupToARelativePath: it is where a person looks for it.
func TestBackupToARelativePath(t *testing.T) {
	s := open(t, config(t))
	mustAppend(t, s, entry(ann, 1))
	dir := t.TempDir()
	t.Chdir(dir)
	if err := s.Backup(t.Context(), "copy.db"); err != nil {
		t.Fatal(err)
	}
	if got, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(got) != 1 || filepath.Base(got[0]) != "copy.db" {
		t.Errorf("in the folder: %v, error %v, want copy.db alone", got, err)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 300)...)
	mustAppend(t, s, entries(core.SessionID{Agent: "bob", Session: "b"}, 0, 20)...)
	if err := s.SwapView(t.Context(), viewOf(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), ann.Scope(), ids(entries(ann, 0, 5))); err != nil {
		t.Fatal(err)
	}
	if err := s.PutVectors(t.Context(), "m/2", vectorsOf(entries(ann, 10, 20), 2)); err != nil {
		t.Fatal(err)
	}
	c := copyOf{agent: "ann"}
	c.follow(t, s, 100)
	release := s.HoldWriteLock(t) // nobody waits for anybody
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	release()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v, %v, want it to be its owner's alone", info.Mode(), err)
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) > 0 {
		t.Errorf("Backup left %v, %v", left, err)
	}
	if err := s.Backup(t.Context(), path); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Backup onto a file = %v, want ErrConflict", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(path, "no folder")); err == nil {
		t.Error("Backup into a file = nil, want an error")
	}
	to := open(t, sqlite.Config{Path: path, Check: sqlite.CheckOpen})
	if err := to.Verify(t.Context()); err != nil {
		t.Errorf("Verify of the copy: %v", err)
	}
	if diff := cmp.Diff(all(t, s, core.Scope{Agent: "ann"}), all(t, to, core.Scope{Agent: "ann"})); diff != "" {
		t.Errorf("entries of the copy (-want +got):\n%s", diff)
	}
	if v, err := to.LoadView(t.Context(), ann); err != nil || cmp.Diff(viewOf(1), v) != "" {
		t.Errorf("LoadView of the copy = %v, %v", v, err)
	}
	if diff := cmp.Diff(allVectors(t, s, "m/2", 100), allVectors(t, to, "m/2", 3)); diff != "" {
		t.Errorf("vectors of the copy (-want +got):\n%s", diff)
	}
	c.follow(t, to, 100)
	c.compare(t, to)
	if c.anew != 1 {
		t.Errorf("who followed the original began anew %d times with the copy, want once", c.anew)
	}
}

func TestBeside(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	dir, err := s.Beside("lexical")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || filepath.Dir(dir) != cfg.Path+".d" {
		t.Errorf("Beside = %q, %v, want a folder of the owner's alone beside the file", dir, err)
	}
	if again, err := s.Beside("lexical"); err != nil || again != dir {
		t.Errorf("Beside again = %q, %v, want the same", again, err)
	}
	for _, use := range []string{"", "..", "a/b", "a b", "\x00"} {
		if _, err := s.Beside(use); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Beside(%q) = %v, want ErrInvalid", use, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beside("lexical"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Beside after Close = %v, want ErrClosed", err)
	}
}

// TestBackupsToOnePath: of several backups to one path at the same time one is made, the others say that it is there, and nothing else is left.
func TestBackupsToOnePath(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	mustAppend(t, s, entries(ann, 0, 100)...)
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	errs := make([]error, 4)
	var work sync.WaitGroup
	for i := range errs {
		work.Go(func() { errs[i] = s.Backup(t.Context(), path) })
	}
	work.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, core.ErrConflict) {
			t.Errorf("Backup = %v, want ErrConflict", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, filepath.Join(dir, "other.db")); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that is cancelled: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || made != 1 {
		t.Errorf("%d backups were made, the folder holds %v, %v", made, left, err)
	}
	to := open(t, sqlite.Config{Path: path, Check: sqlite.CheckOpen})
	if err := to.Verify(t.Context()); err != nil {
		t.Errorf("Verify of the copy: %v", err)
	}
}
