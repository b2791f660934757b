package registry

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
)

// hostKey is the key of a host's configuration below an agent.
const hostKey = "contextEngine"

// isHost reports whether a tree is a host's configuration.
func isHost(tree map[string]any) bool {
	if _, ok := tree["plugins"].(map[string]any); ok {
		return true
	}
	agents, _ := tree["agents"].(map[string]any)
	for _, a := range agents {
		if list, ok := a.([]any); ok {
			for _, item := range list {
				if m, ok := item.(map[string]any); ok && m[hostKey] != nil {
					return true
				}
			}
		}
		if m, ok := a.(map[string]any); ok && m[hostKey] != nil {
			return true
		}
	}
	return false
}

// fragment is a part of a host's configuration in the own form, and where it stood.
type fragment struct {
	tree map[string]any
	at   path
}

// host reads a host's configuration on top of cfg.
func (d *decoder) host(tree map[string]any, cfg *Config) error {
	d.flat = true
	var base []fragment
	plugins, err := object(tree["plugins"], path{"plugins"})
	if err != nil {
		return err
	}
	engine := cfg.Engine.Type
	agents, err := object(tree["agents"], path{"agents"})
	if err != nil {
		return err
	}
	defaults, _ := agents["defaults"].(map[string]any)
	at := path{"agents", "defaults"}
	if base, err = d.slot(plugins, defaults[hostKey]); err != nil {
		return err
	}
	if len(base) > 0 {
		engine = typeOf(base[0].tree["engine"])
	}
	if m := defaults; m[hostKey] != nil && (engine != LegacyEngine || len(base) == 0 || slotted(plugins)) {
		more, err := d.hostObject(m[hostKey], engine, at.at(hostKey), configFields())
		if err != nil {
			return err
		}
		base = append(base, more...)
	}
	limits, ignored := HostLimits(tree["channels"])
	cfg.Core.History.Limits, cfg.Ignored = cfg.Core.History.Limits.Over(limits), append(cfg.Ignored, ignored...)
	for _, f := range base {
		if err := d.overlay(f.tree, cfg, f.at, configFields()); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		m, ok := agents[id].(map[string]any)
		if ok && id != "defaults" {
			if err := d.hostAgent(id, m[hostKey], path{"agents", id, hostKey}, cfg); err != nil {
				return err
			}
		}
	}
	list, _ := agents["list"].([]any)
	for i, item := range list {
		m, _ := item.(map[string]any)
		if id, ok := m["id"].(string); ok && id != "" {
			if err := d.hostAgent(id, m[hostKey], path{"agents", "list", strconv.Itoa(i), hostKey}, cfg); err != nil {
				return err
			}
		}
	}
	return nil
}

// slotted reports whether a host's slot names an engine.
func slotted(plugins map[string]any) bool {
	slots, _ := plugins["slots"].(map[string]any)
	return slots[hostKey] != nil
}

// slot reads what a host's plugin section says; the first fragment holds the engine's name. Where the slot is empty, the engine that all
// agents are given, if one is named there, has its plugin's entry all the same.
func (d *decoder) slot(plugins map[string]any, chosen any) ([]fragment, error) {
	at := path{"plugins"}
	slots, err := object(plugins["slots"], at.at("slots"))
	if err != nil {
		return nil, err
	}
	where := at.at("slots").at(hostKey)
	id, ok := slots[hostKey].(string)
	if !ok {
		if slots[hostKey] != nil {
			return nil, mismatch(where, reflect.TypeFor[string](), slots[hostKey])
		}
		if id = engineName(chosen); id == "" {
			return nil, nil
		}
		where = path{"agents", "defaults", hostKey}
	}
	engine := d.r.engineOf(id)
	p, err := d.r.look(KindEngine, engine)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	entries, err := object(plugins["entries"], at.at("entries"))
	if err != nil {
		return nil, err
	}
	owners := slices.Compact(append([]string{id, engine}, p.plugins...))
	denied, _ := plugins["deny"].([]any)
	off := plugins["enabled"] == false
	var out []fragment
	for _, owner := range owners {
		entry, err := object(entries[owner], at.at("entries").at(owner))
		if err != nil {
			return nil, err
		}
		off = off || entry["enabled"] == false || slices.Contains(denied, any(owner))
		if entry["config"] == nil || len(out) > 0 {
			continue
		}
		config := entry["config"]
		if m, ok := config.(map[string]any); ok {
			config = without(m, p.pluginKeys)
		}
		if out, err = d.hostObject(config, engine, at.at("entries").at(owner).at("config"), configFields()); err != nil {
			return nil, err
		}
	}
	selected := []fragment{{tree: map[string]any{"engine": engine}, at: slices.Clone(where[:len(where)-1])}}
	if off {
		selected[0].tree["engine"] = LegacyEngine
		return selected, nil
	}
	return append(selected, out...), nil
}

// engineName returns the engine that a host's key names, by itself or in an object; empty when it names none.
func engineName(v any) string {
	if m, ok := v.(map[string]any); ok {
		return cmp.Or(typeOf(m["engine"]), typeOf(m[typeKey]))
	}
	return typeOf(v)
}

// without returns m without some keys.
func without(m map[string]any, keys []string) map[string]any {
	m = maps.Clone(m)
	for _, k := range keys {
		delete(m, k)
	}
	return m
}

// hostAgent reads what a host's configuration says about one agent.
func (d *decoder) hostAgent(id string, v any, at path, cfg *Config) error {
	if v == nil {
		return nil
	}
	fragments, err := d.hostObject(v, cfg.Engine.Type, at, overrideFields())
	if err != nil {
		return err
	}
	agents := maps.Clone(cfg.Agents)
	if agents == nil {
		agents = make(map[string]Override)
	}
	for _, f := range fragments {
		scratch := *cfg
		probe := decoder{r: d.r, flat: true}
		if err := probe.overlay(f.tree, &scratch, f.at, overrideFields()); err != nil {
			return err
		}
		agents[id] = mergeOverride(agents[id], f.tree)
	}
	cfg.Agents = agents
	return nil
}

// hostObject turns an engine's id, or an object with its options and any other keys, into the own form.
func (d *decoder) hostObject(v any, engine string, at path, fields []field) ([]fragment, error) {
	named := ""
	m, ok := v.(map[string]any)
	if s, isName := v.(string); isName {
		named, m, ok = s, map[string]any{}, true
	}
	if !ok {
		return nil, fmt.Errorf("%s: want an engine's name or an object, found %s: %w", at, foundName(v), core.ErrInvalid)
	}
	m = maps.Clone(m)
	for _, key := range []string{"engine", typeKey} {
		name, ok := m[key].(string)
		if !ok {
			continue
		}
		delete(m, key)
		if named != "" && named != name {
			return nil, fmt.Errorf("%s: names another engine than the key beside it: %w", at.at(key), core.ErrInvalid)
		}
		named = name
	}
	if named == "" {
		named = cmp.Or(typeOf(m["engine"]), engine, LegacyEngine)
	}
	named = d.r.engineOf(named)
	p, err := d.r.look(KindEngine, named)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	nested, err := object(m["config"], at.at("config"))
	if err != nil {
		return nil, err
	}
	delete(m, "config")
	first, err := sortKeys(m, p, at, fields)
	if err != nil {
		return nil, err
	}
	out := []fragment{first}
	if nested != nil {
		second, err := sortKeys(nested, p, at.at("config"), fields)
		if err != nil {
			return nil, err
		}
		out = append(out, second)
	}
	return out, nil
}

// sortKeys tells an engine's options from the keys of the own form. An engine's own key goes first where both have it.
func sortKeys(m map[string]any, p *part, at path, fields []field) (fragment, error) {
	own, all := keysOf(fieldsOf(p.config)), keysOf(fields)
	tree := make(map[string]any)
	engine := map[string]any{typeKey: p.name}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case slices.Contains(own, key):
			engine[key] = m[key]
		case key == "engine":
			o, err := object(m[key], at.at(key))
			if err != nil {
				return fragment{}, err
			}
			mergeTree(engine, o)
			engine[typeKey] = p.name
		case slices.Contains(all, key):
			tree[key] = m[key]
		default:
			known := slices.Concat(own, all)
			slices.Sort(known)
			return fragment{}, unknownKey(at, key, slices.Compact(known))
		}
	}
	tree["engine"] = engine
	return fragment{tree: tree, at: at}, nil
}

// object returns v as an object; nil when it is not there.
func object(v any, at path) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("%s: want an object, found %s: %w", at, foundName(v), core.ErrInvalid)
	}
	return m, nil
}
