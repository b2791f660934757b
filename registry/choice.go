package registry

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// typeKey is the key that names the part in a Choice.
const typeKey = "type"

// choice reads a name, or an object with the key "type", on top of the Choice in dst.
func (d *decoder) choice(v any, dst reflect.Value, kind Kind, at path) error {
	old, _ := reflect.TypeAssert[Choice](dst)
	name, options, err := splitChoice(v, at)
	if err != nil {
		return err
	}
	next := old.clone()
	if name != "" && name != old.Type {
		// a Choice without a type may hold options for the one that the engine takes anyway
		keep := old.Type == "" && name == d.preset(kind)
		next = Choice{Type: name}
		if keep {
			next.Options = maps.Clone(old.Options)
		}
	}
	if next.Type != "" {
		if _, err := d.r.look(kind, next.Type); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if len(options) > 0 {
		effective := next.Type
		if effective == "" {
			effective = d.preset(kind)
		}
		if effective == "" {
			return fmt.Errorf(`%s: options need the key "type" beside them (known: %s): %w`, at, list(d.r.Names(kind)), core.ErrInvalid)
		}
		p, err := d.r.look(kind, effective)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if next.Options == nil {
			next.Options = make(map[string]any)
		}
		mergeTree(next.Options, options)
		where := at
		if kind == KindEngine && d.flat {
			where = at[:len(at)-1]
		}
		if _, err := d.options(p, options, where); err != nil {
			return err
		}
	}
	dst.Set(reflect.ValueOf(next))
	if kind == KindEngine {
		d.engine = next.Type
	}
	return nil
}

// splitChoice takes the two forms of a Choice apart.
func splitChoice(v any, at path) (name string, options map[string]any, err error) {
	switch v := v.(type) {
	case string:
		name = v
	case envText:
		name = string(v)
	case map[string]any:
		options = maps.Clone(v)
		delete(options, typeKey)
		switch t := v[typeKey].(type) {
		case nil:
			return "", options, nil
		case string:
			name = t
		case envText:
			name = string(t)
		default:
			return "", nil, mismatch(at.at(typeKey), reflect.TypeFor[string](), t)
		}
	default:
		return "", nil, fmt.Errorf(`%s: want a name or an object with the key "type", found %s: %w`, at, foundName(v), core.ErrInvalid)
	}
	if name == "" {
		return "", nil, fmt.Errorf("%s: the name of the part is empty: %w", at, core.ErrInvalid)
	}
	return name, options, nil
}

// options reads the options of a part on top of its defaults.
func (d *decoder) options(p *part, options map[string]any, at path) (reflect.Value, error) {
	cfg := p.defaults()
	if err := d.structure(options, cfg, fieldsOf(p.config), at, typeKey); err != nil {
		return reflect.Value{}, err
	}
	return cfg, nil
}

// preset returns what the engine chosen so far takes for a kind where nobody says otherwise.
func (d *decoder) preset(kind Kind) string {
	name := d.engine
	if name == "" {
		name = DefaultEngine
	}
	p := d.r.parts[KindEngine][name]
	switch {
	case kind == KindEngine:
		return name
	case p == nil:
		return ""
	case kind == KindStore:
		return p.parts.Store
	case kind == KindRetriever:
		return p.parts.Retriever
	case kind == KindCompactor:
		return p.parts.Compactor
	}
	return ""
}

// searchers reads a list of names, or an object with the options of each.
func (d *decoder) searchers(v any, dst reflect.Value, at path) error {
	old, _ := reflect.TypeAssert[Searchers](dst)
	out := make(Searchers)
	if _, ok := v.(map[string]any); !ok {
		var names []string
		if _, ok := v.(string); ok {
			return fmt.Errorf("%s: want a list of names, such as [lexical], or an object with the options of each, found a string: %w", at, core.ErrInvalid)
		}
		if err := d.list(v, reflect.ValueOf(&names).Elem(), "", at); err != nil {
			return err
		}
		m := make(map[string]any, len(names))
		for _, n := range names {
			m[n] = map[string]any{}
			if o, ok := old[n]; ok {
				m[n] = o
			}
		}
		old, v = nil, m
	}
	maps.Copy(out, old)
	m, _ := v.(map[string]any)
	var found mistakes
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p, err := d.r.look(KindSearcher, name)
		if err != nil {
			found.add(fmt.Errorf("%s: %w", at, err))
			continue
		}
		options, ok := m[name].(map[string]any)
		if !ok && m[name] != nil {
			found.add(mismatch(at.at(name), reflect.TypeFor[Searchers]().Elem(), m[name]))
			continue
		}
		_, err = d.options(p, options, at.at(name))
		if found.add(err); err != nil {
			continue
		}
		merged := make(map[string]any)
		mergeTree(merged, out[name])
		mergeTree(merged, options)
		out[name] = merged
	}
	dst.Set(reflect.ValueOf(out))
	return found.err()
}

// mergeTree lays src over dst: objects are merged, everything else is replaced. What dst then holds shares nothing with src that
// a later merge would change.
func mergeTree(dst, src map[string]any) {
	for k, v := range src {
		m, ok := v.(map[string]any)
		if !ok {
			if v != nil {
				dst[k] = v
			}
			continue
		}
		into := make(map[string]any, len(m))
		if old, ok := dst[k].(map[string]any); ok {
			mergeTree(into, old)
		}
		mergeTree(into, m)
		dst[k] = into
	}
}

// mergeOverride lays a further override for the same agent over an earlier one. Choosing another type drops the
// options of the one before, and choosing another engine drops the parts chosen before.
func mergeOverride(old, over Override) Override {
	out := make(Override, len(old)+len(over))
	mergeTree(out, old)
	if name := typeOf(over["engine"]); name != "" && name != typeOf(out["engine"]) && out["engine"] != nil {
		for _, key := range partKeys {
			delete(out, key)
		}
	}
	rest := maps.Clone(over)
	for _, key := range choiceKeys {
		v, ok := over[key]
		if !ok || v == nil {
			continue
		}
		delete(rest, key)
		if name := typeOf(v); name != "" && name != typeOf(out[key]) {
			out[key] = v
			continue
		}
		both := make(map[string]any)
		for _, layer := range []any{out[key], v} {
			if m, ok := layer.(map[string]any); ok {
				mergeTree(both, m)
			} else if name := typeOf(layer); name != "" {
				both[typeKey] = name
			}
		}
		out[key] = both
	}
	mergeTree(out, rest)
	return out
}

// choiceKeys hold a Choice; partKeys are dropped when the engine changes.
var (
	choiceKeys = [...]string{"engine", "store", "retriever", "compactor", "model", "embedder"}
	partKeys   = [...]string{"store", "retriever", "compactor", "searchers"}
)

// typeOf returns the name in a Choice as a file holds it; empty when it has none.
func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case envText:
		return string(v)
	case map[string]any:
		return typeOf(v[typeKey])
	}
	return ""
}
