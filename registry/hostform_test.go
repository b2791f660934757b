package registry_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/registry"
)

func json5(text string) registry.Source {
	return registry.Bytes("host.json5", "json5", []byte(text))
}

// TestHostSlot: the host's own form, with its other keys around it.
func TestHostSlot(t *testing.T) {
	r := newRegistry(t, &shop{})
	for _, c := range []struct {
		name, text, engine string
		options            map[string]any
	}{
		{"empty slot", `{plugins: {}, channels: {telegram: {}}}`, "legacy", map[string]any{}},
		{"other slots", `{plugins: {slots: {memory: 'none'}}}`, "legacy", map[string]any{}},
		{"engine", `{plugins: {slots: {contextEngine: 'openbrain'}}, models: {mode: 'merge'}}`, "openbrain", map[string]any{"baseUrl": "", "apiKey": ""}},
		{"entry", `{plugins: {slots: {contextEngine: 'openbrain'}, entries: {openbrain: {config: {apiKey: 'k'}}, other: {config: {zzz: 1}}}}}`,
			"openbrain", map[string]any{"baseUrl": "", "apiKey": "k"}},
		{"entry of the plugin", `{plugins: {slots: {contextEngine: 'openbrain'}, entries: {'the-plugin': {enabled: true, config: {apiKey: 'k'}}}}}`,
			"openbrain", map[string]any{"baseUrl": "", "apiKey": "k"}},
		{"slot named like the plugin", `{plugins: {slots: {contextEngine: 'the-plugin'}, entries: {'the-plugin': {config: {apiKey: 'k'}}}}}`,
			"openbrain", map[string]any{"baseUrl": "", "apiKey": "k"}},
		{"plugin disabled", `{plugins: {slots: {contextEngine: 'openbrain'}, entries: {'the-plugin': {enabled: false, config: {apiKey: 'k'}}}}}`, "legacy", map[string]any{}},
		{"plugin denied", `{plugins: {slots: {contextEngine: 'openbrain'}, deny: ['the-plugin']}}`, "legacy", map[string]any{}},
		{"plugins disabled", `{plugins: {enabled: false, slots: {contextEngine: 'openbrain'}}}`, "legacy", map[string]any{}},
		{"own keys beside", `{plugins: {slots: {contextEngine: 'composed'}, entries: {composed: {config: {recentMessages: 3, retriever: 'recent'}}}}}`, "composed", map[string]any{}},
	} {
		cfg := mustLoad(t, r, json5(c.text))
		if diff := cmp.Diff(registry.Choice{Type: c.engine, Options: c.options}, cfg.Engine); diff != "" {
			t.Errorf("%s: engine (-want +got):\n%s", c.name, diff)
		}
		if c.name == "own keys beside" && (cfg.Core.RecentMessages != 3 || cfg.Retriever.Type != "recent" || cfg.Store.Type != "memory") {
			t.Errorf("%s: recentMessages %d, retriever %q, store %q", c.name, cfg.Core.RecentMessages, cfg.Retriever.Type, cfg.Store.Type)
		}
	}
}

// TestHostOfTheProduct: agents.defaults names the engine, the plugin's entry has its options, and there is no slot.
func TestHostOfTheProduct(t *testing.T) {
	r := newRegistry(t, &shop{})
	const entry = `plugins: {entries: {'the-plugin': {enabled: ENABLED, config: {apiKey: 'k', baseUrl: 'http://localhost', recentMessages: 7}}}}`
	for _, c := range []struct {
		name, enabled, agents, engine string
		key                           any
	}{
		{"name", "true", `{defaults: {contextEngine: 'openbrain'}}`, "openbrain", "k"},
		{"name of the plugin", "true", `{defaults: {contextEngine: 'the-plugin'}}`, "openbrain", "k"},
		{"object", "true", `{defaults: {contextEngine: {engine: 'openbrain'}}}`, "openbrain", "k"},
		{"object over entry", "true", `{defaults: {contextEngine: {type: 'openbrain', apiKey: 'own'}}}`, "openbrain", "own"},
		{"other engine", "true", `{defaults: {contextEngine: 'composed'}}`, "composed", nil},
		{"disabled", "false", `{defaults: {contextEngine: 'openbrain'}}`, "legacy", nil},
		{"nobody names it", "true", `{}`, "legacy", nil},
	} {
		cfg := mustLoad(t, r, json5(`{agents: `+c.agents+`, `+strings.Replace(entry, "ENABLED", c.enabled, 1)+`}`))
		if cfg.Engine.Type != c.engine || cfg.Engine.Options["apiKey"] != c.key {
			t.Errorf("%s: engine %v, want %s with key %v", c.name, cfg.Engine, c.engine, c.key)
		}
		if c.engine == "openbrain" && (cfg.Engine.Options["baseUrl"] != "http://localhost" || cfg.Engine.Options["recentMessages"] != int64(7)) {
			t.Errorf("%s: options %v", c.name, cfg.Engine.Options)
		}
	}
}

// TestHostAgents: the product's form.
func TestHostAgents(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, json5(`{
		agents: {
			defaults: {model: {primary: 'x'}, contextEngine: {engine: 'openbrain', apiKey: 'k', baseUrl: 'http://localhost', recentMessages: 9}},
			coder: {workspace: '/w', contextEngine: 'legacy'},
			writer: {contextEngine: {recentMessages: 4, config: {baseUrl: 'http://example.com', window: {high: 0.8}}}},
			reader: {contextEngine: {type: 'composed', recentMessages: 2, retriever: {type: 'recent', limit: 3}}},
			list: [{id: 'listed', contextEngine: {engine: 'composed'}}, {id: 'bare'}],
		},
	}`))
	for agent, want := range map[string]struct {
		engine string
		recent any
		core   int
		url    any
		high   float64
	}{
		"":       {"openbrain", int64(9), 20, "http://localhost", 0.9},
		"other":  {"openbrain", int64(9), 20, "http://localhost", 0.9},
		"bare":   {"openbrain", int64(9), 20, "http://localhost", 0.9},
		"coder":  {"legacy", nil, 20, nil, 0.9},
		"writer": {"openbrain", int64(4), 20, "http://example.com", 0.8},
		"reader": {"composed", nil, 2, nil, 0.9},
		"listed": {"composed", nil, 20, nil, 0.9},
	} {
		got, _ := mustResolve(t, r, cfg, agent, "s")
		o := got.Engine.Options
		if got.Engine.Type != want.engine || o["recentMessages"] != want.recent || got.Core.RecentMessages != want.core || o["baseUrl"] != want.url || got.Core.Window.High != want.high {
			t.Errorf("agent %q: %v, recentMessages %d, high %v; want %+v", agent, got.Engine, got.Core.RecentMessages, got.Core.Window.High, want)
		}
	}
	if got, _ := mustResolve(t, r, cfg, "reader", "s"); got.Retriever.Options["limit"] != int64(3) || got.Store.Type != "memory" {
		t.Errorf("reader has %v and store %q", got.Retriever, got.Store.Type)
	}
	cfg = mustLoad(t, r, json5(`{plugins: {slots: {contextEngine: 'openbrain'}}, agents: {defaults: {contextEngine: 'composed'}}}`))
	if cfg.Engine.Type != "composed" {
		t.Errorf("agents.defaults says composed, engine is %q", cfg.Engine.Type)
	}
	cfg = mustLoad(t, r, json5(`{plugins: {slots: {contextEngine: 'openbrain'}}, agents: {defaults: {contextEngine: {apiKey: 'k'}}}}`))
	if cfg.Engine.Type != "openbrain" || cfg.Engine.Options["apiKey"] != "k" {
		t.Errorf("options without a name: engine is %v", cfg.Engine)
	}
}

// TestHostBesideOwn: an empty slot says legacy only where nothing else names an engine.
func TestHostBesideOwn(t *testing.T) {
	r := newRegistry(t, &shop{})
	host := json5(`{plugins: {slots: {}}}`)
	if cfg := mustLoad(t, r, yaml("engine: openbrain"), host); cfg.Engine.Type != "openbrain" {
		t.Errorf("engine is %q, want the own file's", cfg.Engine.Type)
	}
	if cfg := mustLoad(t, r, host, registry.Environ([]string{"CONTEXTENGINE_ENGINE=composed"})); cfg.Engine.Type != "composed" || cfg.Retriever.Type != "hybrid" {
		t.Errorf("engine is %v, want the environment's", cfg.Engine)
	}
	cfg := mustLoad(t, r, registry.HostValues("host", map[string]any{"channels": map[string]any{}}))
	if cfg.Engine.Type != "legacy" {
		t.Errorf("a host that says nothing has engine %q", cfg.Engine.Type)
	}
}

func TestHostErrors(t *testing.T) {
	r := newRegistry(t, &shop{})
	const more = "apiKey, arms, baseUrl, compaction, compactor, embedder, engine, failure, history, injected, model, recall, recentMessages, redact, requires, retriever, searchers, store, subagents, tokenizer, window"
	for _, c := range []struct {
		text, want string
	}{
		{`{plugins: {slots: {contextEngine: 'opnbrain'}}}`, `plugins.slots.contextEngine: unknown engine "opnbrain", did you mean "openbrain"? (known: composed, legacy, openbrain)`},
		{`{plugins: {slots: {contextEngine: 3}}}`, `plugins.slots.contextEngine: want a string, found a number`},
		{`{plugins: {slots: 'x'}}`, `plugins.slots: want an object, found a string`},
		{`{plugins: {slots: {contextEngine: 'openbrain'}, entries: {openbrain: {config: {apiKye: 'secret-1'}}}}}`,
			`plugins.entries.openbrain.config.apiKye: unknown key "apiKye", did you mean "apiKey"? (known: agents, ` + more + `)`},
		{`{plugins: {slots: {contextEngine: 'openbrain'}, entries: {openbrain: {config: {apiKey: 12345}}}}}`,
			`plugins.entries.openbrain.config.apiKey: want a string, found a number`},
		{`{plugins: {slots: {contextEngine: 'openbrain'}, entries: {openbrain: {config: {window: {high: 'x'}}}}}}`,
			`plugins.entries.openbrain.config.window.high: want a number, found a string`},
		{`{agents: {coder: {contextEngine: 'legcy'}}}`, `agents.coder.contextEngine: unknown engine "legcy", did you mean "legacy"? (known: composed, legacy, openbrain)`},
		{`{agents: {coder: {contextEngine: 7}}}`, `agents.coder.contextEngine: want an engine's name or an object, found a number`},
		{`{agents: {coder: {contextEngine: {engine: 'openbrain', type: 'legacy'}}}}`, `agents.coder.contextEngine.type: names another engine than the key beside it`},
		{`{agents: {coder: {contextEngine: {engine: 'openbrain', config: {baseUrl: {}}}}}}`, `agents.coder.contextEngine.config.baseUrl: want a string, found an object`},
		{`{agents: {coder: {contextEngine: {engine: 'openbrain', arm: 1}}}}`, `agents.coder.contextEngine.arm: unknown key "arm" (known: ` + "apiKey, " + more[len("apiKey, arms, "):] + `)`},
		{`{agents: {list: [{id: 'x', contextEngine: {engine: 'openbrain', apiKey: []}}]}}`, `agents.list.0.contextEngine.apiKey: want a string, found a list`},
	} {
		_, err := r.Load(json5(c.text))
		want := `registry: load "host.json5": ` + c.want + ": invalid"
		if err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, err, want)
		}
	}
}

// TestHostChannels: limits of history stand in the host's own section of channels, among much else. What the engine's configuration says goes before it.
func TestHostChannels(t *testing.T) {
	r := newRegistry(t, &shop{})
	text := `{plugins: {slots: {contextEngine: 'composed'}, entries: {composed: {config: CONFIG}}}, channels: {
		defaults: {groupPolicy: 'open'}, telegram: {enabled: true, botToken: 't', historyLimit: 50, dmHistoryLimit: 20, dms: {alice: {historyLimit: 5, name: 'A'}, bob: {}},
			accounts: {work: {botToken: 'u', dmHistoryLimit: 9, dms: {carol: {historyLimit: 0}}}, idle: {botToken: 'v'}}}, slack: {enabled: false}}}`
	n := func(n int) *int { return &n }
	want := history.Limits{Channels: map[string]history.ChannelLimits{"telegram": {
		HistoryLimit: n(50), DMHistoryLimit: n(20), DMs: map[string]history.PeerLimits{"alice": {HistoryLimit: n(5)}},
		Accounts: map[string]history.AccountLimits{"work": {DMHistoryLimit: n(9), DMs: map[string]history.PeerLimits{"carol": {HistoryLimit: n(0)}}}},
	}}}
	cfg := mustLoad(t, r, json5(strings.Replace(text, "CONFIG", "{}", 1)))
	if diff := cmp.Diff(want, cfg.Core.History.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	cfg = mustLoad(t, r, json5(strings.Replace(text, "CONFIG", "{history: {limits: {channels: {telegram: {historyLimit: 7}}}}}", 1)))
	if got := cfg.Core.History.Limits.Channels["telegram"]; got.HistoryLimit == nil || *got.HistoryLimit != 7 {
		t.Errorf("what the engine is configured with does not go before: %+v", got)
	}
}

// TestHostChannelsMalformed: what is no limit is named and left out, and costs nobody the engine.
func TestHostChannelsMalformed(t *testing.T) {
	r := newRegistry(t, &shop{})
	cfg := mustLoad(t, r, json5(`{plugins: {slots: {contextEngine: 'composed'}}, channels: {telegram: {historyLimit: 4, dmHistoryLimit: {},
		dms: {alice: {historyLimit: 'many'}, bob: 3, carol: {historyLimit: 2}}, accounts: {work: {historyLimit: 1.5, dms: []}, home: null}}, slack: 'off', irc: {accounts: 'x'}}}`))
	want := []string{
		"channels.telegram.dmHistoryLimit: want an integer, found an object",
		"channels.telegram.dms.alice.historyLimit: want an integer, found a string",
		"channels.telegram.dms.bob: want an object, found a number",
		"channels.telegram.accounts.work.historyLimit: want an integer, found a number with a fraction",
		"channels.telegram.accounts.work.dms: want an object, found a list",
		"channels.slack: want an object, found a string",
		"channels.irc.accounts: want an object, found a string",
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(cfg.Ignored))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	limits := cfg.Core.History.Limits
	if n := history.LimitFor("agent:main:telegram:group:g", limits); n != 4 {
		t.Errorf("the limit of groups is %d, want 4", n)
	}
	if n := history.LimitFor("agent:main:telegram:direct:carol", limits); n != 2 {
		t.Errorf("the limit of carol is %d, want 2", n)
	}
	var log strings.Builder
	i, err := r.Build(t.Context(), cfg, registry.BuildOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close(t.Context()) }()
	for _, what := range want {
		if !strings.Contains(log.String(), what) {
			t.Errorf("the log does not say %q:\n%s", what, &log)
		}
	}
	if cfg := mustLoad(t, r, json5(`{plugins: {}, channels: [1]}`)); len(cfg.Ignored) != 1 {
		t.Errorf("channels that are a list: %q", cfg.Ignored)
	}
}
