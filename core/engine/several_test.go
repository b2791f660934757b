package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// TestSeveralEngines: engines that serve one session at the same time lose nothing, store nothing twice, and every call of them succeeds.
func TestSeveralEngines(t *testing.T) {
	store := memory.New()
	id := core.SessionID{Agent: "ada", Session: "shared"}
	var log sharedtest.Log
	var workers []sharedtest.Worker
	for _, name := range []string{"a", "b", "c", "d"} {
		workers = append(workers, sharedtest.Worker{Store: store, Session: id, Name: name, Messages: 200, Log: &log})
	}
	if err := sharedtest.Together(t.Context(), workers...); err != nil {
		t.Error(err)
	}
	sharedtest.Check(t, store, id, log.String())
}
