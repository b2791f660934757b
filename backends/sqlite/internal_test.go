package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
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
	if _, err := openWith(t, path, broken); err == nil || !strings.Contains(err.Error(), "migrate to version 2 (broken)") {
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
	if st, err := s.Stats(t.Context()); err != nil || st.Schema != 2 {
		t.Errorf("the schema has version %d, %v, want 2", st.Schema, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = openWith(t, path, now)
	for _, part := range []string{path, "version 2", "up to 1"} {
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), part) {
			t.Errorf("Open of a newer file = %v, want ErrSchema with %q", err, part)
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
	f.Add(packMessage(&m, message.Message{}))
	m.Format = message.FormatOpenAI
	f.Add(packMessage(&m, message.Message{Role: m.Role}))
	f.Add(packMeta(map[string]string{"a": "b"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if body, err := unseal(b); err == nil {
			b = body
		}
		_, _ = unpackMeta(b)
		_ = unpackExact(b, &core.Entry{})
		m, err := unpackMessage(b, message.Message{})
		if err != nil {
			return
		}
		again, err := unpackMessage(packMessage(&m, message.Message{}), message.Message{})
		if err != nil || !cmp.Equal(m, again) {
			t.Errorf("packed again: %v, differs: %s", err, cmp.Diff(m, again))
		}
	})
}
