package sqlite_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
)

const pageSize = 4096

// leaves returns the pages of a database that are leaves of indexes.
func leaves(file []byte) []int {
	var out []int
	for at := pageSize; at+pageSize <= len(file); at += pageSize {
		if file[at] == 0x0a {
			out = append(out, at)
		}
	}
	return out
}

// TestShorterIndexIsAnError: one flipped bit in the number of entries of an index's page, which SQLite takes as it stands. Whatever a whole scan then answers
// without an error is everything.
func TestShorterIndexIsAnError(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	cfg := config(t)
	s := open(t, cfg)
	const many = 400
	for from := 0; from < many; from += 100 {
		mustAppend(t, s, entries(ann, from, from+100)...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Check = sqlite.CheckNever
	noticed := 0
	for _, at := range leaves(sound) {
		for bit := range 8 {
			file := append([]byte(nil), sound...)
			file[at+4] ^= 1 << bit
			if err := os.WriteFile(cfg.Path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, scope := range []core.Scope{ann.Scope(), {Agent: ann.Agent}} {
				s, err := sqlite.Open(t.Context(), cfg)
				if err != nil {
					noticed++
					continue
				}
				n := 0
				for _, err = range core.All(t.Context(), s, scope, false) {
					if err != nil {
						break
					}
					n++
				}
				switch {
				case errors.Is(err, sqlite.ErrDamaged):
					noticed++
				case err != nil:
					t.Errorf("page %d, bit %d: error %v, want ErrDamaged", at/pageSize, bit, err)
				case n != many:
					t.Errorf("page %d, bit %d: %d of %d entries and no error", at/pageSize, bit, n, many)
				}
				if err := s.Close(); err != nil && !errors.Is(err, sqlite.ErrDamaged) {
					t.Error(err)
				}
			}
		}
	}
	if noticed == 0 {
		t.Error("no flipped bit was noticed: the test damages nothing")
	}
}

// TestMovedFileTakesNothing: what would be written into a file that is no longer there is not acknowledged; what is there again is written to.
func TestMovedFileTakesNothing(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"removed": os.Remove,
		"replaced": func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.WriteFile(path, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			s := open(t, cfg)
			mustAppend(t, s, entry(ann, 1))
			if err := damage(cfg.Path); err != nil {
				t.Skipf("not run: the system does not let go of an open file: %v", err)
			}
			if _, err := s.Append(t.Context(), entries(ann, 2, 3)); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Append: error %v, want ErrMoved", err)
			}
			if err := s.SwapView(t.Context(), viewOf(1)); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("SwapView: error %v, want ErrMoved", err)
			}
			if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 1).ID}); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Delete: error %v, want ErrMoved", err)
			}
			if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrMoved) {
				t.Errorf("Ping: error %v, want ErrMoved", err)
			}
			if name == "removed" {
				if err := s.Close(); !errors.Is(err, sqlite.ErrMoved) {
					t.Errorf("Close: error %v, want ErrMoved", err)
				}
				return
			}
			if err := os.Rename(cfg.Path+".old", cfg.Path); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, entry(ann, 3))
		})
	}
}

// TestFileThatGrowsIsVerified: one that was small as it was opened is read whole once it is large, and again when it is twice as large.
func TestFileThatGrowsIsVerified(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	for from := 0; from < 20_000; from += 1000 {
		mustAppend(t, s, entries(ann, from, from+1000)...)
	}
	if err := s.Scrub(t.Context()); err != nil { // the log goes into the file
		t.Fatal(err)
	}
	info, err := os.Stat(cfg.Path)
	if err != nil || info.Size() <= 4<<20 {
		t.Fatalf("the file has %d bytes, %v, want one that is not read as it is opened", info.Size(), err)
	}
	if err := s.VerifiedOnce(); err != nil {
		t.Errorf("a sound file: %v", err)
	}
	page := make([]byte, 200)
	f, err := os.OpenFile(cfg.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range leaves(file) {
		if _, err := f.WriteAt(page, int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.VerifiedOnce(); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("damaged while it was open: %v, want ErrDamaged", err)
	}
	if _, err := s.Append(t.Context(), entries(ann, 30_000, 30_001)); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("Append: %v, want ErrDamaged", err)
	}
}

// TestCutFileTakesNothing: a file that is cut off under a process that has it open is noticed at the next write, although what is read may still be in memory. One
// that another process made smaller takes what comes.
func TestCutFileTakesNothing(t *testing.T) {
	cfg := config(t)
	s := openLong(t, cfg)

	before := sizeOfFile(t, cfg.Path)
	other := madeSmaller(t, cfg, entries(ann, 1, 300))
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, entry(ann, 402))
	if now := sizeOfFile(t, cfg.Path); now >= before {
		t.Fatalf("the file had %d bytes and has %d: vacuum made it no smaller", before, now)
	}

	if err := os.Truncate(cfg.Path, sizeOfFile(t, cfg.Path)/8192*4096+100); err != nil {
		t.Skipf("not run: the system does not cut off an open file: %v", err)
	}
	if _, err := s.Append(t.Context(), entries(ann, 403, 404)); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("Append: error %v, want ErrDamaged", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("Ping: error %v, want ErrDamaged", err)
	}
}

// TestHalfACheckpointTakesWhatComes: a process that was killed while it copied the write-ahead log into the file leaves a file that is shorter than it says, and the rest in
// the log. For one that has the file open, and knew it when it was longer, nothing is lost and nothing is cut off.
func TestHalfACheckpointTakesWhatComes(t *testing.T) {
	cfg := config(t)
	s := openLong(t, cfg)
	known := sizeOfFile(t, cfg.Path)

	other := madeSmaller(t, cfg, entries(ann, 1, 400))
	mustAppend(t, other, entries(ann, 500, 600)...)
	page1, pages := firstPageInLog(t, cfg.Path+"-wal")
	file, err := os.OpenFile(cfg.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(page1, 0); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if now, says := sizeOfFile(t, cfg.Path), int64(pages)*int64(len(page1)); now >= known || now >= says {
		t.Fatalf("the file had %d bytes, has %d and says %d: nothing is tested", known, now, says)
	}
	mustAppend(t, s, entry(ann, 402))
	for _, st := range []*sqlite.Store{s, other} {
		n := 0
		for _, err := range core.All(t.Context(), st, ann.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 102 {
			t.Errorf("%d entries, want 102", n)
		}
	}
}

// firstPageInLog returns the file's first page as the newest commit in a write-ahead log has it, and how many pages the file has then.
func firstPageInLog(t *testing.T, name string) (page []byte, pages uint32) {
	t.Helper()
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const header, frame = 32, 24
	size := int(binary.BigEndian.Uint32(log[8:]))
	for at := header; at+frame+size <= len(log) && bytes.Equal(log[at+8:at+16], log[16:24]); at += frame + size {
		if binary.BigEndian.Uint32(log[at:]) == 1 {
			page = log[at+frame : at+frame+size]
			pages = binary.BigEndian.Uint32(page[28:])
		}
	}
	if page == nil {
		t.Fatal("the log does not hold the first page")
	}
	return page, pages
}

// openLong opens a file of 399 entries, nothing of which is in the log, and adds one.
func openLong(t *testing.T, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 1, 400)...)
	if err := s.Close(); err != nil { // now all is in the file
		t.Fatal(err)
	}
	s = open(t, cfg)
	mustAppend(t, s, entry(ann, 401))
	return s
}

// madeSmaller is another store over the file, which deletes entries and gives their room back.
func madeSmaller(t *testing.T, cfg sqlite.Config, gone []core.Entry) *sqlite.Store {
	t.Helper()
	s := open(t, cfg)
	var ids []string
	for _, e := range gone {
		ids = append(ids, e.ID)
	}
	if _, err := s.Delete(t.Context(), ann.Scope(), ids); err != nil {
		t.Fatal(err)
	}
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestLargeFilesAreVerifiedInTheBackground: damage in a file that is not read whole as it is opened is found a while later. From then on nothing is written, and
// what can be read is read.
func TestLargeFilesAreVerifiedInTheBackground(t *testing.T) {
	cfg := config(t)
	cfg.Path = filepath.Join(t.TempDir(), "large.db")
	s := open(t, cfg)
	for from := 0; from < 18_000; from += 1000 {
		mustAppend(t, s, entries(ann, from, from+1000)...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(file) <= 4<<20 {
		t.Fatalf("the file has %d bytes, want one that is not read as it is opened", len(file))
	}
	for _, damaged := range []bool{false, true} {
		if damaged {
			pages := leaves(file)
			at := pages[len(pages)/2]
			file[at+4] /= 2
			if err := os.WriteFile(cfg.Path, file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, cfg)
		if err := s.VerifiedOnce(); errors.Is(err, sqlite.ErrDamaged) != damaged || !damaged && err != nil {
			t.Errorf("damaged %v: found %v", damaged, err)
		}
		if err := s.Ping(t.Context()); errors.Is(err, sqlite.ErrDamaged) != damaged {
			t.Errorf("damaged %v: Ping: %v", damaged, err)
		}
		if _, err := s.Append(t.Context(), entries(ann, 20_000, 20_001)); errors.Is(err, sqlite.ErrDamaged) != damaged || !damaged && err != nil {
			t.Errorf("damaged %v: Append: %v", damaged, err)
		}
		if got, err := s.Get(t.Context(), ann.Scope(), []string{entry(ann, 3).ID}); err != nil || len(got) != 1 {
			t.Errorf("damaged %v: Get: %v, %v", damaged, got, err)
		}
		_ = s.Close()
	}
}
