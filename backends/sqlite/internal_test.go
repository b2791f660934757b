package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/packed"
)

// HoldWriteLock takes the write lock of the file until the function it returns is called.
func (s *Store) HoldWriteLock(tb testing.TB) (release func()) {
	tb.Helper()
	tx, err := s.writer.BeginTx(context.Background(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			tb.Error(err)
		}
	}
}

// LookAtIndex reads the index that processes share, as one does that waits for another.
func (s *Store) LookAtIndex(tb testing.TB) {
	tb.Helper()
	if _, err := s.logCopied(); err != nil {
		tb.Error(err)
	}
}

// LookAtLength reads how long the file says it is.
func (s *Store) LookAtLength(tb testing.TB) {
	tb.Helper()
	if _, _, err := s.saidLength(); err != nil {
		tb.Error(err)
	}
}

// TestWriterWaitsWhileOthersWrite: of many processes that write, one may be unlucky many times. As long as the others get on it waits.
func TestWriterWaitsWhileOthersWrite(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Path, cfg.BusyTimeout = filepath.Join(t.TempDir(), "store.db"), 20*time.Millisecond
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	s, other := stores[0], stores[1]
	hold := func() *sql.Tx {
		tx, err := other.writer.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	held, commits := hold(), 0
	err := s.patiently(t.Context(), func() error {
		if commits < 40 {
			if _, err := held.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", commits+1)); err != nil {
				t.Fatal(err)
			}
			if err := held.Commit(); err != nil {
				t.Fatal(err)
			}
			commits++
			held = hold()
		} else if held != nil {
			if err := held.Rollback(); err != nil {
				t.Fatal(err)
			}
			held = nil
		}
		tx, err := s.writer.BeginTx(t.Context(), nil)
		if err != nil {
			return err
		}
		return tx.Rollback()
	})
	if err != nil {
		t.Errorf("after %d commits of another: %v, want to wait for the last", commits, errors.Join(err, held.Rollback()))
	}
}

// ShortTail makes entries go into runs when n wait for it.
func (s *Store) ShortTail(n int64) { s.tail = n }

// openWith opens a store that knows these steps of the schema.
func openWith(t *testing.T, path string, steps []migration) (*Store, error) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Path = path
	s, err := newStore(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.connect(t.Context(), steps); err != nil {
		return nil, s.failed(t.Context(), "open", "", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, nil
}

func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	now := migrations()
	later := append(migrations(), migration{name: "notes", statements: []string{
		"ALTER TABLE entries ADD COLUMN note TEXT", "CREATE TABLE notes (n INTEGER PRIMARY KEY)",
	}})
	broken := append(migrations(), migration{name: "broken", statements: []string{
		"CREATE TABLE half (n INTEGER PRIMARY KEY)", "CREATE TABLE entries (n INTEGER PRIMARY KEY)",
	}})
	old, err := openWith(t, path, now)
	if err != nil {
		t.Fatal(err)
	}
	id := core.SessionID{Agent: "ann", Session: "one"}
	e := core.Entry{ID: "a", Key: "k", Agent: id.Agent, Session: id.Session, Role: message.User, Message: message.New(message.User, "text")}
	if _, err := old.Append(t.Context(), []core.Entry{e}); err != nil {
		t.Fatal(err)
	}
	want, err := old.Get(t.Context(), id.Scope(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openWith(t, path, broken); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migrate to version %d (broken)", len(broken))) {
		t.Errorf("a migration that fails = %v, want an error naming it", err)
	}
	s, err := openWith(t, path, later)
	if err != nil {
		t.Fatalf("migrate the old file: %v", err)
	}
	got, err := s.Get(t.Context(), id.Scope(), []string{"a"})
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("after the migration: %v, %v, want the entry as it was", got, err)
	}
	var half int
	if err := s.writer.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").Scan(&half); err != nil || half != 0 {
		t.Errorf("the failed migration left %d tables, %v", half, err)
	}
	if d, err := s.Details(t.Context()); err != nil || d.Schema != len(later) {
		t.Errorf("the schema has version %d, %v, want %d", d.Schema, err, len(later))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = openWith(t, path, now)
	for _, part := range []string{path, fmt.Sprint("version ", len(later)), fmt.Sprint("up to ", len(now))} {
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), part) {
			t.Errorf("Open of a newer file = %v, want ErrSchema with %q", err, part)
		}
	}
}

// TestFirstSchema opens a file as the first version of the schema left it.
func TestFirstSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := openWith(t, path, migrations())
	if err != nil {
		t.Fatal(err)
	}
	const each = 200 // more than fit into a tail
	for n := range each {
		for _, agent := range []string{"ann", "bob"} {
			e := core.Entry{ID: fmt.Sprint(agent, n), Key: "k" + fmt.Sprint(n), Agent: agent, Session: "one", Seq: int64(n), Message: message.New(message.User, "text")}
			if _, err := s.Append(t.Context(), []core.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, statement := range []string{"DROP TABLE identity", "DROP TABLE runs", "DROP TABLE changes", "DROP TABLE spaces", "DROP TABLE vectors",
		"DROP INDEX entries_types", "DROP INDEX entries_special",
		"DELETE FROM schema_version WHERE version > 1"} {
		if _, err := s.writer.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openWith(t, path, migrations()); err != nil {
		t.Fatalf("Open of the first schema: %v", err)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	for _, agent := range []string{"ann", "bob"} {
		page, err := s.Changes(t.Context(), core.ChangeQuery{Agent: agent, Limit: core.MaxPage})
		if err != nil || len(page.Changes) != each || page.More {
			t.Errorf("Changes of %s = %d, more %t, %v, want the %d entries", agent, len(page.Changes), page.More, err, each)
		}
	}
}

func TestForeignDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE recipes (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openWith(t, path, migrations()); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of another program's database = %v, want ErrSchema naming it", err)
	}
}

// FuzzUnpack feeds the decoders of what is in the file.
func FuzzUnpack(f *testing.F) {
	m := message.New(message.User, "text")
	m.Raw = []byte(`{"role":"user","content":"text"}`)
	m.Parts[0].Raw = []byte(`"content":"text"`)
	f.Add(packed.Message(&m, message.Message{}))
	m.Format = message.FormatOpenAI
	f.Add(packed.Message(&m, message.Message{Role: m.Role}))
	f.Add(packed.Meta(map[string]string{"a": "b"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if body, err := packed.Unseal(b); err == nil {
			b = body
		}
		_, _ = packed.ReadMeta(b)
		m, err := packed.ReadMessage(b, message.Message{})
		if err != nil {
			return
		}
		again, err := packed.ReadMessage(packed.Message(&m, message.Message{}), message.Message{})
		if err != nil || !cmp.Equal(m, again) {
			t.Errorf("packed again: %v, differs: %s", err, cmp.Diff(m, again))
		}
	})
}

// TestPrunedChanges checks that whoever knows less than what was pruned begins anew, and nobody else.
func TestPrunedChanges(t *testing.T) {
	s, err := openWith(t, filepath.Join(t.TempDir(), "store.db"), migrations())
	if err != nil {
		t.Fatal(err)
	}
	add := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			e := core.Entry{ID: fmt.Sprint("e", n), Key: fmt.Sprint("k", n), Agent: "ann", Session: "one", Seq: int64(n), Message: message.New(message.User, "text")}
			if _, err := s.Append(t.Context(), []core.Entry{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	changes := func(after core.Mark, limit int) (core.ChangePage, error) {
		return s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: after, Limit: limit})
	}
	add(0, 20)
	early, err := changes("", 5)
	if err != nil {
		t.Fatal(err)
	}
	for n := 3; n < 13; n++ {
		if _, err := s.Delete(t.Context(), core.Scope{Agent: "ann"}, []string{fmt.Sprint("e", n)}); err != nil {
			t.Fatal(err)
		}
	}
	late, err := changes("", 100)
	if err != nil || len(late.Changes) != 20 {
		t.Fatalf("Changes = %d, %v, want the 10 entries that are there and 10 that are gone", len(late.Changes), err)
	}
	if err := s.prune(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if _, err := changes(early.Mark, 5); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Changes after what was pruned since = %v, want ErrNotFound", err)
	}
	if page, err := changes(late.Mark, 5); err != nil || len(page.Changes) > 0 {
		t.Errorf("Changes after all of it = %+v, %v, want nothing", page, err)
	}
	// Who begins now reads in pages that lie in front of the wall.
	page, told := core.ChangePage{}, map[string]bool{}
	for page.More = true; page.More; {
		if page, err = changes(page.Mark, 2); err != nil {
			t.Fatalf("Changes of one who began behind the wall: %v", err)
		}
		for _, c := range page.Changes {
			told[c.ID] = c.Entry != nil
		}
	}
	for n := range 20 {
		if got, want := told[fmt.Sprint("e", n)], n < 3 || n >= 13; got != want {
			t.Errorf("entry %d is told to be there: %t, want %t", n, got, want)
		}
	}
	if err := s.prune(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if page, err := changes(page.Mark, 5); err != nil || len(page.Changes) > 0 {
		t.Errorf("Changes after another wall = %+v, %v, want nothing", page, err)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// FuzzMark feeds the decoders of what callers keep.
func FuzzMark(f *testing.F) {
	f.Add("1.2.0.3.e1")
	f.Add("f.1.2.3")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parsePlace(core.Mark(text)); ok {
			if again, ok := parsePlace(p.mark()); !ok || again != p {
				t.Errorf("%q is %+v and then %+v", text, p, again)
			}
		}
		if m, err := parseMark(core.Cursor(text), false); err == nil {
			if again, err := parseMark(m.cursor(false), false); err != nil || again != m {
				t.Errorf("%q is %+v and then %+v", text, m, again)
			}
		}
	})
}

// VerifiedOnce has the goroutine that verifies large files begin at once, waits until it is through, and returns what it found.
func (s *Store) VerifiedOnce() error {
	s.watch.stop()
	if s.watch.cancel == nil {
		return errors.New("nobody verifies the file")
	}
	s.watch.first = time.Millisecond
	s.watch.again = time.Hour
	s.watch.size, s.watch.rounds = 0, 0
	s.startWatch()
	for {
		s.watch.mu.Lock()
		rounds, err := s.watch.rounds, s.watch.err
		s.watch.mu.Unlock()
		if rounds > 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// TestWhenAFileIsVerified: one is, when it was not, has doubled, or was so long ago.
func TestWhenAFileIsVerified(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		size, was int64
		ago       time.Duration
		due       bool
	}{
		{size: 4096, due: true}, {size: 8191, was: 4096, ago: time.Hour}, {size: 8192, was: 4096, ago: time.Hour, due: true},
		{size: 11 << 20, was: 6 << 20, ago: time.Hour}, {size: 12 << 20, was: 6 << 20, ago: time.Hour, due: true}, {size: 6 << 20, was: 6 << 20, ago: verifyAgain, due: true},
	} {
		w := watch{again: verifyAgain, size: c.was, at: now.Add(-c.ago)}
		if got := w.due(c.size, now); got != c.due {
			t.Errorf("%d bytes, %d bytes %s ago: due %v, want %v", c.size, c.was, c.ago, got, c.due)
		}
	}
}

// TestEndIsWaitedFor: while another process copies the write-ahead log into a file that was made smaller, the file is shorter than it says for a while. That is no
// damage, unless it stays so.
func TestEndIsWaitedFor(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if done, err := s.checkpoint(t.Context()); !done || err != nil { // now nobody looks into the log
		t.Fatal(done, err)
	}
	_, said, err := s.saidLength()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	s.length.Store(said + 1<<20) // before it was made smaller
	cut := func() int64 {
		t.Helper()
		if err := os.Truncate(cfg.Path, said/2); err != nil {
			t.Skipf("not run: the system does not cut off an open file: %v", err)
		}
		return said / 2
	}
	waits := 0
	s.pause = func(time.Duration) {
		if waits++; waits == 3 {
			if err := os.WriteFile(cfg.Path, whole, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.notCut(cut()); err != nil || waits != 3 {
		t.Errorf("error %v after %d waits, want none after 3", err, waits)
	}
	s.length.Store(said + 1<<20)
	var waited time.Duration
	s.pause = func(d time.Duration) { waited += d }
	if err := s.notCut(cut()); !errors.Is(err, ErrDamaged) || waited > 4*maxSettle {
		t.Errorf("error %v after %v, want ErrDamaged", err, waited)
	}
	if err := os.WriteFile(cfg.Path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
