package builtin_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

var releasing = flag.String("released", "", "version whose keys TestReleased writes into released/")

// What is said of older versions is true of this one: a key is gone if and only if a file with it is refused, and what is told
// as the default is the default.
func TestReleased(t *testing.T) {
	r := builtin.New()
	if *releasing != "" {
		data, err := json.MarshalIndent(r.Released(*releasing), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("released", *releasing+".json"), append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("wrote released/%s.json", *releasing)
	}
	files, err := filepath.Glob("released/*.json")
	if err != nil || len(files) == 0 || len(r.Versions()) != len(files) && *releasing == "" {
		t.Fatalf("%d files, %v; versions %q", len(files), err, r.Versions())
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var old registry.Released
		if err := json.Unmarshal(data, &old); err != nil || old.Version+".json" != filepath.Base(file) {
			t.Fatalf("%s: version %q, %v", file, old.Version, err)
		}
		checked, gone := 0, 0
		check := func(tree map[string]any) {
			t.Helper()
			changes, err := r.Upgrade(registry.Values("old", tree), old.Version)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Load(registry.Values("old", tree))
			refused := err != nil && strings.Contains(err.Error(), "unknown ")
			told := slices.ContainsFunc(changes, func(c registry.Change) bool { return c.Gone })
			if told != refused {
				t.Errorf("%s: %v: told as gone %v, but Load says %v", old.Version, tree, told, err)
			}
			checked++
			if told {
				gone++
			}
		}
		for key, v := range old.Keys {
			if v != nil {
				check(nested(key, v))
			}
		}
		for part, keys := range old.Parts {
			kind, name, _ := strings.Cut(part, " ")
			for key, v := range keys {
				if v == nil {
					continue
				}
				options := nested(key, v)
				switch kind {
				case "searcher":
					check(map[string]any{"searchers": map[string]any{name: options}})
				case "tokenizer":
				default:
					options["type"] = name
					check(map[string]any{kind: options})
				}
			}
		}
		if checked < 50 || old.Version == "0.1.0" && gone == 0 {
			t.Errorf("%s: %d keys were looked at, %d of them gone", old.Version, checked, gone)
		}
	}
}

// From 0.1.0 on these are others; the change log says so, too.
func TestUpgradeFromTheFirst(t *testing.T) {
	r := builtin.New()
	got, err := r.Upgrade(registry.Values("old", map[string]any{"retriever": map[string]any{"type": "hybrid", "k": 60, "limit": 50}}), "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]any)
	for _, k := range r.Keys() {
		keys[k.Path] = k.Default
	}
	var paths []string
	for _, c := range got {
		paths = append(paths, c.Path)
		if is, ok := keys[c.Path]; ok && is != nil && is != c.Is {
			t.Errorf("%s is told to be %v, and is %v", c.Path, c.Is, is)
		}
	}
	want := "recall.candidates recall.share retriever.k searchers.lexical.decay searchers.lexical.lengthPower searchers.lexical.lengthTerms store window.low"
	if strings.Join(paths, " ") != want {
		t.Errorf("changed: %q, want %q", paths, want)
	}
	log, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"`k` of the retriever `hybrid` is gone", "the default store is `sqlite` (was `memory`)", "`window.low` is 0.57"} {
		if !strings.Contains(string(log), text) {
			t.Errorf("CHANGELOG.md does not say %q", text)
		}
	}
}

// nested is a tree with one key.
func nested(key string, v any) map[string]any {
	first, rest, deeper := strings.Cut(key, ".")
	if deeper {
		return map[string]any{first: nested(rest, v)}
	}
	return map[string]any{first: v}
}
