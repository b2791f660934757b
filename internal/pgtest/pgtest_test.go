package pgtest_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/internal/pgtest"
)

func TestPlain(t *testing.T) {
	var servers pgtest.Servers
	t.Cleanup(servers.Stop)
	a, b := servers.Plain(t), servers.Plain(t)
	if a != b {
		t.Error("Plain started two servers")
	}
	first, second := a.Database(t), a.Database(t)
	a.Exec(t, first, "CREATE TABLE here (n int); INSERT INTO here VALUES (7)")
	if n := number(t, second, "SELECT count(*) FROM pg_class WHERE relname = 'here'"); n != 0 {
		t.Errorf("a table shows in another test's database")
	}
	a.Restart(t)
	if n := number(t, first, "SELECT n FROM here"); n != 7 {
		t.Errorf("after a restart the table holds %d, want 7", n)
	}
}

func TestVector(t *testing.T) {
	var servers pgtest.Servers
	t.Cleanup(servers.Stop)
	s := servers.Vector(t)
	s.Exec(t, s.Database(t), "CREATE EXTENSION IF NOT EXISTS vector")
	if n := number(t, s.DSN(), "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"); n != 1 {
		t.Errorf("%d extensions named vector, want 1", n)
	}
}

func TestStopRemovesEverything(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "pgtest") //nolint:usetesting // the server's user must be able to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	var servers pgtest.Servers
	t.Run("own", func(t *testing.T) { servers.Own(t) })
	servers.Plain(t)
	servers.Stop()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("%d folders are left, error %v, want none", len(left), err)
	}
}

func number(tb testing.TB, dsn, query string) (n int) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	if err := conn.QueryRow(tb.Context(), query).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}
