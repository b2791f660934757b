package outbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// TestSeveralProcessesOfOneSession: processes that are killed serve one session of one outbox. The local store decides who has a position; what is
// delivered is what it holds.
func TestSeveralProcessesOfOneSession(t *testing.T) {
	needs.NoRace(t) // the detector looks into each process alone
	id := core.SessionID{Agent: "ann", Session: "shared"}
	reopen := func(tb testing.TB) core.Store {
		tb.Helper()
		return openBoth(tb, os.Getenv(envPath), os.Getenv(envURL), os.Getenv(envKey))
	}
	if sharedtest.Child(t, id, reopen) {
		return
	}
	for range sharedtest.Number("SEVERAL_RUNS", 1) {
		server := openbraintest.New(t)
		path := filepath.Join(t.TempDir(), "store.db")
		log := sharedtest.Processes(t, envPath+"="+path, envURL+"="+server.URL(), envKey+"="+server.Key())
		s := openBoth(t, path, server.URL(), server.Key())
		sharedtest.Check(t, s, id, log)
		mustDrain(t, s)
		sharedtest.Same(t, s, openServer(t, server), id)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
