package registry

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// envText is a value from the environment, which knows no types: it is read as whatever the key wants.
type envText string

// path is where in a document a value stands.
type path []string

// at returns p with a further key; it never writes to p's array.
func (p path) at(key string) path { return append(slices.Clip(p), key) }

func (p path) String() string {
	parts := make([]string, len(p))
	for i, key := range p {
		if key = clip(key); key == "" || strings.ContainsAny(key, ". \t\n\"") {
			key = strconv.Quote(key)
		}
		parts[i] = key
	}
	return strings.Join(parts, ".")
}

// decoder reads trees of maps, slices and scalars into configuration structs, and refuses what it does not know.
type decoder struct {
	r *Registry
	// engine is the engine chosen so far; its parts are the choice where a Choice has options and no type.
	engine string
	// flat says that the engine's options stand among the other keys, as in a host's configuration.
	flat bool
}

// value reads v into dst, on top of what dst holds. Null leaves dst as it is.
func (d *decoder) value(v any, dst reflect.Value, kind Kind, at path) error {
	if v == nil {
		return nil
	}
	t := dst.Type()
	switch t {
	case choiceType:
		return d.choice(v, dst, kind, at)
	case searchersType:
		return d.searchers(v, dst, at)
	case durationType:
		return duration(v, dst, at)
	case anyType:
		dst.Set(reflect.ValueOf(plain(v)))
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return mismatch(at, t, v)
		}
		return d.structure(m, dst, fieldsOf(t), at)
	case reflect.Map:
		return d.table(v, dst, at)
	case reflect.Slice:
		return d.list(v, dst, kind, at)
	case reflect.Pointer:
		elem := reflect.New(t.Elem())
		if !dst.IsNil() {
			elem.Elem().Set(dst.Elem())
		}
		if err := d.value(v, elem.Elem(), kind, at); err != nil {
			return err
		}
		dst.Set(elem)
		return nil
	}
	return scalar(v, dst, at)
}

// structure reads m into the given fields of dst. The engine goes first: what the other parts may hold follows from it.
func (d *decoder) structure(m map[string]any, dst reflect.Value, fields []field, at path, also ...string) error {
	byKey := make(map[string]field, len(fields))
	for _, f := range fields {
		byKey[f.key] = f
	}
	order := slices.Sorted(maps.Keys(m))
	rank := func(key string) int {
		switch {
		case byKey[key].kind == KindEngine:
			return 0
		case key == "agents", key == "arms":
			return 2
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b string) int { return rank(a) - rank(b) })
	var found mistakes
	for _, key := range order {
		f, ok := byKey[key]
		if !ok {
			if !slices.Contains(also, key) {
				found.add(unknownKey(at, key, append(keysOf(fields), also...)))
			}
			continue
		}
		found.add(d.value(m[key], dst.FieldByIndex(f.index), f.kind, at.at(key)))
	}
	return found.err()
}

// mistakes are all that is wrong with a document: a person mends them at once, not one after the other.
type mistakes []error

// add takes an error, or the mistakes in it; nil adds none, and so does what is there already.
func (m *mistakes) add(err error) {
	if more, ok := errors.AsType[mistakes](err); ok {
		for _, err := range more {
			m.add(err)
		}
	} else if err != nil && !slices.ContainsFunc(*m, func(old error) bool { return old.Error() == err.Error() }) {
		*m = append(*m, err)
	}
}

// err is nil without any, and a single one is itself.
func (m mistakes) err() error {
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

// Error implements error: a line for each.
func (m mistakes) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d mistakes:", len(m))
	for _, err := range m {
		b.WriteString("\n  " + err.Error())
	}
	return b.String()
}

// Unwrap returns all of them.
func (m mistakes) Unwrap() []error { return m }

func unknownKey(at path, key string, known []string) error {
	return fmt.Errorf("%s: %w", at.at(key), unknown("key", key, slices.Sorted(slices.Values(known))))
}

func (d *decoder) table(v any, dst reflect.Value, at path) error {
	m, ok := v.(map[string]any)
	if !ok {
		return mismatch(at, dst.Type(), v)
	}
	t := dst.Type()
	out := reflect.MakeMapWithSize(t, len(m)+dst.Len())
	for it := dst.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		k := reflect.ValueOf(key).Convert(t.Key())
		elem := reflect.New(t.Elem()).Elem()
		if old := out.MapIndex(k); old.IsValid() {
			elem.Set(old)
		}
		if t.Elem() == overrideType {
			over, ok := m[key].(map[string]any)
			if !ok && m[key] != nil {
				return mismatch(at.at(key), t.Elem(), m[key])
			}
			old, _ := reflect.TypeAssert[Override](elem)
			elem.Set(reflect.ValueOf(mergeOverride(old, over)))
		} else if err := d.value(m[key], elem, "", at.at(key)); err != nil {
			return err
		}
		out.SetMapIndex(k, elem)
	}
	dst.Set(out)
	return nil
}

func (d *decoder) list(v any, dst reflect.Value, kind Kind, at path) error {
	if s, ok := v.(envText); ok {
		var items []any
		for item := range strings.SplitSeq(string(s), ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, envText(item))
			}
		}
		v = items
	}
	items, ok := v.([]any)
	if !ok {
		return mismatch(at, dst.Type(), v)
	}
	t := dst.Type()
	out := reflect.MakeSlice(t, len(items), len(items))
	var found mistakes
	for i, item := range items {
		if t.Elem() == armType {
			out.Index(i).Set(reflect.ValueOf(Arm{Weight: 1}))
		}
		found.add(d.value(item, out.Index(i), kind, at.at(strconv.Itoa(i))))
	}
	if err := found.err(); err != nil {
		return err
	}
	dst.Set(out)
	return nil
}

// plain returns v without the types that only this package knows.
func plain(v any) any {
	switch v := v.(type) {
	case envText:
		return string(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	}
	return v
}
