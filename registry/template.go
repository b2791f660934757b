package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Template returns a configuration file in YAML that says what holds without one, each key with its explanation. It loads
// to the same configuration as no file at all. The error is ErrInvalid when the registry lacks the parts that the defaults name.
func (r *Registry) Template() ([]byte, error) {
	cfg, err := r.Load()
	if err != nil {
		return nil, err
	}
	w := &writer{docs: coreDocs()}
	w.line("# Configuration of a context engine. Every key may be left out; what stands here is what holds then.")
	tree := cfg.tree()
	for _, f := range configFields() {
		w.line("")
		w.line("# %s: %s", f.key, cmp.Or(f.doc, w.docs[f.key]))
		switch {
		case f.key == "agents":
			w.line("# agents:\n#   coder:\n#     recentMessages: 30\n#     window: {high: 0.8}")
		case f.key == "arms":
			w.line("# arms:\n#   - {name: a, weight: 1}\n#   - {name: b, weight: 1, agents: [coder], override: {window: {high: 0.8}}}")
		case f.key == "tokenizer":
			w.known(r, KindTokenizer)
			w.entry(0, f.key, tree[f.key], "")
		case f.kind != "":
			w.known(r, f.kind)
			w.choice(r, f, tree[f.key])
		default:
			w.value(0, f, f.key, tree[f.key])
		}
	}
	return []byte(w.String()), nil
}

// writer writes YAML line by line.
type writer struct {
	strings.Builder
	docs map[string]string
}

func (w *writer) line(format string, args ...any) {
	w.WriteString(fmt.Sprintf(format, args...) + "\n")
}

// known lists what there is of a kind.
func (w *writer) known(r *Registry, kind Kind) {
	for _, name := range r.Names(kind) {
		w.line("#   %-12s %s", name, r.parts[kind][name].doc)
	}
}

// choice writes a part and its options; commented out when there is none.
func (w *writer) choice(r *Registry, f field, v any) {
	m, _ := v.(map[string]any)
	if f.typ == searchersType {
		w.line("%s:%s", f.key, braces(m))
		for _, name := range slices.Sorted(maps.Keys(m)) {
			options, _ := m[name].(map[string]any)
			w.line("  %s:%s", scalarText(name), braces(options))
			w.options(r, KindSearcher, name, 2, options)
		}
		return
	}
	name, _ := m[typeKey].(string)
	if name == "" {
		w.line("# %s: {type: NAME}", f.key)
		return
	}
	w.line("%s:", f.key)
	w.line("  type: %s", scalarText(name))
	w.options(r, f.kind, name, 1, m)
}

// options writes the options of a part; secrets and those without a value are commented out.
func (w *writer) options(r *Registry, kind Kind, name string, depth int, m map[string]any) {
	p, err := r.look(kind, name)
	if err != nil {
		return
	}
	for _, f := range fieldsOf(p.config) {
		w.entry(depth, f.key, m[f.key], f.doc)
	}
}

// value writes a key of the engine's own, and the keys below it with their explanations.
func (w *writer) value(depth int, f field, at string, v any) {
	if f.typ.Kind() != reflect.Struct {
		w.entry(depth, f.key, v, "")
		return
	}
	m, _ := v.(map[string]any)
	fields := fieldsOf(f.typ)
	if !hasValue(fields, m) {
		w.line("%s# %s:", indent(depth), f.key)
	} else {
		w.line("%s%s:", indent(depth), f.key)
	}
	for _, in := range fields {
		if doc := w.docs[at+"."+in.key]; doc != "" {
			w.line("%s# %s", indent(depth+1), doc)
		}
		w.value(depth+1, in, at+"."+in.key, m[in.key])
	}
}

// hasValue reports whether anything of an object will be written out.
func hasValue(fields []field, m map[string]any) bool {
	for _, f := range fields {
		in, _ := m[f.key].(map[string]any)
		if f.typ.Kind() == reflect.Struct && hasValue(fieldsOf(f.typ), in) || f.typ.Kind() != reflect.Struct && m[f.key] != nil {
			return true
		}
	}
	return false
}

// entry writes one key in a line. JSON is YAML, so that is how values are written.
func (w *writer) entry(depth int, key string, v any, doc string) {
	if doc != "" {
		w.line("%s# %s", indent(depth), doc)
	}
	if v == nil || isSecret(key) {
		w.line("%s# %s:", indent(depth), scalarText(key))
		return
	}
	w.line("%s%s: %s", indent(depth), scalarText(key), scalarText(v))
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// scalarText writes a value as YAML.
func scalarText(v any) string {
	if s, ok := v.(string); ok && isWord(s) {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// isWord reports whether YAML reads s as a string without quotes.
func isWord(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}

// braces is what follows the colon of an object: without them, an empty one would be null.
func braces(m map[string]any) string {
	if len(m) == 0 {
		return " {}"
	}
	return ""
}
