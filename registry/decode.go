package registry

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
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
		return d.list(v, dst, at)
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
	for _, key := range order {
		f, ok := byKey[key]
		if !ok {
			if slices.Contains(also, key) {
				continue
			}
			return unknownKey(at, key, append(keysOf(fields), also...))
		}
		if err := d.value(m[key], dst.FieldByIndex(f.index), f.kind, at.at(key)); err != nil {
			return err
		}
	}
	return nil
}

func unknownKey(at path, key string, known []string) error {
	slices.Sort(known)
	return fmt.Errorf("%s: %w", at.at(key), unknown("key", key, known))
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
			old, _ := elem.Interface().(Override)
			elem.Set(reflect.ValueOf(mergeOverride(old, over)))
		} else if err := d.value(m[key], elem, "", at.at(key)); err != nil {
			return err
		}
		out.SetMapIndex(k, elem)
	}
	dst.Set(out)
	return nil
}

func (d *decoder) list(v any, dst reflect.Value, at path) error {
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
	for i, item := range items {
		if t.Elem() == armType {
			out.Index(i).Set(reflect.ValueOf(Arm{Weight: 1}))
		}
		if err := d.value(item, out.Index(i), "", at.at(strconv.Itoa(i))); err != nil {
			return err
		}
	}
	dst.Set(out)
	return nil
}

func duration(v any, dst reflect.Value, at path) error {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case envText:
		s = string(v)
	default:
		return mismatch(at, dst.Type(), v)
	}
	n, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`%s: want a duration such as "2s" or "1h30m", found another string: %w`, at, core.ErrInvalid)
	}
	dst.SetInt(int64(n))
	return nil
}

// scalar reads booleans, strings and numbers. Nothing is converted except from the environment.
func scalar(v any, dst reflect.Value, at path) error {
	t := dst.Type()
	if s, ok := v.(envText); ok {
		if v = fromEnv(string(s), t); v == nil {
			return fmt.Errorf("%s: want %s, found text that is none: %w", at, article(typeName(t)), core.ErrInvalid)
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			dst.SetBool(b)
			return nil
		}
	case reflect.String:
		if s, ok := v.(string); ok {
			dst.SetString(s)
			return nil
		}
	case reflect.Float32, reflect.Float64:
		if f, ok := number(v); ok {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("%s: want a finite number: %w", at, core.ErrInvalid)
			}
			dst.SetFloat(f)
			return nil
		}
	default:
		if f, ok := number(v); ok {
			return integer(v, f, dst, at)
		}
	}
	return mismatch(at, t, v)
}

// fromEnv reads text as a scalar of type t; nil when it is none.
func fromEnv(s string, t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return s
	case reflect.Bool:
		if b, err := strconv.ParseBool(s); err == nil {
			return b
		}
	case reflect.Float32, reflect.Float64:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	default:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	}
	return nil
}

func number(v any) (float64, bool) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return float64(r.Int()), r.Type() != durationType
	case r.CanUint():
		return float64(r.Uint()), true
	case r.CanFloat():
		return r.Float(), true
	}
	return 0, false
}

// integer stores a whole number; f is v as a float, which formats without integers give.
func integer(v any, f float64, dst reflect.Value, at path) error {
	if f != math.Trunc(f) {
		return fmt.Errorf("%s: want an integer, found a number with a fraction: %w", at, core.ErrInvalid)
	}
	var n int64
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		n = r.Int()
	case math.Abs(f) < 1<<63: // false for the infinities and for what is not a number
		n = int64(f)
	default:
		return fmt.Errorf("%s: number out of range: %w", at, core.ErrInvalid)
	}
	switch {
	case dst.CanInt() && !dst.OverflowInt(n):
		dst.SetInt(n)
	case dst.CanUint() && n >= 0 && !dst.OverflowUint(uint64(n)):
		dst.SetUint(uint64(n))
	default:
		return fmt.Errorf("%s: number out of range: %w", at, core.ErrInvalid)
	}
	return nil
}

// mismatch says which type was wanted and found; never the value, which may be a secret.
func mismatch(at path, want reflect.Type, found any) error {
	name := article(typeName(want))
	if want == durationType {
		name = `a duration such as "2s"`
	}
	return fmt.Errorf("%s: want %s, found %s: %w", at, name, foundName(found), core.ErrInvalid)
}

func foundName(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string, envText:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case time.Time:
		return "a date"
	default:
		if _, ok := number(v); ok {
			return "a number"
		}
		return "something else"
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
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
