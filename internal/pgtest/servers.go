package pgtest

import (
	"errors"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/internal/needs"
)

// The environment variables that are read.
const (
	// EnvBin names the folder of PostgreSQL's programs: initdb, pg_ctl, postgres.
	EnvBin = "CONTEXTENGINE_POSTGRES_BIN"
	// EnvPGlite names the folder that holds the node_modules of PGlite.
	EnvPGlite = "CONTEXTENGINE_PGLITE"
)

// Servers are the servers of one test binary. The zero value is ready; it is safe for concurrent use.
type Servers struct {
	plain, vector shared
	// one is held by the test that uses PGlite: it serves one connection well.
	one sync.Mutex
}

// shared is a server that is started once.
type shared struct {
	mu     sync.Mutex
	server *Server
	err    error
	tried  bool
}

// Main runs the tests and stops the servers. It returns the code to exit with.
func (s *Servers) Main(m interface{ Run() int }) int {
	defer s.Stop()
	return m.Run()
}

// Stop stops the servers that were started.
func (s *Servers) Stop() {
	for _, one := range []*shared{&s.plain, &s.vector} {
		one.mu.Lock()
		if one.server != nil {
			one.server.stop()
			one.server = nil
		}
		one.mu.Unlock()
	}
}

// Plain returns the PostgreSQL without extensions that all tests share.
func (s *Servers) Plain(tb testing.TB) *Server {
	tb.Helper()
	return s.plain.get(tb, startPlain)
}

// Vector returns the PostgreSQL with the extension "vector". The test has it for itself until it ends.
func (s *Servers) Vector(tb testing.TB) *Server {
	tb.Helper()
	server := s.vector.get(tb, startVector)
	s.one.Lock()
	tb.Cleanup(s.one.Unlock)
	return server
}

// Own returns a PostgreSQL without extensions for one test, which may stop and restart it.
func (s *Servers) Own(tb testing.TB) *Server {
	tb.Helper()
	var one shared
	server := one.get(tb, startPlain)
	tb.Cleanup(server.stop)
	return server
}

func (one *shared) get(tb testing.TB, start func() (*Server, error)) *Server {
	tb.Helper()
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.tried {
		one.server, one.err = start()
		one.tried = true
	}
	if one.err != nil {
		if _, absent := errors.AsType[absentError](one.err); absent {
			needs.Missing(tb, one.err.Error())
		}
		tb.Fatalf("pgtest: %v", one.err)
	}
	return one.server
}

// absentError says what is not installed.
type absentError string

func (e absentError) Error() string { return string(e) }
