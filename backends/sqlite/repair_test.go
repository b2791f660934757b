package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// TestRepair: whatever bit of an index's page flips, Repair makes the file sound without losing anything, and keeps a copy of the damaged one; where it cannot,
// the file is as it was.
func TestRepair(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	const many = 400
	for from := 0; from < many; from += 100 {
		mustAppend(t, s, entries(ann, from, from+100)...)
	}
	if saved, err := s.Repair(t.Context()); err != nil || saved != "" {
		t.Fatalf("a sound file: copy %q, error %v", saved, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Check = sqlite.CheckNever
	mended, noticed := 0, 0
	for i, at := range leaves(sound) {
		file := bytes.Clone(sound)
		file[at+4] ^= 1 << (i % 8)
		if err := os.WriteFile(cfg.Path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), cfg)
		if err != nil {
			continue // a page that opening needs
		}
		saved, err := s.Repair(t.Context())
		switch {
		case err == nil && saved != "":
			mended++
			if copied, err := os.ReadFile(saved); err != nil || !bytes.Equal(copied, file) {
				t.Errorf("page %d: the copy is not the file as it was: %v", at/pageSize, err)
			}
			if err := s.Verify(t.Context()); err != nil {
				t.Errorf("page %d: %v", at/pageSize, err)
			}
			n := 0
			for _, err := range core.All(t.Context(), s, ann.Scope(), false) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != many {
				t.Errorf("page %d: %d of %d entries", at/pageSize, n, many)
			}
		case errors.Is(err, sqlite.ErrDamaged):
			noticed++
		case err != nil:
			t.Errorf("page %d: %v", at/pageSize, err)
		}
		if saved != "" {
			if err := os.Remove(saved); err != nil {
				t.Error(err)
			}
			_ = os.Remove(saved + "-wal")
		} else if left, _ := filepath.Glob(cfg.Path + ".before-repair*"); len(left) > 0 {
			t.Errorf("page %d: copies of nothing: %s", at/pageSize, left)
		}
		if err := s.Close(); err != nil && !errors.Is(err, sqlite.ErrDamaged) {
			t.Error(err)
		}
	}
	t.Logf("%d damaged pages were mended, %d were not", mended, noticed)
	if mended == 0 {
		t.Error("no damage was mended")
	}
}
