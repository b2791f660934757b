package builtin_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// instance builds what a configuration describes.
func instance(t *testing.T, config map[string]any) *registry.Instance {
	t.Helper()
	r := builtin.New()
	cfg, err := r.Load(registry.Values("test", config))
	if err != nil {
		t.Fatal(err)
	}
	i, err := r.Build(t.Context(), cfg, registry.BuildOptions{Getenv: func(string) string { return "" }, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close(t.Context()) })
	return i
}

// says stores a message of an agent's session.
func says(t *testing.T, i *registry.Instance, agent, text string) {
	t.Helper()
	session := core.SessionID{Agent: agent, Session: "agent:" + agent + ":main"}
	e, _, err := i.Engine(t.Context(), agent, session.Session)
	if err != nil {
		t.Fatal(err)
	}
	m := message.Message{Role: message.User, Parts: []message.Part{{Kind: message.Text, Text: text}}}
	if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: session, Message: m}); err != nil {
		t.Fatal(err)
	}
}

// stores returns how many stores the engines of some agents have.
func stores(t *testing.T, i *registry.Instance, agents ...string) int {
	t.Helper()
	var seen []core.Store
	for _, agent := range agents {
		e, _, err := i.Engine(t.Context(), agent, "agent:"+agent+":main")
		if err != nil {
			t.Fatal(err)
		}
		own, ok := e.(*engine.Engine)
		if !ok {
			t.Fatalf("the engine is a %T", e)
		}
		if !slices.Contains(seen, own.Store()) {
			seen = append(seen, own.Store())
		}
	}
	return len(seen)
}

// TestFolderOfAnAgent: relative paths lie in the folder that the host has for the agent; a store without a path is one for all.
func TestFolderOfAnAgent(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared.db")
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		name   string
		config map[string]any
		files  []string // in each agent's folder
		stores int
	}{
		{"the default", map[string]any{"store": "sqlite"}, nil, 1},
		{"a relative path", map[string]any{"store": map[string]any{"type": "sqlite", "path": "history/mine.db"}}, []string{"history/mine.db"}, 2},
		{"a relative path that begins as a variable does", map[string]any{"store": map[string]any{"type": "sqlite", "path": "$HOMEPAGE.db"}}, []string{"$HOMEPAGE.db"}, 2},
		{"a folder that is called as the home is", map[string]any{"store": map[string]any{"type": "sqlite", "path": "./~/mine.db"}}, []string{"~/mine.db"}, 2},
		{"a path below the home", map[string]any{"store": map[string]any{"type": "sqlite", "path": "~/shared.db"}}, nil, 1},
		{"an absolute path", map[string]any{"store": map[string]any{"type": "sqlite", "path": shared}}, nil, 1},
		{"a store behind another", map[string]any{"store": map[string]any{"type": "outbox", "path": "queue", "local": map[string]any{"type": "sqlite", "path": "mine.db"}, "remote": "memory"}}, []string{"mine.db", "queue"}, 2},
		{"the default behind another", map[string]any{"store": map[string]any{"type": "outbox", "remote": "memory"}}, nil, 1},
		{"of an agent", map[string]any{"store": "memory", "agents": map[string]any{
			"main":  map[string]any{"store": map[string]any{"type": "sqlite", "path": "mine.db"}},
			"other": map[string]any{"store": map[string]any{"type": "sqlite", "path": "mine.db"}},
		}}, []string{"mine.db"}, 2},
		{"of an arm", map[string]any{"store": "memory", "arms": []any{
			map[string]any{"name": "a", "override": map[string]any{"store": map[string]any{"type": "sqlite", "path": "arm.db"}}},
		}}, []string{"arm.db"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := instance(t, c.config)
			agents := []string{"main", "other"}
			folders := make(map[string]string)
			for _, agent := range agents {
				folders[agent] = t.TempDir()
				if err := i.SetFactory(agent, registry.Factory{AgentDir: folders[agent], WorkspaceDir: t.TempDir()}); err != nil {
					t.Fatal(err)
				}
				says(t, i, agent, "Hello")
			}
			for _, agent := range agents {
				for _, file := range c.files {
					if _, err := os.Stat(filepath.Join(folders[agent], file)); err != nil {
						t.Error(err)
					}
				}
			}
			if got := stores(t, i, agents...); got != c.stores {
				t.Errorf("%d stores, want %d", got, c.stores)
			}
		})
	}
}

// TestFactoryChanges: folders stay once they are known, limits do not.
func TestFactoryChanges(t *testing.T) {
	i := instance(t, map[string]any{"store": map[string]any{"type": "sqlite", "path": "mine.db"}})
	first := t.TempDir()
	if err := i.SetFactory("main", registry.Factory{AgentDir: first}); err != nil {
		t.Fatal(err)
	}
	says(t, i, "main", "Hello")
	before, arm, err := i.Engine(t.Context(), "main", "agent:main:main")
	if err != nil {
		t.Fatal(err)
	}
	limit := 3
	limits := history.Limits{Channels: map[string]history.ChannelLimits{"telegram": {DMHistoryLimit: &limit}}}
	if err := i.SetFactory("main", registry.Factory{AgentDir: t.TempDir(), Limits: limits}); err != nil {
		t.Fatal(err)
	}
	after, again, err := i.Engine(t.Context(), "main", "agent:main:main")
	if err != nil {
		t.Fatal(err)
	}
	if after == before {
		t.Error("the engine does not know of the limit")
	}
	if own, ok := after.(*engine.Engine); !ok || own.Store() != before.(*engine.Engine).Store() {
		t.Error("the store is another one")
	}
	if arm.Config != again.Config {
		t.Errorf("the configuration is %s, and was %s: what a host says is none of it", again.Config, arm.Config)
	}
	if err := i.SetFactory("main", registry.Factory{AgentDir: "agents/main"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a relative folder: %v", err)
	}
}
