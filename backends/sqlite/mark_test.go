package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// copyStore copies a store's files as they are now, as a crash would leave them.
func copyStore(t *testing.T, from sqlite.Config, without ...string) sqlite.Config {
	t.Helper()
	to := config(t)
	for _, tail := range []string{"", "-wal", "-mark"} {
		b, err := os.ReadFile(from.Path + tail)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to.Path+tail, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tail := range without {
		if err := os.Remove(to.Path + tail); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// opens opens a store, and returns how many entries it has.
func opens(t *testing.T, cfg sqlite.Config) (int, error) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	page, err := s.Scan(t.Context(), core.ScanQuery{Scope: ann.Scope(), Limit: 100})
	return len(page.Entries), err
}

// TestLogThatIsGone: a write-ahead log that was removed or cut off hides what was acknowledged, which is noticed, whether that were messages or an erasure. Recover
// gives up what is gone, once; a store whose log went into the file misses nothing, nor does one without a mark.
func TestLogThatIsGone(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Insecure = true // else an erasure goes into the file at once
	s := open(t, cfg)
	if _, err := s.Append(t.Context(), entries(ann, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if err := s.Scrub(t.Context()); err != nil { // the log goes into the file
		t.Fatal(err)
	}
	early := copyStore(t, cfg)
	if n, err := opens(t, early); n != 4 || err != nil {
		t.Errorf("all in the file: %d entries, %v", n, err)
	}
	m := message.New(message.User, "")
	if err := s.Update(t.Context(), ann.Scope(), entry(ann, 1).ID, core.Change{Message: &m, Type: core.TypeErased, Fingerprint: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := opens(t, copyStore(t, cfg, "-wal")); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("an erasure is gone: %v, want ErrDamaged", err)
	}
	for n := 4; n < 9; n++ {
		if _, err := s.Append(t.Context(), entries(ann, n, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := opens(t, copyStore(t, cfg)); n != 9 || err != nil {
		t.Errorf("after a crash: %d entries, %v", n, err)
	}
	cut := copyStore(t, cfg)
	info, err := os.Stat(cut.Path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(cut.Path+"-wal", info.Size()/2); err != nil {
		t.Fatal(err)
	}
	empty := copyStore(t, cfg)
	if err := os.Truncate(empty.Path+"-wal", 0); err != nil {
		t.Fatal(err)
	}
	for what, gone := range map[string]sqlite.Config{"removed": copyStore(t, cfg, "-wal"), "cut off": cut, "emptied": empty} {
		for range 2 {
			if n, err := opens(t, gone); !errors.Is(err, sqlite.ErrDamaged) {
				t.Errorf("%s: %d entries, %v, want ErrDamaged", what, n, err)
			}
		}
		gone.Recover = sqlite.RecoverAccept
		if _, err := opens(t, gone); err != nil {
			t.Errorf("%s: given up: %v", what, err)
		}
		gone.Recover = sqlite.RecoverRefuse
		if _, err := opens(t, gone); err != nil {
			t.Errorf("%s: given up before: %v", what, err)
		}
	}
	if _, err := opens(t, copyStore(t, cfg, "-wal", "-mark")); err != nil {
		t.Errorf("without a mark: %v", err)
	}
	// A backup that is put in the place of the store is another file.
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	put := copyStore(t, cfg, "-wal")
	b, err := os.ReadFile(backup)
	if err == nil {
		err = os.WriteFile(put.Path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := opens(t, put); n != 9 || err != nil {
		t.Errorf("a backup: %d entries, %v", n, err)
	}
}

// TestReplacedByAnOlderCopy: a process whose file was replaced by an older copy says so as it ends, and leaves the log and the mark as they are: the next one finds
// what was stored last in the log, and notices when that is gone.
func TestReplacedByAnOlderCopy(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]string{"the log is there": "", "the log is gone": "-wal"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			s := open(t, cfg)
			if _, err := s.Append(t.Context(), entries(ann, 0, 4)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			old, err := os.ReadFile(cfg.Path)
			if err != nil {
				t.Fatal(err)
			}
			s = open(t, cfg)
			if _, err := s.Append(t.Context(), entries(ann, 4, 9)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(cfg.Path+".old", old, 0o600), os.Rename(cfg.Path+".old", cfg.Path)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Close = %v, want ErrMoved", err)
			}
			if without == "" {
				if n, err := opens(t, cfg); err != nil || n != 9 {
					t.Errorf("%d entries, %v, want 9", n, err)
				}
				return
			}
			if err := os.Remove(cfg.Path + without); err != nil {
				t.Fatal(err)
			}
			if _, err := opens(t, cfg); !errors.Is(err, sqlite.ErrDamaged) {
				t.Errorf("Open = %v, want ErrDamaged", err)
			}
		})
	}
}

// TestLogOfAYoungStore: what was stored since the file was made is in the log alone. Where that is removed, it is noticed all the same.
func TestLogOfAYoungStore(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20, 300} {
		cfg := config(t)
		s := open(t, cfg)
		if _, err := s.Append(t.Context(), entries(ann, 0, n)); err != nil {
			t.Fatal(err)
		}
		if got, err := opens(t, copyStore(t, cfg, "-wal")); !errors.Is(err, sqlite.ErrDamaged) {
			t.Errorf("%d entries are gone with the log: %d are found, %v, want ErrDamaged", n, got, err)
		}
	}
}

// TestLogThatIsGoneWhileOpen: nothing more is acknowledged once the log is not in its place, and what was before is not lost, also where the process is killed then.
func TestLogThatIsGoneWhileOpen(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"removed": os.Remove,
		"removed, and an old copy put in its place": func(path string) error {
			return errors.Join(os.Remove(path), os.Rename(path+".old", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			s := open(t, cfg)
			mustAppend(t, s, entries(ann, 0, 5)...)
			if early, err := os.ReadFile(cfg.Path + "-wal"); err != nil || os.WriteFile(cfg.Path+"-wal.old", early, 0o600) != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, entries(ann, 5, 9)...)
			if err := damage(cfg.Path + "-wal"); err != nil {
				t.Skipf("not run: the system does not let go of an open file: %v", err)
			}
			if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Ping: error %v, want ErrMoved", err)
			}
			if _, err := s.Append(t.Context(), entries(ann, 9, 10)); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Append: error %v, want ErrMoved", err)
			}
			if err := s.SwapView(t.Context(), viewOf(1)); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("SwapView: error %v, want ErrMoved", err)
			}
			if _, err := os.Stat(cfg.Path + "-wal"); err == nil { // killed then: what is gone is told, and the file is sound
				if _, err := opens(t, copyStore(t, cfg)); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), "are gone") {
					t.Errorf("killed then: %v, want what is gone", err)
				}
				return
			}
			if err := os.WriteFile(cfg.Path+"-wal", nil, 0o600); err != nil { // copyStore copies it
				t.Fatal(err)
			}
			if n, err := opens(t, copyStore(t, cfg)); n < 9 || err != nil {
				t.Errorf("killed then: %d entries are there, %v, want 9 that were acknowledged", n, err)
			}
			_ = os.Remove(cfg.Path + "-wal")
		})
	}
}

// TestFileThatIsGoneBesideItsLog: what the log holds is not thrown away where the file is gone, or empty, unless that is asked for.
func TestFileThatIsGoneBesideItsLog(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 20)...)
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove, "emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		left := copyStore(t, cfg)
		whole, err := os.ReadFile(left.Path)
		if err != nil || damage(left.Path) != nil {
			t.Fatal(err)
		}
		for range 2 {
			if n, err := opens(t, left); !errors.Is(err, sqlite.ErrDamaged) {
				t.Errorf("%s: %d entries, %v, want ErrDamaged", name, n, err)
			}
		}
		if err := os.WriteFile(left.Path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := opens(t, left); n != 20 || err != nil {
			t.Errorf("%s and put back: %d entries, %v, want 20", name, n, err)
		}
		gone := copyStore(t, cfg)
		if err := damage(gone.Path); err != nil {
			t.Fatal(err)
		}
		gone.Recover = sqlite.RecoverAccept
		if n, err := opens(t, gone); n != 0 || err != nil {
			t.Errorf("%s and given up: %d entries, %v", name, n, err)
		}
	}
}
