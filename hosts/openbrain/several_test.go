package openbrain_test

import (
	"net/http/httptest"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/sharedtest"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// TestSeveralClientsOfOneSession: engines with a client of their own serve one session of a server at the same time. A position exists once, because the server
// keeps them.
func TestSeveralClientsOfOneSession(t *testing.T) {
	t.Parallel()
	store := memory.New()
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Attach(store); err != nil {
		t.Fatal(err)
	}
	cfg := openbrain.DefaultConfig()
	cfg.Keys = []openbrain.Key{key("test", adminKey, "*")}
	s, err := openbrain.New(cfg, store, index)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s.Handler())
	t.Cleanup(func() { ts.Close(); _ = s.Close() })
	id := core.SessionID{Agent: "ann", Session: "shared"}
	var log sharedtest.Log
	var workers []sharedtest.Worker
	for _, name := range []string{"a", "b", "c"} {
		workers = append(workers, sharedtest.Worker{Store: connect(t, ts.URL, adminKey), Session: id, Name: name, Messages: 25, Log: &log})
	}
	if err := sharedtest.Together(t.Context(), workers...); err != nil {
		t.Error(err)
	}
	last := connect(t, ts.URL, adminKey)
	sharedtest.Check(t, last, id, log.String())
}
