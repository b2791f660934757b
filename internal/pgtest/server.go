package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"crypto/rand"
)

// Server is one PostgreSQL.
type Server struct {
	bin, dir, password, database string
	// as is what runs a command as the server's user.
	as   []string
	port int
	max  int
	dog  *watchdog
}

// DSN returns the address of the server's first database, with the superuser's name and password.
func (s *Server) DSN() string { return s.dsn(s.database) }

func (s *Server) dsn(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", s.password), Host: fmt.Sprintf("127.0.0.1:%d", s.port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Password returns the superuser's password: what must not be found in any text.
func (s *Server) Password() string { return s.password }

// MaxConns returns how many connections a test may have: 1 for PGlite.
func (s *Server) MaxConns() int { return s.max }

// Database makes an empty database for one test and returns its address. Where there is only one database it is that one, and the test
// tells itself apart by a schema of its own.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	if s.max == 1 {
		return s.DSN()
	}
	name := "t" + strings.ToLower(rand.Text())
	s.Exec(tb, s.DSN(), "CREATE DATABASE "+name)
	tb.Cleanup(func() {
		// Where the server is gone the database is too.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.exec(ctx, s.DSN(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			tb.Logf("pgtest: drop database: %v", err)
		}
	})
	return s.dsn(name)
}

// Exec runs a statement, or several with semicolons between them, on a connection of its own.
func (s *Server) Exec(tb testing.TB, dsn, statements string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.exec(ctx, dsn, statements); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Restart stops the server without letting it write anything, as a crash would, and starts it again. Only for servers of Servers.Own.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.ctl("-m", "immediate", "restart"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Halt stops the server as Restart does, and leaves it so.
func (s *Server) Halt(tb testing.TB) {
	tb.Helper()
	if err := s.ctl("-m", "immediate", "stop"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Resume starts a halted server.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	if err := s.ctl("start"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

func (s *Server) stop() {
	if s.dog != nil {
		s.dog.end()
		s.dog = nil
	}
}
