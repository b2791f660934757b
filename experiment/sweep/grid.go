package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// maxPoints bounds a grid: more would never end.
const maxPoints = 100_000

// Grid is keys of a configuration and the values that each takes.
type Grid struct {
	axes []axis
}

type axis struct {
	key    string
	values []value
}

// value is a scalar as it was written, and what it means.
type value struct {
	text string
	v    any
}

// Setting is a key and the value it has at a Point.
type Setting struct {
	// Key has dots between its levels; Text is the value as it was written.
	Key, Text string
	value     any
}

// Point is one combination of values, in the order of the keys.
type Point []Setting

// Parse reads settings of the form key=value,value,... A key is that of a configuration file, with dots between the levels. Values are read as JSON
// where they are such (numbers, true, false, "text", [lists], {objects}), and else as text; commas within quotes and brackets do not
// separate. Errors are ErrInvalid and name the setting.
func Parse(settings []string) (Grid, error) {
	var g Grid
	points := 1
	for _, s := range settings {
		key, list, ok := strings.Cut(s, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || slices.Contains(strings.Split(key, "."), "") {
			return Grid{}, fmt.Errorf("sweep: %q: want key=value,value,... such as searchers.lexical.k1=0.9,1.2: %w", s, core.ErrInvalid)
		}
		for _, a := range g.axes {
			if a.key == key || strings.HasPrefix(a.key, key+".") || strings.HasPrefix(key, a.key+".") {
				return Grid{}, fmt.Errorf("sweep: %q and %q set the same: give all values in one: %w", a.key, key, core.ErrInvalid)
			}
		}
		a := axis{key: key}
		for _, text := range split(list) {
			text = strings.TrimSpace(text)
			if text == "" {
				return Grid{}, fmt.Errorf("sweep: %q: a value is empty: %w", key, core.ErrInvalid)
			}
			if !slices.ContainsFunc(a.values, func(v value) bool { return v.text == text }) {
				a.values = append(a.values, value{text, meaning(text)})
			}
		}
		if points *= len(a.values); points > maxPoints {
			return Grid{}, fmt.Errorf("sweep: more than %d combinations: give fewer values: %w", maxPoints, core.ErrInvalid)
		}
		g.axes = append(g.axes, a)
	}
	return g, nil
}

// split cuts at commas outside of quotes and brackets.
func split(list string) []string {
	var out []string
	depth, quoted, start := 0, false, 0
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth <= 0:
			out = append(out, list[start:i])
			start = i + 1
		}
	}
	return append(out, list[start:])
}

func meaning(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil && v != nil {
		return v
	}
	return text
}

// Points returns every combination; the last key varies fastest. Without keys it is one Point without settings.
func (g Grid) Points() []Point {
	out := []Point{nil}
	for _, a := range g.axes {
		next := make([]Point, 0, len(out)*len(a.values))
		for _, p := range out {
			for _, v := range a.values {
				next = append(next, append(slices.Clip(p), Setting{Key: a.key, Text: v.text, value: v.v}))
			}
		}
		out = next
	}
	return out
}

// Keys returns the keys in the order in which they were given.
func (g Grid) Keys() []string {
	out := make([]string, len(g.axes))
	for i, a := range g.axes {
		out[i] = a.key
	}
	return out
}

// Set lays the settings over a tree as a configuration file holds it. Where names is not nil and the second level of a key is a name that it knows for the first, the
// name is the type of a part: retriever.hybrid.limit=30 is {"retriever": {"type": "hybrid", "limit": 30}}.
func (p Point) Set(tree map[string]any, names func(key string) []string) {
	for _, s := range p {
		levels := strings.Split(s.Key, ".")
		m := tree
		for i, level := range levels[:len(levels)-1] {
			if i == 1 && names != nil && slices.Contains(names(levels[0]), level) {
				m["type"] = level
				continue
			}
			into, ok := m[level].(map[string]any)
			if !ok {
				into = make(map[string]any)
				if name, isName := m[level].(string); isName {
					into["type"] = name
				}
				m[level] = into
			}
			m = into
		}
		m[levels[len(levels)-1]] = s.value
	}
}

// Map returns the settings by key; nil when there are none.
func (p Point) Map() map[string]string {
	if len(p) == 0 {
		return nil
	}
	out := make(map[string]string, len(p))
	for _, s := range p {
		out[s.Key] = s.Text
	}
	return out
}

// String writes the settings with the last level of each key: "k1=0.9 b=0.4".
func (p Point) String() string {
	out := make([]string, len(p))
	for i, s := range p {
		out[i] = s.Key[strings.LastIndexByte(s.Key, '.')+1:] + "=" + s.Text
	}
	return strings.Join(out, " ")
}
