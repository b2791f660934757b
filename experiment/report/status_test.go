package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestStatusInBrowser opens the report of a running experiment with six arms, one of which has no session yet.
func TestStatusInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: -short")
	}
	path := findBrowser(t)
	config := filepath.Join(t.TempDir(), "live.yaml")
	text := "store: {type: sqlite, path: " + filepath.Join(t.TempDir(), "live.db") + "}\narms:\n"
	for _, arm := range []string{"plain", "a-name-that-says-all-about-its-configuration", "recent", "deep", "wide"} {
		text += "  - {name: " + arm + "}\n"
	}
	text += "  - {name: nobody, agents: [nobody]}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reg := builtin.New()
	cfg, err := reg.Load(registry.File(config))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := reg.Build(t.Context(), cfg, registry.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		id := core.SessionID{Agent: "main", Session: fmt.Sprint("s", n)}
		eng, _, err := instance.Engine(t.Context(), id.Agent, id.Session)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 + n%3 {
			_, err := eng.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, "Which port?")})
			if err == nil {
				_, err = eng.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 2000})
			}
			if err == nil {
				_, err = eng.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.Assistant, fmt.Sprintf("%d.", 9000+n))})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := eng.(engine.Scorer).Score(t.Context(), engine.Outcome{Session: id, Name: "resolved", Value: float64(n % 3 % 2)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := instance.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := reported(t, "experiment", "status", "--config", config)
	examined(t, path, "status", file, 10, []string{"A running experiment with 6 arms", "At a glance", "Resolved", "nobody", "What differs"})
}
