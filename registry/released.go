package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Released is what configurations of a released version were made of.
type Released struct {
	// Version is semantic, without a v.
	Version string `json:"version"`
	// Keys are the keys of a configuration file with their defaults, Parts those of each part, by kind and name as in "retriever hybrid".
	Keys  map[string]any            `json:"keys"`
	Parts map[string]map[string]any `json:"parts"`
	// Presets are the parts that an engine took where nobody named one: by engine, then by kind.
	Presets map[string]map[string]string `json:"presets"`
}

// Released returns what configurations of this registry are made of, as it is kept when a version is released.
func (r *Registry) Released(version string) Released {
	out := Released{Version: version, Keys: make(map[string]any), Parts: make(map[string]map[string]any), Presets: make(map[string]map[string]string)}
	for _, k := range r.Keys() {
		out.Keys[k.Path] = k.Default
	}
	for _, p := range r.Describe() {
		keys := make(map[string]any)
		for _, k := range p.Keys {
			keys[k.Path] = k.Default
		}
		out.Parts[string(p.Kind)+" "+p.Name] = keys
		if p.Kind == KindEngine {
			out.Presets[p.Name] = make(map[string]string)
			d := decoder{r: r, engine: p.Name}
			for _, kind := range []Kind{KindStore, KindRetriever, KindCompactor} {
				if name := d.preset(kind); name != "" {
					out.Presets[p.Name][string(kind)] = name
				}
			}
			if names := r.parts[KindEngine][p.Name].parts.Searchers; len(names) > 0 {
				out.Presets[p.Name][searchersKey] = strings.Join(names, ",")
			}
		}
	}
	return out
}

// AddReleased tells the registry what configurations of an older version were made of, for Upgrade. It fails with
// core.ErrInvalid when data is no Released in JSON, and with core.ErrConflict when that version is there.
func AddReleased(r *Registry, data []byte) error {
	var old Released
	if err := json.Unmarshal(data, &old); err != nil || old.Version == "" {
		return fmt.Errorf("registry: released: want a version with its keys in JSON: %w", cmp.Or(err, core.ErrInvalid))
	}
	if slices.ContainsFunc(r.released, func(have Released) bool { return have.Version == old.Version }) {
		return fmt.Errorf("registry: released: version %s: %w", old.Version, core.ErrConflict)
	}
	r.released = append(r.released, old)
	slices.SortFunc(r.released, func(a, b Released) int { return compareVersions(a.Version, b.Version) })
	return nil
}

// compareVersions compares two semantic versions by their numbers.
func compareVersions(a, b string) int {
	number := func(version string, i int) int {
		numbers := strings.Split(version, ".")
		if i >= len(numbers) {
			return 0
		}
		n, _ := strconv.Atoi(numbers[i])
		return n
	}
	for i := range 3 {
		if c := cmp.Compare(number(a, i), number(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

// Versions lists the versions that AddReleased told of, oldest first.
func (r *Registry) Versions() []string {
	var out []string
	for _, old := range r.released {
		out = append(out, old.Version)
	}
	return out
}

// Change is something that a configuration says, or leaves unsaid, and that means something else than in an older version.
type Change struct {
	// Path is the key, as in "retriever.k".
	Path string `json:"path"`
	// Gone says that the key is there no longer: a file that has it is refused.
	Gone bool `json:"gone,omitempty"`
	// Was and Is are the defaults, where the file says nothing.
	Was any `json:"was,omitempty"`
	Is  any `json:"is,omitempty"`
}

// Upgrade says what a configuration that was written for an older version has to change, or now gets otherwise. The version is one of
// Versions; the error is ErrInvalid when it is not, or when the source cannot be read.
func (r *Registry) Upgrade(source Source, version string) ([]Change, error) {
	at := slices.IndexFunc(r.released, func(old Released) bool { return old.Version == version })
	if at < 0 {
		return nil, fmt.Errorf("registry: upgrade: %w", unknown("version", version, r.Versions()))
	}
	tree, err := source.read()
	if err != nil {
		return nil, fmt.Errorf("registry: upgrade %q: %w", source.name, err)
	}
	u := upgrade{old: r.released[at], now: r.Released("")}
	for _, s := range scopesOf(tree) {
		u.scope(s)
	}
	slices.SortStableFunc(u.found, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return u.found, nil
}

// scope is a part of a document that holds keys of a configuration.
type scope struct {
	at   path
	tree map[string]any
	// engine is the one that holds there.
	engine string
	// whole says that what is not said there has its default.
	whole bool
}

// scopesOf finds them: the document, and what stands for agents, arms and in a host's form for plugins.
func scopesOf(tree map[string]any) []scope {
	engine := DefaultEngine
	if name, _, err := splitChoice(tree["engine"], nil); err == nil && name != "" {
		engine = name
	}
	out := []scope{{tree: tree, engine: engine, whole: !isHost(tree)}}
	add := func(at path, v any) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, scope{at: at, tree: m, engine: engine})
		}
	}
	agents, _ := tree["agents"].(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		add(path{"agents", id}, agents[id])
		if m, ok := agents[id].(map[string]any); ok {
			add(path{"agents", id, "contextEngine"}, m["contextEngine"])
		}
	}
	arms, _ := tree["arms"].([]any)
	for i, arm := range arms {
		if m, ok := arm.(map[string]any); ok {
			add(path{"arms", strconv.Itoa(i), "override"}, m["override"])
		}
	}
	plugins, _ := tree["plugins"].(map[string]any)
	entries, _ := plugins["entries"].(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if m, ok := entries[id].(map[string]any); ok {
			add(path{"plugins", "entries", id, "config"}, m["config"])
		}
	}
	return out
}

// upgrade compares a document with what two versions make of it.
type upgrade struct {
	old, now Released
	found    []Change
}

func (u *upgrade) scope(s scope) {
	u.keys(s.at, s.tree, u.old.Keys, u.now.Keys, s.whole)
	for _, kind := range []Kind{KindEngine, KindStore, KindRetriever, KindCompactor, KindModel} {
		for _, key := range keysFor(kind) {
			u.choice(s, kind, key)
		}
	}
	searchers := make(map[string]any)
	switch said := s.tree[searchersKey].(type) {
	case map[string]any:
		searchers = said
	case []any:
		for _, name := range said {
			searchers[fmt.Sprint(name)] = nil
		}
	case nil:
		if preset := u.now.Presets[s.engine][searchersKey]; s.whole && preset != "" {
			for name := range strings.SplitSeq(preset, ",") {
				searchers[name] = nil
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(searchers)) {
		options, _ := searchers[name].(map[string]any)
		u.options(s.at.at(searchersKey).at(name), string(KindSearcher)+" "+name, options)
	}
}

const searchersKey = "searchers"

// keysFor are the keys of a configuration that choose a part of a kind.
func keysFor(kind Kind) []string {
	if kind == KindModel {
		return []string{"model", "embedder"}
	}
	return []string{string(kind)}
}

// choice compares the part that a key chooses, or that is taken where it chooses none.
func (u *upgrade) choice(s scope, kind Kind, key string) {
	var name string
	var options map[string]any
	if v := s.tree[key]; v != nil {
		var err error
		if name, options, err = splitChoice(v, nil); err != nil {
			return // Load says so
		}
	}
	if name == "" && (s.whole || options != nil) {
		was, is := u.old.Presets[s.engine][key], u.now.Presets[s.engine][key]
		if was != is && was != "" {
			u.found = append(u.found, Change{Path: s.at.at(key).String(), Was: was, Is: is})
			return
		}
		name = is
	}
	part := string(kind) + " " + name
	if u.old.Parts[part] != nil && u.now.Parts[part] == nil {
		u.found = append(u.found, Change{Path: s.at.at(key).at(name).String(), Gone: true})
		return
	}
	u.options(s.at.at(key), part, options)
}

// options compares the options of a part, and of parts in them.
func (u *upgrade) options(at path, part string, options map[string]any) {
	u.keys(at, options, u.old.Parts[part], u.now.Parts[part], true)
}

// keys compares keys that are, or are not, in a tree.
func (u *upgrade) keys(at path, tree map[string]any, was, is map[string]any, whole bool) {
	for _, key := range slices.Sorted(maps.Keys(was)) {
		p := at
		for level := range strings.SplitSeq(key, ".") {
			p = p.at(level)
		}
		now, there := is[key]
		switch said := holds(tree, strings.Split(key, ".")); {
		case said && !there:
			u.found = append(u.found, Change{Path: p.String(), Gone: true})
		case !said && there && whole && !reflect.DeepEqual(plainJSON(was[key]), plainJSON(now)):
			u.found = append(u.found, Change{Path: p.String(), Was: was[key], Is: now})
		}
	}
}

// holds reports whether a tree says something for a key.
func holds(tree map[string]any, levels []string) bool {
	v, ok := tree[levels[0]]
	if !ok || v == nil || len(levels) == 1 {
		return ok && v != nil
	}
	m, ok := v.(map[string]any)
	return ok && holds(m, levels[1:])
}

// plainJSON is a value as JSON brings it back.
func plainJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		return v
	}
	var out any
	_ = json.Unmarshal(text, &out) // it was just written
	return out
}
