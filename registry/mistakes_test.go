package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

// TestAllMistakesAtOnce: whoever mends a file sees everything that is wrong with it, wherever it stands.
func TestAllMistakesAtOnce(t *testing.T) {
	r := newRegistry(t, &shop{})
	_, err := r.Load(yaml("retriver: x\nwindow: {hihg: 0.8, low: much}\nrecentMessages: many\nagents:\n  coder: {failur: strict}\narms:\n  - {name: a, override: {tokeniser: x}}\n"))
	if !errors.Is(err, core.ErrInvalid) {
		t.Fatalf("Load = %v, want ErrInvalid", err)
	}
	for _, want := range []string{
		"6 mistakes:\n", `retriver: unknown key "retriver", did you mean "retriever"?`, `window.hihg: unknown key "hihg", did you mean "high"?`, "window.low: ", "recentMessages: ",
		`agents.coder.failur: unknown key`, `arms.0.override.tokeniser: unknown key`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing:\n%v", want, err)
		}
	}
	if _, err := r.Load(yaml("retriver: x\n")); err == nil || strings.Contains(err.Error(), "mistakes") {
		t.Errorf("a single mistake: %v", err)
	}
}

// Values out of range are told at once, too, with the agent whose they are.
func TestAllRanges(t *testing.T) {
	r := newRegistry(t, &shop{})
	_, err := r.Load(yaml("agents: {coder: {window: {high: 3, low: 7}, recall: {share: 9, deadline: 0s}}}\n"))
	for _, want := range []string{"4 mistakes:\n", "agents.coder: core: config: window.high: must be 0.2 to 1", "window.low: must be 0.1 to 0.99", "recall.share: must be 0 to 0.5", "recall.deadline: must be positive"} {
		if err == nil || !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// Keys that are not there, values of the wrong kind and values out of range are told together, wherever they stand, each once.
func TestMistakesOfAllKinds(t *testing.T) {
	r := newRegistry(t, &shop{})
	_, err := r.Load(yaml("window: {high: 2}\nrecentMessages: -1\nretreiver: x\ntokenizer: gpt2\nsearchers: {foo: {}, bar: {}}\nagents:\n  coder: {failur: strict, recall: {share: 9}}\n  writer: {}\narms:\n  - {name: a}\n  - {name: a, weight: -1}\n"))
	want := []string{
		`retreiver: unknown key "retreiver"`, `agents.coder.failur: unknown key`, "window.high: must be 0.2 to 1", "recentMessages: must be ", `tokenizer: unknown tokenizer "gpt2"`,
		`searchers: unknown searcher "foo"`, `searchers: unknown searcher "bar"`, "agents.coder: core: config: recall.share: must be 0 to 0.5", `arms.1.name: the arm "a" is there twice`, "arms.1.weight: must be 0 to 1e9",
	}
	if err == nil || !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf(": %d mistakes:\n", len(want))) {
		t.Errorf("Load = %v, want %d mistakes", err, len(want))
	}
	for _, text := range want {
		if err != nil && strings.Count(err.Error(), text) != 1 {
			t.Errorf("%q is there %d times:\n%v", text, strings.Count(err.Error(), text), err)
		}
	}
}

// What a parser lets pass, and what it does not say where, of every format.
func TestWhatParsersLetPass(t *testing.T) {
	for _, test := range []struct{ format, data, want string }{
		{"yaml", "\tstore: disk\n", "line 1: found character that cannot start any token"},
		{"yaml", "store: {type: disk\n", "line 1: did not find expected"},
		{"yaml", "retriever: recent\nstore: {type: disk\n", "line 2: did not find expected"},
		{"yaml", "store: disk\nretriever: *b\n", "line 2: unknown anchor"},
		{"yaml", "store: disk\n---\nstore: tape\n", "line 2: a second document begins"},
		{"yaml", "# one\n--- # two\nstore: disk\n---\n# nothing\nretriever: recent\n", "line 4: a second document begins"},
		{"json", `{"store": "disk", "store": "tape"}`, `line 1: the key "store" is there twice`},
		{"json", "{\"agents\": {\"a\": {},\n \"b\": [{\"a\": 1}],\n\"a\": {}}}", `line 3: the key "a" is there twice`},
		{"json5", "{store: 'disk', /* store: */\n// store:\n'store': 'tape'}", `line 3: the key "store" is there twice`},
		{"toml", "store = 'disk'\nretriever = 'recent'\nstore = 'tape'\n", "line 3: toml: key store is already defined"},
	} {
		if _, err := newRegistry(t, &shop{}).Load(registry.Bytes("x", test.format, []byte(test.data))); err == nil || !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: %v, want %q", test.format, test.data, err, test.want)
		}
	}
	for _, test := range []struct{ format, data string }{
		{"yaml", "---\nstore: disk\n"},
		{"yaml", "# one\n---\nstore: disk\n---\n# nothing more\n"},
		{"yaml", "store: disk\n...\n"},
		{"json", `{"store": {"type": "disk"}, "agents": {"a": {}, "b": {"store": "disk", "retriever": "recent"}}}`},
		{"json5", `{store: {type: "di\
sk"}, agents: {a: {}, 'type': {}, "a\"b": {}}, /* "store": */ $schema: "{store", } // store`},
	} {
		if _, err := newRegistry(t, &shop{}).Load(registry.Bytes("x", test.format, []byte(test.data))); err != nil {
			t.Errorf("%s %q: %v", test.format, test.data, err)
		}
	}
}
