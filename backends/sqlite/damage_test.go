package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/internal/drawn"
	"github.com/contextengine/contextengine/internal/needs"
)

// filled returns a store's file with some entries and a view, closed, and its bytes.
func filled(t *testing.T) (sqlite.Config, []byte, []core.Entry) {
	t.Helper()
	cfg := config(t)
	cfg.Check = sqlite.CheckOpen
	s := open(t, cfg)
	want := append(entries(ann, 0, 80), chats(t, 80, 40)...)
	for i := 0; i < len(want); i += 3 {
		mustAppend(t, s, want[i:min(i+3, len(want))]...)
		mustAppend(t, s, entry(core.SessionID{Agent: "bob", Session: "one"}, i))
	}
	m := message.New(message.User, "changed")
	want[3].Message, want[3].Tokens, want[3].Fingerprint = m, 1, "f"
	if err := s.Update(t.Context(), ann.Scope(), want[3].ID, core.Change{Message: &m, Tokens: 1, Fingerprint: "f"}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutVectors(t.Context(), "m/8", vectorsOf(want[:10], 8)); err != nil {
		t.Fatal(err)
	}
	if err := s.SwapView(t.Context(), viewOf(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, b, want
}

// readAll opens the store and reads everything in it.
func readAll(t *testing.T, cfg sqlite.Config) ([]core.Entry, error) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []core.Entry
	for e, err := range core.All(t.Context(), s, core.Scope{Agent: "ann"}, false) {
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	v, err := s.LoadView(t.Context(), ann)
	if err != nil {
		return nil, err
	}
	if diff := cmp.Diff(viewOf(1), v); diff != "" {
		t.Errorf("the view is wrong, and nobody says so (-want +got):\n%s", diff)
	}
	return out, readDerived(t, s, out)
}

// readDerived reads the changes and vectors of what readAll found.
func readDerived(t *testing.T, s *sqlite.Store, of []core.Entry) error {
	t.Helper()
	told := map[string]bool{}
	for q := (core.ChangeQuery{Agent: "ann", Limit: 50}); ; {
		page, err := s.Changes(t.Context(), q)
		if err != nil {
			return err
		}
		for _, c := range page.Changes {
			told[c.ID] = true
		}
		if !page.More {
			break
		}
		q.After = page.Mark
	}
	if len(told) != len(of) {
		t.Errorf("who follows the changes was told of %d entries of %d, and nobody says so", len(told), len(of))
	}
	page, err := s.ScanVectors(t.Context(), vector.Query{Space: "m/8", Agent: "ann", Limit: 100})
	if err != nil {
		return err
	}
	if len(of) == 0 {
		return nil
	}
	if diff := cmp.Diff(vectorsOf(of[:10], 8), page.Vectors); diff != "" {
		t.Errorf("the vectors are wrong, and nobody says so (-want +got):\n%s", diff)
	}
	return nil
}

// write replaces a file and removes what may stand beside it.
func write(t *testing.T, path string, b []byte) {
	t.Helper()
	for _, tail := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(path + tail); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNoFlippedBitGoesUnnoticed(t *testing.T) {
	needs.NoRace(t) // one goroutine, and long
	t.Parallel()
	cfg, whole, want := filled(t)
	r := drawn.Rand(t)
	noticed := 0
	flips := number("DAMAGE_PLACES", 60)
	for range flips {
		at, bit := r.IntN(len(whole)), r.IntN(8)
		broken := append([]byte{}, whole...)
		broken[at] ^= 1 << bit
		write(t, cfg.Path, broken)
		got, err := readAll(t, cfg)
		if err == nil {
			// Bits that mean nothing may flip: in free space, in counters.
			if diff := differ(want, got); diff != "" {
				t.Errorf("bit %d of byte %d: other entries than before, and no error (-want +got):\n%s", bit, at, diff)
			}
			continue
		}
		noticed++
		if !strings.Contains(err.Error(), cfg.Path) {
			t.Errorf("bit %d of byte %d: the error %q does not name the file", bit, at, err)
		}
	}
	if noticed < flips/20 { // a third of a small file means something: less than a twentieth of 60 happens once in 100 million runs
		t.Errorf("%d of %d flipped bits were noticed, want at least a twentieth", noticed, flips)
	}
}

// TestTableMadeOtherwise damages a letter of how a table was made, with which its rows have no numbers any more.
func TestTableMadeOtherwise(t *testing.T) {
	t.Parallel()
	cfg, whole, _ := filled(t)
	cfg.Check = sqlite.CheckNever
	for _, text := range []string{"id INTEGER PRIMARY", "n INTEGER PRIMARY", "scope INTEGER PRIMARY", "one INTEGER PRIMARY"} {
		found := 0
		for at := 0; ; at++ {
			next := bytes.Index(whole[at:], []byte(text))
			if next < 0 {
				break
			}
			at += next
			broken := bytes.Clone(whole)
			broken[at+strings.Index(text, "INTEGER")] ^= 1
			write(t, cfg.Path, broken)
			if _, err := readAll(t, cfg); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), cfg.Path) {
				t.Errorf("%q at byte %d: %v, want ErrDamaged naming the file", text, at, err)
			}
			found++
		}
		if found == 0 {
			t.Errorf("no table has %q", text)
		}
	}
}

// TestTornFile cuts the file off, or has a part of it never written: zeros, or what another part says.
func TestTornFile(t *testing.T) {
	t.Parallel()
	cfg, whole, want := filled(t)
	r := drawn.Rand(t)
	sizes := []int{1, 50, 100, 1000, 4096, 5000, 8192, len(whole) / 2, len(whole) - 4096, len(whole) - 1}
	for range number("DAMAGE_PLACES", 60) / 4 {
		sizes = append(sizes, r.IntN(len(whole)))
	}
	for _, size := range sizes {
		for _, check := range []string{sqlite.CheckOpen, sqlite.CheckNever} {
			write(t, cfg.Path, whole[:size])
			cfg.Check = check
			got, err := readAll(t, cfg)
			if err == nil && size > len(whole)-4096 && differ(want, got) == "" || size == 0 {
				continue // the page that was cut had nothing in its last bytes
			}
			if !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), cfg.Path) {
				t.Errorf("the first %d of %d bytes, check %s: %v, want ErrDamaged naming the file", size, len(whole), check, err)
			}
		}
	}
	cfg.Check = sqlite.CheckOpen
	for range number("DAMAGE_PLACES", 60) / 2 {
		broken := append([]byte{}, whole...)
		at, n := r.IntN(len(whole)/512)*512, 512<<r.IntN(4)
		part := broken[at:min(at+n, len(broken))]
		clear(part)
		if r.IntN(2) == 0 {
			copy(part, whole[r.IntN(len(whole)/512)*512:])
		}
		write(t, cfg.Path, broken)
		switch got, err := readAll(t, cfg); {
		case err == nil:
			if diff := differ(want, got); diff != "" {
				t.Errorf("%d bytes from %d: other entries than before, and no error (-want +got):\n%s", n, at, diff)
			}
		case !strings.Contains(err.Error(), cfg.Path):
			t.Errorf("%d bytes from %d: the error %q does not name the file", n, at, err)
		}
	}
}

func TestFilesThatAreNoStore(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	write(t, cfg.Path, []byte(strings.Repeat("a letter to a friend\n", 50)))
	if _, err := sqlite.Open(t.Context(), cfg); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("Open of a text = %v, want ErrDamaged naming the file", err)
	}
	if b, _ := os.ReadFile(cfg.Path); !strings.HasPrefix(string(b), "a letter") {
		t.Error("Open changed a file that is no store")
	}
	cfg.Path = t.TempDir()
	if _, err := sqlite.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("Open of a folder = %v, want an error naming it", err)
	}
}

// TestDamagedLog flips bytes in a log that holds many commits, as a crash left it.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	want := entries(ann, 0, 60)
	for i := range want {
		mustAppend(t, s, want[i])
	}
	if err := s.PutVectors(t.Context(), "m/8", vectorsOf(want[:10], 8)); err != nil {
		t.Fatal(err)
	}
	if err := s.SwapView(t.Context(), viewOf(1)); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(cfg.Path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	copied := cfg
	copied.Path = filepath.Join(t.TempDir(), "copy.db")
	put := func(log []byte) {
		write(t, copied.Path, file)
		if err := os.WriteFile(copied.Path+"-wal", log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(log)
	if got, err := readAll(t, copied); err != nil || cmp.Diff(want, got) != "" {
		t.Fatalf("the log as the crash left it: %d entries, %v, want all of %d", len(got), err, len(want))
	}
	for _, at := range []int{0, 9, 20, 30, 33, 40, 50, 60, len(log) / 4, len(log) / 2, len(log) * 3 / 4} {
		broken := append([]byte{}, log...)
		broken[at] ^= 0x40
		put(broken)
		copied.Recover = sqlite.RecoverRefuse
		if s, err := sqlite.Open(t.Context(), copied); !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), copied.Path+"-wal") {
			if err == nil {
				s.Close()
			}
			t.Errorf("byte %d of the log flipped: Open = %v, want ErrDamaged naming the log", at, err)
		}
	}
	copied.Recover = sqlite.RecoverAccept
	s2, err := sqlite.Open(t.Context(), copied)
	if err != nil {
		t.Fatalf("Open that accepts the loss: %v", err)
	}
	defer s2.Close()
	got := all(t, s2, ann.Scope())
	if len(got) == 0 || len(got) >= len(want) || cmp.Diff(want[:len(got)], got) != "" {
		t.Errorf("after the accepted loss there are %d of %d entries, want the first ones", len(got), len(want))
	}
	// A log that was cut off is what a crash leaves.
	put(log[:len(log)-1000])
	copied.Recover = sqlite.RecoverRefuse
	if s3, err := sqlite.Open(t.Context(), copied); err != nil {
		t.Errorf("Open with a log that was cut off: %v", err)
	} else if err := s3.Close(); err != nil {
		t.Error(err)
	}
}
