package registry_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

func TestLoadDefaults(t *testing.T) {
	cfg := mustLoad(t, newRegistry(t, &shop{}))
	want := registry.DefaultConfig()
	want.Engine = registry.Choice{Type: "composed", Options: map[string]any{}}
	want.Store = registry.Choice{Type: "memory", Options: map[string]any{}}
	want.Retriever = registry.Choice{Type: "hybrid", Options: map[string]any{
		"limit": int64(5), "wait": "2s", "weights": map[string]any{"a": 1.0}, "deep": map[string]any{"on": false},
	}}
	want.Compactor = registry.Choice{Type: "archive", Options: map[string]any{}}
	want.Searchers = registry.Searchers{"lexical": {"limit": int64(3)}}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("Load() differs from want (-want +got):\n%s", diff)
	}
	if cfg.Tokenizer != "o200k_base" || cfg.Core.RecentMessages != 20 {
		t.Errorf("tokenizer %q, recentMessages %d", cfg.Tokenizer, cfg.Core.RecentMessages)
	}
}

// TestFormats: the same configuration in every format is the same.
func TestFormats(t *testing.T) {
	r := newRegistry(t, &shop{})
	files := map[string]string{
		"c.json": `{"store": {"type": "disk", "path": "a.db"}, "recentMessages": 7, "failure": "strict",
			"retriever": {"wait": "5s", "names": ["x", "y"], "weights": {"b": 2}}, "window": {"high": 0.8, "low": 0.5, "note": false},
			"agents": {"gpt-4.1 helper": {"retriever": "recent"}}}`,
		"c.json5": `{store: {type: 'disk', path: 'a.db'}, recentMessages: 7, failure: 'strict', // comment
			retriever: {wait: '5s', names: ['x', 'y',], weights: {b: 2}}, window: {high: .8, low: 0.5, note: false},
			agents: {'gpt-4.1 helper': {retriever: 'recent'}},}`,
		"c.yaml": `
store: {type: disk, path: a.db}
recentMessages: 7
failure: strict
retriever: {wait: 5s, names: [x, y], weights: {b: 2}}
window: {high: 0.8, low: 0.5, note: false}
agents: {gpt-4.1 helper: {retriever: recent}}
model: # null means not set
`,
		"c.toml": `
recentMessages = 7
failure = "strict"
store = {type = "disk", path = "a.db"}
[retriever]
wait = "5s"
names = ["x", "y"]
weights.b = 2
[window]
high = 0.8
low = 0.5
note = false
[agents."gpt-4.1 helper"]
retriever = "recent"
`,
	}
	var first registry.Config
	dir := t.TempDir()
	for _, name := range []string{"c.json", "c.json5", "c.yaml", "c.toml"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("\ufeff"+files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := mustLoad(t, r, registry.File(file))
		if name == "c.json" {
			first = cfg
			if got := cfg.Store.Options["path"]; got != "a.db" || cfg.Core.RecentMessages != 7 || cfg.Core.Window.Note {
				t.Errorf("%s: path %v, config %+v", name, got, cfg.Core)
			}
			if diff := cmp.Diff(map[string]any{"a": 1.0, "b": 2.0}, cfg.Retriever.Options["weights"]); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
			if got, _ := mustResolve(t, r, cfg, "gpt-4.1 helper", "s"); got.Retriever.Type != "recent" {
				t.Errorf("agent's retriever is %q", got.Retriever.Type)
			}
			continue
		}
		if diff := cmp.Diff(first, cfg); diff != "" {
			t.Errorf("%s differs from c.json:\n%s", name, diff)
		}
	}
}

// TestPrecedence: later sources win, key by key; another type drops the options of the one before.
func TestPrecedence(t *testing.T) {
	r := newRegistry(t, &shop{})
	file := yaml("{recentMessages: 7, store: {type: disk, path: a}, retriever: {limit: 9, wait: 1s}, window: {high: 0.8, low: 0.3}}")
	cfg := mustLoad(t, r, file, registry.Environ([]string{
		"CONTEXTENGINE_RECENT_MESSAGES=8", "CONTEXTENGINE_RETRIEVER__LIMIT=4", "CONTEXTENGINE_WINDOW__HIGH=0.7",
		"CONTEXTENGINE_RETRIEVER__NAMES=x, y", "CONTEXTENGINE_WINDOW__NOTE=false", "CONTEXTENGINE_RECALL__DEADLINE=9s",
		"CONTEXTENGINE_AGENTS__coder__RETRIEVER=recent", "CONTEXTENGINE_CONFIG=/somewhere", "CONTEXTENGINE_DATA=/data", "CONTEXTENGINE_CI=1", "CONTEXTENGINE_POSTGRES_DSN=x", "CONTEXTENGINE_PGLITE=x", "OTHER=1",
	}))
	o := cfg.Retriever.Options
	if cfg.Core.RecentMessages != 8 || o["limit"] != int64(4) || o["wait"] != "1s" || cfg.Core.Window.High != 0.7 || cfg.Core.Window.Low != 0.3 {
		t.Errorf("recentMessages %d, retriever %v, window %+v", cfg.Core.RecentMessages, cfg.Retriever, cfg.Core.Window)
	}
	if diff := cmp.Diff([]any{"x", "y"}, o["names"]); diff != "" || cfg.Core.Window.Note || cfg.Core.Recall.Deadline != 9*time.Second {
		t.Errorf("names %v, core %+v", o["names"], cfg.Core)
	}
	if got, _ := mustResolve(t, r, cfg, "coder", "s"); got.Retriever.Type != "recent" {
		t.Errorf("agent's retriever is %q", got.Retriever.Type)
	}
	cfg = mustLoad(t, r, file, registry.Environ([]string{"CONTEXTENGINE_STORE=memory", "CONTEXTENGINE_RETRIEVER=recent", "CONTEXTENGINE_RETRIEVER__LIMIT=2"}))
	if cfg.Store.Type != "memory" || len(cfg.Store.Options) != 0 {
		t.Errorf("store is %v, want memory without options", cfg.Store)
	}
	if diff := cmp.Diff(registry.Choice{Type: "recent", Options: map[string]any{"limit": int64(2)}}, cfg.Retriever); diff != "" {
		t.Errorf("retriever (-want +got):\n%s", diff)
	}
	cfg = mustLoad(t, r, yaml("{engine: composed, store: {type: memory}, recentMessages: 3}"), yaml("engine: openbrain"))
	if cfg.Store.Type != "disk" || cfg.Core.RecentMessages != 3 {
		t.Errorf("another engine keeps store %q, recentMessages %d", cfg.Store.Type, cfg.Core.RecentMessages)
	}
}

func TestSearchers(t *testing.T) {
	r := newRegistry(t, &shop{})
	for text, want := range map[string]registry.Searchers{
		"searchers: {lexical: {limit: 9}}": {"lexical": {"limit": int64(9)}},
		"searchers: [lexical]":             {"lexical": {"limit": int64(3)}},
		"searchers: {}":                    {},
		"searchers: []":                    {},
		"searchers:":                       {"lexical": {"limit": int64(3)}},
		"engine: openbrain":                {},
	} {
		if diff := cmp.Diff(want, mustLoad(t, r, yaml(text)).Searchers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestErrors pins the whole text of every error that a configuration can cause.
func TestErrors(t *testing.T) {
	const keys = "agents, arms, compaction, compactor, embedder, engine, failure, history, injected, model, recall, recentMessages, redact, requires, retriever, searchers, store, subagents, tokenizer, window"
	const overrides = "compaction, compactor, embedder, engine, failure, history, injected, model, recall, recentMessages, redact, requires, retriever, searchers, store, subagents, tokenizer, window"
	const window = "batchShare, cachePrice, clipShare, clipTokens, high, keepResults, low, lowTokens, memory, note, reserve"
	r := newRegistry(t, &shop{})
	for _, c := range []struct {
		text, want string
	}{
		{"recentMesages: 3", `recentMesages: unknown key "recentMesages", did you mean "recentMessages"? (known: ` + keys + `)`},
		{"zzz: 3", `zzz: unknown key "zzz" (known: ` + keys + `)`},
		{"window: {hihg: 1}", `window.hihg: unknown key "hihg", did you mean "high"? (known: ` + window + `)`},
		{"window: 3", `window: want an object, found a number`},
		{"window: {high: big}", `window.high: want a number, found a string`},
		{"window: {high: .nan}", `window.high: want a finite number`},
		{"window: {note: 1}", `window.note: want a boolean, found a number`},
		{"window: {clipTokens: 1.5}", `window.clipTokens: want an integer, found a number with a fraction`},
		{"window: {clipTokens: 1e300}", `window.clipTokens: number out of range`},
		{"recentMessages: '3'", `recentMessages: want an integer, found a string`},
		{"recall: {deadline: 2}", `recall.deadline: want a duration such as "2s", found a number`},
		{"recall: {deadline: soon}", `recall.deadline: want a duration such as "2s" or "1h30m", found another string`},
		{"store: memroy", `store: unknown store "memroy", did you mean "memory"? (known: disk, memory)`},
		{"store: {type: postgres}", `store: unknown store "postgres" (known: disk, memory)`},
		{"store: {type: disk, pth: x}", `store.pth: unknown key "pth", did you mean "path"? (known: path, type)`},
		{"store: {type: disk, path: [x]}", `store.path: want a string, found a list`},
		{"store: [disk]", `store: want a name or an object with the key "type", found a list`},
		{"store: {type: 3}", `store.type: want a string, found a number`},
		{"store: ''", `store: the name of the part is empty`},
		{"model: {baseUrl: x}", `model: options need the key "type" beside them (known: openai)`},
		{"retriever: {limit: many}", `retriever.limit: want an integer, found a string`},
		{"retriever: {deep: {of: true}}", `retriever.deep.of: unknown key "of", did you mean "on"? (known: on)`},
		{"retriever: {names: x}", `retriever.names: want a list of string, found a string`},
		{"retriever: {names: [x, 2]}", `retriever.names.1: want a string, found a number`},
		{"retriever: {weights: {a: x}}", `retriever.weights.a: want a number, found a string`},
		{"searchers: [lexial]", `searchers: unknown searcher "lexial", did you mean "lexical"? (known: lexical)`},
		{"searchers: {lexical: {limt: 3}}", `searchers.lexical.limt: unknown key "limt", did you mean "limit"? (known: limit, type)`},
		{"engine: legcy", `engine: unknown engine "legcy", did you mean "legacy"? (known: composed, legacy, openbrain)`},
		{"tokenizer: o200k", `tokenizer: unknown tokenizer "o200k" (known: cl100k_base, o200k_base)`},
		{"failure: maybe", `core: config: failure: must be "degrade" or "strict"`},
		{"agents: {coder: {retreiver: recent}}", `agents.coder.retreiver: unknown key "retreiver", did you mean "retriever"? (known: ` + overrides + `)`},
		{"agents: {coder: {agents: {}}}", `agents.coder.agents: unknown key "agents", did you mean "subagents"? (known: ` + overrides + `)`},
		{"agents: {coder: {window: {high: 7}}}", `agents.coder: core: config: window.high: must be 0.2 to 1`},
		{"agents: {a.b: {window: 7}}", `agents."a.b".window: want an object, found a number`},
		{"agents: {coder: recent}", `agents.coder: want an object, found a string`},
		{"arms: {a: 1}", `arms: want a list of object, found an object`},
		{"arms: [{wieght: 1}]", `arms.0.wieght: unknown key "wieght", did you mean "weight"? (known: agents, name, override, providers, sessions, weight)`},
		{"arms: [{weight: 1}]", `arms.0.name: an arm needs a name`},
		{"arms: [{name: a}, {name: a}]", `arms.1.name: the arm "a" is there twice`},
		{"arms: [{name: a, weight: -1}]", `arms.0.weight: must be 0 to 1e9`},
		{"arms: [{name: a, override: {store: dsk}}]", `arms.0.override.store: unknown store "dsk", did you mean "disk"? (known: disk, memory)`},
		{"store: 2026-01-02", `store: want a name or an object with the key "type", found a date`},
	} {
		_, err := r.Load(yaml(c.text))
		want := `registry: load "test.yaml": ` + c.want + ": invalid"
		if err == nil || err.Error() != want || !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.text, err, want)
		}
	}
}

func TestFileErrors(t *testing.T) {
	r := newRegistry(t, &shop{})
	dir := t.TempDir()
	file := filepath.Join(dir, "c.ini")
	if err := os.WriteFile(file, []byte("a = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("a.", 100) + "a = 1"
	for name, c := range map[string]struct {
		source registry.Source
		want   string
	}{
		"format":  {registry.File(file), `registry: load "` + file + `": unknown format "ini" (known: json, json5, toml, yaml, yml): invalid`},
		"missing": {registry.File("none.yaml"), `registry: load "none.yaml": open: no such file or directory`},
		"no name": {registry.File("none"), `registry: load "none": open: no such file or directory`},
		"folder":  {registry.File(dir), `registry: load "` + dir + `": is a folder: name a file: invalid`},
		"list":    {registry.Bytes("l.json", "json", []byte("[1, 2]")), `registry: load "l.json": a configuration is keys with values, and this is a list or a single value: invalid`},
		"items":   {registry.Bytes("l.yaml", "yaml", []byte("- a\n- b\n")), `registry: load "l.yaml": a configuration is keys with values, and this is a list or a single value: invalid`},
		"items5":  {registry.Bytes("l.json5", "json5", []byte("[1, 2]")), `registry: load "l.json5": a configuration is keys with values, and this is a list or a single value: invalid`},
		"large":   {yaml(strings.Repeat(" ", 1<<20+1)), `registry: load "test.yaml": larger than 1 MiB: invalid`},
		"deep":    {registry.Bytes("t", "toml", []byte(deep)), `registry: load "t": nested deeper than 64 levels: invalid`},
		"deeper":  {registry.Bytes("t", "json5", []byte(strings.Repeat("[", 5000))), `registry: load "t": nested deeper than 64 levels: invalid`},
		"env":     {registry.Environ([]string{"CONTEXTENGINE_WINDOW__HIGH=big"}), `registry: load "environment": window.high: want a number, found text that is none: invalid`},
		"env key": {registry.Environ([]string{"CONTEXTENGINE_WINDOW____HIGH=1"}), `registry: load "environment": CONTEXTENGINE_WINDOW____HIGH: a level of the key is empty: invalid`},
	} {
		_, err := r.Load(c.source)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	if _, err := r.Load(registry.File("none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v, want os.ErrNotExist", err)
	}
}

func FuzzLoad(f *testing.F) {
	r := newRegistry(f, &shop{})
	for _, format := range []string{"json", "json5", "yaml", "toml"} {
		for _, text := range []string{
			"", "null", "{}", "[]", "1", `{"store": {"type": "disk"}}`, "store: disk", "store = 'disk'", "a: &a [*a]", "? {a: b}\n: c",
			`{"plugins": {"slots": {"contextEngine": "openbrain"}, "entries": {"openbrain": {"config": {"apiKey": 1}}}}}`,
			`{"agents": {"list": [{"id": "x", "contextEngine": {}}], "defaults": 3}}`, "arms: [{name: a, override: {window: {}}}]",
			"{'a':", "\x00", "a: 2026-01-01", "a = 2026-01-01", "{a: Infinity}", "searchers: [[]]", "retriever: {weights: {1: 2}}",
		} {
			f.Add(format, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		cfg, err := r.Load(registry.Bytes("fuzz", format, data))
		if err != nil {
			return
		}
		again, err := r.Load(registry.Values("again", map[string]any{"engine": cfg.Engine.Type}))
		if err != nil || again.Engine.Type != cfg.Engine.Type {
			t.Errorf("engine %q does not load again: %v", cfg.Engine.Type, err)
		}
		if err := r.Check(cfg); err != nil {
			t.Errorf("what was loaded fails its check: %v", err)
		}
	})
}

// A file that cannot be read is an error that says where, in every format.
func TestSyntaxErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for format, files := range map[string]map[string]string{
		"json":  {"{\n \"store\": \"disk\",\n \"retriever\": ]\n}": "line 3, column 15: ", "{\n \"store\": {": "line 2, column 11: "},
		"json5": {"{\n store: 'disk',\n retriever: ]\n}": "line 3, column 13: ", "{\n store: 'dis": "line 2, "},
		"toml":  {"store = 'disk'\nretriever = \n": "line 2, column ", "x = [1\n": "line "},
		"yaml":  {"store: disk\nretriever: [\n": "line "},
	} {
		for text, want := range files {
			_, err := newRegistry(t, &shop{}).Load(registry.Bytes("t", format, []byte(text)))
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q: %v, want %q", format, text, err, want)
			}
		}
	}
}
