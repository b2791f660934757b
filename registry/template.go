package registry

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Template returns a configuration file that says what holds without one, each key with its explanation, in a format: "yaml" (or "yml"), "toml", "json5", or "json", which
// has no explanations. It loads to the same configuration as no file at all. The error is ErrInvalid when the format is another, or when the registry lacks the parts that
// the defaults name.
func (r *Registry) Template(format string) ([]byte, error) {
	write, err := templateFormat(format)
	if err != nil {
		return nil, fmt.Errorf("registry: template: %w", err)
	}
	cfg, err := r.Load()
	if err != nil {
		return nil, err
	}
	w := &templateWriter{docs: coreDocs()}
	w.comment(0, "Configuration of a context engine. Every key may be left out; what stands here is what holds then.")
	tree := cfg.tree()
	for _, f := range configFields() {
		w.blank()
		w.comment(0, fmt.Sprintf("%s: %s", f.key, cmp.Or(f.doc, w.docs[f.key])))
		switch {
		case f.key == "agents":
			w.example(0, f.key, map[string]any{"coder": map[string]any{"recentMessages": 30, "window": map[string]any{"high": 0.8}}})
		case f.key == "arms":
			w.example(0, f.key, []any{
				map[string]any{"name": "a", "weight": 1},
				map[string]any{"name": "b", "weight": 1, "agents": []any{"coder"}, "override": map[string]any{"window": map[string]any{"high": 0.8}}},
			})
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
	return []byte(write(w.lines)), nil
}

// templateLine is one line of a template, in no format yet.
type templateLine struct {
	what  lineKind
	depth int
	// text is the comment, or the key.
	text  string
	value any
	// off says that a key is shown but not set.
	off bool
}

type lineKind int

const (
	lineComment lineKind = iota
	lineBlank
	lineEntry
	// lineOpen begins an object, lineClose ends it.
	lineOpen
	lineClose
)

// templateWriter collects the lines of a template.
type templateWriter struct {
	lines []templateLine
	docs  map[string]string
}

func (w *templateWriter) add(l templateLine) { w.lines = append(w.lines, l) }

func (w *templateWriter) blank() { w.add(templateLine{what: lineBlank}) }

func (w *templateWriter) comment(depth int, text string) {
	w.add(templateLine{what: lineComment, depth: depth, text: text})
}

// object writes an object, whose lines f adds.
func (w *templateWriter) object(depth int, key string, off bool, f func()) {
	w.add(templateLine{what: lineOpen, depth: depth, text: key, off: off})
	f()
	w.add(templateLine{what: lineClose, depth: depth, off: off})
}

// known lists what there is of a kind.
func (w *templateWriter) known(r *Registry, kind Kind) {
	for _, name := range r.Names(kind) {
		w.comment(0, fmt.Sprintf("  %-12s %s", name, r.parts[kind][name].doc))
	}
}

// example writes a value that is not set, objects a key to a line.
func (w *templateWriter) example(depth int, key string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		w.add(templateLine{what: lineEntry, depth: depth, text: key, value: v, off: true})
		return
	}
	w.object(depth, key, true, func() {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			w.example(depth+1, k, m[k])
		}
	})
}

// choice writes a part and its options; commented out when there is none.
func (w *templateWriter) choice(r *Registry, f field, v any) {
	m, _ := v.(map[string]any)
	if f.typ == searchersType {
		w.object(0, f.key, false, func() {
			for _, name := range slices.Sorted(maps.Keys(m)) {
				options, _ := m[name].(map[string]any)
				w.object(1, name, false, func() { w.options(r, KindSearcher, name, 2, options) })
			}
		})
		return
	}
	name, _ := m[typeKey].(string)
	if name == "" {
		w.example(0, f.key, map[string]any{typeKey: "NAME"})
		return
	}
	w.object(0, f.key, false, func() {
		w.entry(1, typeKey, name, "")
		w.options(r, f.kind, name, 1, m)
	})
}

// options writes the options of a part; secrets and those without a value are commented out.
func (w *templateWriter) options(r *Registry, kind Kind, name string, depth int, m map[string]any) {
	p, err := r.look(kind, name)
	if err != nil {
		return
	}
	for _, f := range fieldsOf(p.config) {
		w.entry(depth, f.key, m[f.key], f.doc)
	}
}

// value writes a key of the engine's own, and the keys below it with their explanations.
func (w *templateWriter) value(depth int, f field, at string, v any) {
	if f.typ.Kind() != reflect.Struct {
		w.entry(depth, f.key, v, "")
		return
	}
	m, _ := v.(map[string]any)
	fields := fieldsOf(f.typ)
	w.object(depth, f.key, !hasValue(fields, m), func() {
		for _, in := range fields {
			if doc := w.docs[at+"."+in.key]; doc != "" {
				w.comment(depth+1, doc)
			}
			w.value(depth+1, in, at+"."+in.key, m[in.key])
		}
	})
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

// entry writes one key in a line.
func (w *templateWriter) entry(depth int, key string, v any, doc string) {
	if doc != "" {
		w.comment(depth, doc)
	}
	if isSecret(key) {
		v = nil
	}
	w.add(templateLine{what: lineEntry, depth: depth, text: key, value: v, off: v == nil})
}
