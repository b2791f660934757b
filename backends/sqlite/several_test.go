package sqlite_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// TestSeveralEngines: engines with a handle of their own serve one session of one file.
func TestSeveralEngines(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var log sharedtest.Log
	var workers []sharedtest.Worker
	for _, name := range []string{"a", "b", "c"} {
		workers = append(workers, sharedtest.Worker{Store: open(t, cfg), Session: id, Name: name, Messages: 120, Log: &log})
	}
	if err := sharedtest.Together(t.Context(), workers...); err != nil {
		t.Error(err)
	}
	sharedtest.Check(t, open(t, cfg), id, log.String())
}

// TestForgetOfAnotherHandle: what one handle erased is not shown through another one, in one cheap read.
func TestForgetOfAnotherHandle(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	here, there := newEngine(t, open(t, cfg)), newEngine(t, open(t, cfg))
	res, err := here.IngestBatch(t.Context(), core.IngestBatchRequest{Session: ann, Messages: talk(6)})
	if err != nil {
		t.Fatal(err)
	}
	shows := func(want bool) {
		t.Helper()
		got, err := there.Assemble(t.Context(), core.AssembleRequest{Session: ann, Budget: 900, PromptMode: core.PromptNone})
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(got.Messages, func(m message.Message) bool { return strings.Contains(m.Text(), "message2 ") })
		if has != want {
			t.Errorf("the other handle shows the message: %t, want %t", has, want)
		}
	}
	shows(true)
	if _, err := here.Forget(t.Context(), engine.ForgetRequest{Scope: ann.Scope(), Entries: res.IDs[2:3]}); err != nil {
		t.Fatal(err)
	}
	shows(false)
}

// TestSeveralProcessesOfOneSession: processes that are killed serve one session of one file.
func TestSeveralProcessesOfOneSession(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	id := core.SessionID{Agent: "ann", Session: "shared"}
	reopen := func(tb testing.TB) core.Store {
		tb.Helper()
		cfg := sqlite.DefaultConfig()
		cfg.Path, cfg.Check = os.Getenv(envPath), sqlite.CheckNever
		return open(tb, cfg)
	}
	if sharedtest.Child(t, id, reopen) {
		return
	}
	for range sharedtest.Number("SEVERAL_RUNS", 1) {
		cfg := config(t)
		log := sharedtest.Processes(t, envPath+"="+cfg.Path)
		s := open(t, cfg)
		sharedtest.Check(t, s, id, log)
		if err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
