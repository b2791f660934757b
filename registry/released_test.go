package registry_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/registry"
)

// oldShop is what configurations were made of before: a key is gone, a default and a preset were others, and a store is no more.
const oldShop = `{
 "version": "0.1.0",
 "keys": {"window.low": 0.9, "window.shape": "round", "recentMessages": 20},
 "parts": {"retriever recent": {}, "store disk": {"path": "x", "colour": "red"}, "store tape": {}, "searcher lexical": {"k9": 1}},
 "presets": {"composed": {"store": "disk"}}
}`

// What a file has to change, or now gets otherwise, is told for every place that a key can stand in.
func TestUpgrade(t *testing.T) {
	r := newRegistry(t, &shop{})
	if err := registry.AddReleased(r, []byte(oldShop)); err != nil {
		t.Fatal(err)
	}
	unsaid := []registry.Change{{Path: "window.low", Was: 0.9, Is: registry.DefaultConfig().Core.Window.Low}}
	store := registry.Change{Path: "store", Was: "disk", Is: "memory"}
	for _, tt := range []struct {
		name, text string
		want       []registry.Change
	}{
		{"nothing said", "", append([]registry.Change{store}, unsaid...)},
		{"all said", "window: {low: 0.9}\nstore: memory\n", nil},
		{"null says nothing", "window: {low: null}\nstore: memory\n", unsaid},
		{"gone", "window: {low: 0.5, shape: square}\nstore: {type: disk, colour: blue, path: x}\nsearchers: {lexical: {k9: 2}}\n", []registry.Change{
			{Path: "searchers.lexical.k9", Gone: true}, {Path: "store.colour", Gone: true}, {Path: "window.shape", Gone: true},
		}},
		{"a part that is gone", "window: {low: 0.5}\nstore: tape\n", []registry.Change{{Path: "store.tape", Gone: true}}},
		{"agents and arms", "window: {low: 0.5}\nstore: memory\nagents: {a.b: {window: {shape: x}}}\narms: [{name: a, override: {window: {shape: y}}}]\n", []registry.Change{
			{Path: `agents."a.b".window.shape`, Gone: true}, {Path: "arms.0.override.window.shape", Gone: true},
		}},
		{"a host's form", "plugins: {entries: {p: {config: {window: {shape: x}}}}}\n", []registry.Change{{Path: "plugins.entries.p.config.window.shape", Gone: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.Upgrade(yaml(tt.text), "0.1.0")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, version := range []string{"", "0.2.0"} {
		if _, err := r.Upgrade(yaml(""), version); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("version %q: %v", version, err)
		}
	}
	if _, err := r.Upgrade(yaml("["), "0.1.0"); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// Versions are known once, oldest first, and only as what they are.
func TestAddReleased(t *testing.T) {
	r := newRegistry(t, &shop{})
	for _, version := range []string{"0.10.0", "0.9.1", "1.0.0"} {
		data, err := json.Marshal(r.Released(version))
		if err != nil {
			t.Fatal(err)
		}
		if err := registry.AddReleased(r, data); err != nil {
			t.Fatal(err)
		}
		if err := registry.AddReleased(r, data); !errors.Is(err, core.ErrConflict) {
			t.Errorf("the same version twice: %v", err)
		}
		if got, err := r.Upgrade(yaml("window: {high: 0.8}\n"), version); err != nil || len(got) != 0 {
			t.Errorf("from this version to itself: %+v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"0.9.1", "0.10.0", "1.0.0"}, r.Versions()); diff != "" {
		t.Error(diff)
	}
	for _, data := range []string{"", "{}", "[]"} {
		if err := registry.AddReleased(r, []byte(data)); err == nil {
			t.Errorf("%q is taken", data)
		}
	}
}
