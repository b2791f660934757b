package postgres_test

import (
	"errors"
	"os"
	"testing"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// TestSeveralEngines: engines with a pool of their own serve one session.
func TestSeveralEngines(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	cfg.MaxConns = 2
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var log sharedtest.Log
	var workers []sharedtest.Worker
	for _, name := range []string{"a", "b", "c"} {
		workers = append(workers, sharedtest.Worker{Store: open(t, cfg), Session: id, Name: name, Messages: 60, Log: &log})
	}
	if err := sharedtest.Together(t.Context(), workers...); err != nil {
		t.Error(err)
	}
	sharedtest.Check(t, open(t, cfg), id, log.String())
}

// TestTiesOfOlderData: entries that share a position are read, take no third one, and are mended when the session is used.
func TestTiesOfOlderData(t *testing.T) {
	t.Parallel()
	server := servers.Plain(t)
	dsn := server.Database(t)
	cfg := config(t, server, dsn)
	s := open(t, cfg)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var log sharedtest.Log
	if err := sharedtest.Together(t.Context(), sharedtest.Worker{Store: s, Session: id, Name: "a", Messages: 9, Log: &log}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, dsn, "UPDATE "+cfg.Schema+".entries SET seq = 3 WHERE seq IN (4, 8)")
	late := entry(id, 3)
	if _, err := s.Append(t.Context(), []core.Entry{late}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Append at a position that two have = %v, want ErrConflict", err)
	}
	v, err := s.LoadView(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	v.Version++
	v.Path = []core.Span{{From: 0, To: 4}, {From: 5, To: 8}}
	if err := s.SwapView(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	sharedtest.Check(t, s, id, log.String())
}

// envDSN and envSchema tell a child process where the data is.
const (
	envDSN    = "SEVERAL_TEST_DSN"
	envSchema = "SEVERAL_TEST_SCHEMA"
)

// TestSeveralProcesses: processes that are killed serve one session.
func TestSeveralProcesses(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	id := core.SessionID{Agent: "ann", Session: "shared"}
	reopen := func(tb testing.TB) core.Store {
		tb.Helper()
		cfg := postgres.DefaultConfig()
		cfg.DSN, cfg.Schema, cfg.MaxConns = os.Getenv(envDSN), os.Getenv(envSchema), 2
		return open(tb, cfg)
	}
	if sharedtest.Child(t, id, reopen) {
		return
	}
	for range sharedtest.Number("SEVERAL_RUNS", 1) {
		cfg := fresh(t)
		s := open(t, cfg)
		log := sharedtest.Processes(t, envDSN+"="+cfg.DSN, envSchema+"="+cfg.Schema)
		sharedtest.Check(t, s, id, log)
	}
}
