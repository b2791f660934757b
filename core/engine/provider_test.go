package engine_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// TestUnknownProviderIsSaidOnce: a provider whose turn rules are not known is said once in the log and once in the warnings of each session, with what to do, and one whose
// model tells is not.
func TestUnknownProviderIsSaidOnce(t *testing.T) {
	var log bytes.Buffer
	parts := engine.Parts{Store: memory.New(), Compactor: &halver{}, Counter: wordCounter}
	e, err := engine.New(parts, engine.DefaultConfig(), engine.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"s", "another"} {
		for i, s := range []core.RuntimeSettings{{}, {Provider: "mistral"}, {Provider: "house", Model: "claude-x"}, {Provider: "house", Model: "brain-7"}, {Provider: "house", Model: "brain-7"}} {
			req := core.AssembleRequest{Session: core.SessionID{Agent: "main", Session: session}, Budget: 1000, Settings: s}
			res, err := e.Assemble(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if warned := len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], `provider "house": `) && strings.Contains(res.Warnings[0], "history.provider"); warned != (i == 3) || len(res.Warnings) > 1 {
				t.Errorf("%s, call %d: warnings %q", session, i, res.Warnings)
			}
		}
	}
	if got := log.String(); strings.Count(got, "history.provider") != 1 || !strings.Contains(got, "provider=house") {
		t.Errorf("logged %q, want one line that names the provider and the key", got)
	}
}
