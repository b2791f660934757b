package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/openbraintest"
	"github.com/contextengine/contextengine/registry/builtin"
)

// connected returns a client of a sidecar with a configuration, before its first call.
func connected(t *testing.T, config string) *rpc.Client {
	t.Helper()
	c, err := rpc.Dial(t.Context(), sidecar(t, write(t, "engine.yaml", config)), rpc.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// turns stores as many turns in a session, and returns the prompt that follows.
func turns(t *testing.T, c *rpc.Client, session core.SessionID, n int) []json.RawMessage {
	t.Helper()
	for i := range n {
		turn := []json.RawMessage{
			json.RawMessage(fmt.Sprintf(`{"role":"user","content":"question %d"}`, i)), json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, i)),
		}
		if _, err := c.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: session, AdvancementKey: fmt.Sprint(i), Messages: turn}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: session, Budget: 8000, Prompt: "Go on."})
	if err != nil {
		t.Fatal(err)
	}
	return res.Messages
}

// TestServeGoesByTheHostsFactory: what a host knows about an agent says where its files lie, those of arms and of its own configuration too.
func TestServeGoesByTheHostsFactory(t *testing.T) {
	c := connected(t, `engine: composed
store: {type: sqlite, path: history/all.db}
retriever: recent
agents: {own: {store: {path: own.db}}}
arms: [{name: a, agents: [armed], override: {store: {type: sqlite, path: arm.db}}}]
`)
	base := t.TempDir()
	if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "openai", Factory: &rpc.Facts{AgentDir: base}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(base, "history/all.db")); err != nil {
		t.Errorf("the engine that is described: %v", err)
	}
	for agent, file := range map[string]string{"main": "history/all.db", "own": "own.db", "armed": "arm.db"} {
		folder := t.TempDir()
		if _, err := c.Factory(t.Context(), rpc.FactoryParams{Agent: agent, Facts: rpc.Facts{AgentDir: folder, WorkspaceDir: t.TempDir()}}); err != nil {
			t.Fatal(err)
		}
		turns(t, c, core.SessionID{Agent: agent, Session: "agent:" + agent + ":main"}, 1)
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Errorf("%s: %v", agent, err)
		}
	}
	_, err := c.Factory(t.Context(), rpc.FactoryParams{Agent: "main", Facts: rpc.Facts{AgentDir: "agents/main"}})
	if err == nil || !strings.Contains(err.Error(), "agentDir: must be an absolute path") {
		t.Errorf("a relative folder: %v", err)
	}
	if _, err := c.Factory(t.Context(), rpc.FactoryParams{}); err == nil || !strings.Contains(err.Error(), "agent") {
		t.Errorf("no agent: %v", err)
	}
}

// TestServeGoesByTheHostsLimits: what the host's own section of channels limits is limited, unless the configuration says otherwise. What is malformed is named.
func TestServeGoesByTheHostsLimits(t *testing.T) {
	c := connected(t, `engine: composed
store: memory
retriever: recent
recall: {share: 0}
history: {limits: {channels: {telegram: {dms: {bob: {historyLimit: 0}}}}}}
`)
	if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "openai"}); err != nil {
		t.Fatal(err)
	}
	tell := func(channels map[string]any) []string {
		t.Helper()
		res, err := c.Factory(t.Context(), rpc.FactoryParams{Agent: "main", Facts: rpc.Facts{Channels: channels}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Ignored
	}
	ignored := tell(map[string]any{"telegram": map[string]any{"dmHistoryLimit": 2, "historyLimit": []any{}, "dms": map[string]any{"bob": map[string]any{"historyLimit": 1}}}, "slack": 3})
	slices.Sort(ignored)
	if want := []string{"channels.slack: want an object, found a number", "channels.telegram.historyLimit: want an integer, found a list"}; !slices.Equal(ignored, want) {
		t.Errorf("ignored %q, want %q", ignored, want)
	}
	session := func(kind, peer string) core.SessionID {
		return core.SessionID{Agent: "main", Session: "agent:main:telegram:" + kind + ":" + peer}
	}
	for _, s := range []struct {
		session core.SessionID
		most    int // turns
	}{{session("direct", "alice"), 3}, {session("direct", "bob"), 9}, {session("group", "all"), 9}} {
		got := len(turns(t, c, s.session, 9)) / 2
		if limited := s.most < 9; got > s.most || !limited && got < s.most {
			t.Errorf("%s: %d turns are shown, want %d at most", s.session.Session, got, s.most)
		}
	}
	// Limits follow the host's configuration.
	tell(nil)
	if got := len(turns(t, c, session("direct", "carol"), 9)) / 2; got != 9 {
		t.Errorf("without limits %d turns are shown, want 9", got)
	}
}

// TestServeGoesByTheProvider: limits that are set for a provider hold while it serves the model, and an arm of its own takes the sessions that begin with it.
func TestServeGoesByTheProvider(t *testing.T) {
	c := connected(t, `engine: composed
store: memory
retriever: recent
recall: {share: 0}
history: {providers: {ollama: {limitTurns: 2}}}
arms: [{name: small, providers: [ollama], override: {recentMessages: 1}}, {name: large, providers: [anthropic]}]
`)
	if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "openai"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		begins, goesOn string
		arm            string
		most           int // turns
	}{"a": {"ollama", "ollama", "small", 3}, "b": {"Anthropic", "ollama", "large", 3}, "c": {"ollama", "anthropic", "small", 9}, "d": {"house", "house", "", 9}} {
		session := core.SessionID{Agent: "main", Session: "agent:main:" + name}
		settings := rpc.Settings{Provider: want.begins}
		first := []json.RawMessage{json.RawMessage(`{"role":"user","content":"question"}`), json.RawMessage(`{"role":"assistant","content":"answer"}`)}
		if _, err := c.CommitTurn(t.Context(), rpc.CommitTurnParams{Session: session, AdvancementKey: "first", Messages: first, Settings: settings}); err != nil {
			t.Fatal(err)
		}
		turns(t, c, session, 8)
		res, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: session, Budget: 8000, Prompt: "Go on.", Settings: rpc.Settings{Provider: want.goesOn}})
		if err != nil {
			t.Fatal(err)
		}
		info, err := c.Info(t.Context(), rpc.InfoParams{Session: &session})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(res.Messages) / 2; info.Arm.Name != want.arm || got > want.most || want.most == 9 && got != 9 {
			t.Errorf("%s began with %s and goes on with %s: arm %q, want %q; %d turns are shown, want %d at most", name, want.begins, want.goesOn, info.Arm.Name, want.arm, got, want.most)
		}
	}
}

// TestServeKeepsNothingOfSomeSessions: sessions that a pattern names work like all others and leave nothing behind, whichever engine it is.
func TestServeKeepsNothingOfSomeSessions(t *testing.T) {
	srv := openbraintest.New(t, openbraintest.Strict(20, false))
	const arms = "arms: [{name: passing, sessions: ['agent:*:cron:*'], override: {engine: composed, store: memory}}]\n"
	for name, engine := range map[string]string{
		"composed": "engine: composed\nstore: {type: sqlite, path: PATH}\n", "openbrain": "engine: {type: openbrain, baseUrl: URL, apiKey: KEY}\nstore: {local: {path: PATH}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			config := strings.NewReplacer("PATH", path, "URL", srv.URL(), "KEY", srv.Key()).Replace(engine) + arms
			c := connected(t, config)
			if _, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "test"}, Format: "openai"}); err != nil {
				t.Fatal(err)
			}
			for session, stored := range map[string]bool{"agent:main:main": true, "agent:main:cron:daily": false} {
				if got := len(turns(t, c, core.SessionID{Agent: "main", Session: session}, 3)); got < 6 {
					t.Errorf("%s: %d messages are shown, want 6", session, got)
				}
				out := run(t, builtin.New(), "", "sessions", "--wide", "--agent", "main", "--config", write(t, "look.yaml", "store: {type: sqlite, path: "+path+"}\n")).out
				if strings.Contains(out, session) != stored {
					t.Errorf("%s is stored: %t, want %t\n%s", session, !stored, stored, out)
				}
			}
			for _, thought := range srv.Thoughts() {
				if strings.Contains(fmt.Sprint(thought), "cron") {
					t.Errorf("the server holds %v", thought)
				}
			}
		})
	}
}
