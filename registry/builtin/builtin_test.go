package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

func TestAdd(t *testing.T) {
	r := &registry.Registry{}
	if err := builtin.Add(r); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[registry.Kind][]string{
		registry.KindEngine:    {"composed", "legacy", "openbrain"},
		registry.KindStore:     {"memory", "openbrain", "outbox", "postgres", "sqlite"},
		registry.KindRetriever: {"hybrid", "recent", "semantic"},
		registry.KindCompactor: {"archive", "chain", "delegate", "index", "mask", "summary"},
		registry.KindSearcher:  {"lexical", "vector"},
		registry.KindModel:     {"ollama", "openai"},
		registry.KindTokenizer: {"cl100k_base", "o200k_base"},
	} {
		if got := r.Names(kind); !slices.Equal(got, want) {
			t.Errorf("%ss are %v, want %v", kind, got, want)
		}
	}
	if err := builtin.Add(r); !errors.Is(err, core.ErrConflict) {
		t.Errorf("adding twice: %v, want ErrConflict", err)
	}
}

// TestTemplate: the written configuration is the one that holds without it, in every format.
func TestTemplate(t *testing.T) {
	r := builtin.New()
	want, err := r.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"yaml", "toml", "json5", "json"} {
		text, err := r.Template(format)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Load(registry.Bytes("template", format, text))
		if err != nil {
			t.Fatalf("%s: %v\n%s", format, err, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", format, diff, text)
		}
	}
	if want.Store.Type != "sqlite" || want.Retriever.Type != "hybrid" || want.Compactor.Type != "archive" {
		t.Errorf("the defaults are %v, %v, %v", want.Store, want.Retriever, want.Compactor)
	}
}

// delegateHost is a host that compacts.
type delegateHost struct{ core.NoHost }

func (delegateHost) Capabilities() []capability.Name {
	return append(core.NoHost{}.Capabilities(), capability.DelegateHost)
}

func TestCombinations(t *testing.T) {
	var names []string
	for _, c := range builtin.New().Combinations() {
		names = append(names, c.Name())
		e, err := c.New(t.Context(), delegateHost{}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.Name(), err)
			continue
		}
		talk(t, e, core.SessionID{Agent: "a", Session: "s"})
		if err := e.Dispose(t.Context()); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		_, err = c.New(t.Context(), core.NoHost{}, nil)
		if needs := c.Compactor == "delegate"; errors.Is(err, capability.ErrRequirement) != needs {
			t.Errorf("%s without a host: %v", c.Name(), err)
		}
	}
	if len(names) != 18 {
		t.Errorf("combinations are %v, want 18", names)
	}
}

// talk has one turn and looks whether it comes back.
func talk(t *testing.T, e core.ContextEngine, id core.SessionID) {
	t.Helper()
	for _, m := range []message.Message{message.New(message.User, "what is the capital of France?"), message.New(message.Assistant, "Paris.")} {
		if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 4000, Prompt: "and of Spain?"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range res.Messages {
		texts = append(texts, m.Text())
	}
	if got := strings.Join(texts, "\n"); !strings.Contains(got, "capital of France") || !strings.Contains(got, "Paris.") {
		t.Errorf("assembled %q", got)
	}
}

func build(t *testing.T, values map[string]any, env map[string]string) *registry.Instance {
	t.Helper()
	r := builtin.New()
	cfg, err := r.Load(registry.Values("test", values))
	if err != nil {
		t.Fatal(err)
	}
	i, err := r.Build(t.Context(), cfg, registry.BuildOptions{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close(context.WithoutCancel(t.Context())) })
	return i
}

func TestDefaults(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	i := build(t, nil, nil)
	e, _, err := i.Engine(t.Context(), "a", "s")
	if err != nil {
		t.Fatal(err)
	}
	talk(t, e, core.SessionID{Agent: "a", Session: "s"})
	if got, want := e.Info().Parts, (core.PartNames{Store: "sqlite", Retriever: "hybrid", Compactor: "archive"}); got != want {
		t.Errorf("parts are %+v, want %+v", got, want)
	}
}

// TestUnconfigured: without address or key there is an engine, and every call of it says what to do.
func TestUnconfigured(t *testing.T) {
	for name, engine := range map[string]any{
		"nothing": "openbrain",
		"address": map[string]any{"type": "openbrain", "baseUrl": "http://localhost:1"},
		"key":     map[string]any{"type": "openbrain", "apiKey": "k"},
	} {
		i := build(t, map[string]any{"engine": engine}, nil)
		e, _, err := i.Engine(t.Context(), "a", "s")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		full := e.(interface {
			core.Bootstrapper
			core.BatchIngester
			core.TurnCommitter
			core.AfterTurner
			core.Maintainer
			core.SubagentHost
			core.Pinger
		})
		errs := map[string]error{}
		_, errs["bootstrap"] = full.Bootstrap(t.Context(), core.BootstrapRequest{})
		_, errs["ingest"] = e.Ingest(t.Context(), core.IngestRequest{})
		_, errs["batch"] = full.IngestBatch(t.Context(), core.IngestBatchRequest{})
		_, errs["commit"] = full.CommitTurn(t.Context(), core.CommitTurnRequest{})
		_, errs["assemble"] = e.Assemble(t.Context(), core.AssembleRequest{})
		_, errs["compact"] = e.Compact(t.Context(), core.CompactRequest{})
		errs["after turn"] = full.AfterTurn(t.Context(), core.AfterTurnRequest{})
		_, errs["maintain"] = full.Maintain(t.Context(), core.MaintainRequest{})
		_, errs["spawn"] = full.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{})
		errs["ended"] = full.OnSubagentEnded(t.Context(), core.SubagentEnded{})
		errs["ping"] = full.Ping(t.Context())
		for op, err := range errs {
			const want = "OpenBrainConfigError: openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config."
			if _, ok := errors.AsType[*openbrain.ConfigError](err); !ok || err.Error() != want {
				t.Errorf("%s: %s: %v", name, op, err)
			}
		}
		if info := e.Info(); info.ID != "openbrain" || len(info.Health) != 1 {
			t.Errorf("%s: Info() = %+v", name, info)
		}
	}
}

// TestOpenBrainPrecedence: what the configuration says goes before the environment.
func TestOpenBrainPrecedence(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen[name] = req.Header.Get("Authorization")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"thoughts": []}`))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	configured, environment := server("configured"), server("environment")
	env := map[string]string{"OPENBRAIN_URL": environment, "OPENBRAIN_API_KEY": "env-key"}
	for _, c := range []struct {
		name   string
		values map[string]any
		want   map[string]string
	}{
		{"environment", map[string]any{"engine": "openbrain", "store": "openbrain"}, map[string]string{"environment": "Bearer env-key"}},
		{"configuration", map[string]any{"engine": map[string]any{"type": "openbrain", "baseUrl": configured, "apiKey": "own-key"}, "store": "openbrain"},
			map[string]string{"configured": "Bearer own-key"}},
		{"both", map[string]any{"engine": map[string]any{"type": "openbrain", "apiKey": "own-key"}, "store": "openbrain"}, map[string]string{"environment": "Bearer own-key"}},
		{"store", map[string]any{"engine": "openbrain", "store": map[string]any{"type": "openbrain", "baseUrl": configured}}, map[string]string{"configured": "Bearer env-key"}},
		{"host", map[string]any{"plugins": map[string]any{
			"slots": map[string]any{"contextEngine": "openbrain"},
			"entries": map[string]any{"openclaw-openbrain-context": map[string]any{"config": map[string]any{"baseUrl": configured, "apiKey": "host-key",
				"recentMessages": 20, "semanticSearchLimit": 10, "subagentRecentMessages": 8, "source": "openclaw", "store": "openbrain"}}},
		}}, map[string]string{"configured": "Bearer host-key"}},
		{"composed", map[string]any{"store": map[string]any{"type": "openbrain", "baseUrl": configured}}, map[string]string{"configured": "Bearer env-key"}},
	} {
		clear(seen)
		i := build(t, c.values, env)
		if _, _, err := i.Engine(t.Context(), "a", "s"); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := i.Ping(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, seen); diff != "" {
			t.Errorf("%s: the servers saw (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestOpenBrainErrors(t *testing.T) {
	for _, c := range []struct {
		values map[string]any
		want   string
	}{
		{map[string]any{"engine": "openbrain", "store": "memory"},
			`registry: engine for "a": open engine "openbrain": store "memory": this engine keeps everything on its server, or in an outbox in front of it: leave out store, or choose the engine composed: invalid`},
		{map[string]any{"engine": map[string]any{"type": "openbrain", "baseUrl": "ftp://u:secret@example.com", "apiKey": "k"}},
			`registry: engine for "a": open engine "openbrain": open store "outbox": remote: open store "openbrain": openbrain: config: baseUrl: must be an http or https address, as in "http://127.0.0.1:8000": invalid`},
		{map[string]any{"engine": map[string]any{"type": "openbrain", "semanticSearchLimit": 0}},
			`registry: engine for "a": open engine "openbrain": semanticSearchLimit: must be 1 to 10000: invalid`},
		{map[string]any{"store": "openbrain"},
			`registry: engine for "a": open engine "composed": open store "openbrain": OpenBrainConfigError: openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config.`},
		{map[string]any{"searchers": []any{"vector"}},
			`registry: engine for "a": open engine "composed": open retriever "hybrid": open searcher "vector": it needs an embedder, set the key embedder: invalid`},
	} {
		_, _, err := build(t, c.values, nil).Engine(t.Context(), "a", "s")
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestOpenBrainKeys: the plugin's keys set what the engine runs with.
func TestOpenBrainKeys(t *testing.T) {
	var log strings.Builder
	r := builtin.New()
	cfg, err := r.Load(registry.HostValues("host", map[string]any{"agents": map[string]any{"defaults": map[string]any{"contextEngine": map[string]any{
		"engine": "openbrain", "baseUrl": "http://localhost:1", "apiKey": "sk-hidden",
		"recentMessages": 7, "semanticSearchLimit": 3, "subagentRecentMessages": 4, "source": "mine", "timeout": "1s",
	}}}}))
	if err != nil {
		t.Fatal(err)
	}
	i, err := r.Build(t.Context(), cfg, registry.BuildOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := i.Engine(t.Context(), "a", "s")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Info().Parts, (core.PartNames{Store: "outbox", Retriever: "hybrid", Compactor: "archive"}); got != want || e.Info().ID != "openbrain" {
		t.Errorf("parts are %+v, want %+v", got, want)
	}
	if strings.Contains(log.String(), "sk-hidden") {
		t.Errorf("the log is %q", log.String())
	}
	if err := i.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPluginKeys: every key of the plugin's manifest can stand in a host's configuration that the command line reads.
func TestPluginKeys(t *testing.T) {
	b, err := os.ReadFile("../../hosts/openclaw/plugin/openclaw.plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		ID           string
		ConfigSchema struct {
			Properties map[string]struct {
				Type    string
				Default any
			}
		}
	}
	if err := json.Unmarshal(b, &manifest); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	for key, p := range manifest.ConfigSchema.Properties {
		switch {
		case key == "engine":
			config[key] = "openbrain"
		case p.Default != nil:
			config[key] = p.Default
		default:
			config[key] = map[string]any{"string": "x", "array": []any{}, "boolean": true, "integer": 1, "number": 1}[p.Type]
		}
	}
	if len(config) < 10 {
		t.Fatalf("the manifest has %d keys", len(config))
	}
	host, err := json.Marshal(map[string]any{"plugins": map[string]any{
		"slots":   map[string]any{"contextEngine": manifest.ID},
		"entries": map[string]any{manifest.ID: map[string]any{"enabled": true, "config": config}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := builtin.New().Load(registry.Bytes("openclaw.json", "json", host))
	if err != nil || cfg.Engine.Type != "openbrain" {
		t.Errorf("%v, %v", cfg.Engine, err)
	}
}
