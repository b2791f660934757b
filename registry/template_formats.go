package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// templateFormat returns what writes the lines of a template in a format.
func templateFormat(format string) (func([]templateLine) string, error) {
	switch strings.ToLower(format) {
	case "yaml", "yml":
		return templateYAML, nil
	case "toml":
		return templateTOML, nil
	case "json5":
		return func(lines []templateLine) string { return templateBraces(lines, true) }, nil
	case "json":
		return func(lines []templateLine) string { return templateBraces(lines, false) }, nil
	}
	return nil, unknown("format", format, []string{"json", "json5", "toml", "yaml", "yml"})
}

func templateYAML(lines []templateLine) string {
	var b strings.Builder
	root := -1 // depth of the outermost object that is commented out
	for i, l := range lines {
		prefix := indent(l.depth)
		if l.off && l.what != lineClose {
			prefix += "# "
			if root >= 0 {
				prefix = indent(root) + "# " + indent(l.depth-root)
			}
		}
		switch l.what {
		case lineBlank:
			b.WriteByte('\n')
		case lineComment:
			fmt.Fprintf(&b, "%s# %s\n", prefix, l.text)
		case lineEntry:
			fmt.Fprintf(&b, "%s%s:", prefix, scalarText(l.text))
			if l.value != nil {
				b.WriteString(" " + scalarText(l.value))
			}
			b.WriteByte('\n')
		case lineOpen:
			end := ""
			if lines[i+1].what == lineClose {
				end = " {}" // without them, an empty object would be null
			}
			fmt.Fprintf(&b, "%s%s:%s\n", prefix, scalarText(l.text), end)
			if l.off && root < 0 {
				root = l.depth
			}
		case lineClose:
			if root == l.depth {
				root = -1
			}
		}
	}
	return b.String()
}

// templateTOML writes every key with those above it, so that no line depends on the ones before.
func templateTOML(lines []templateLine) string {
	var b strings.Builder
	var above []string
	for i, l := range lines {
		mark := ""
		if l.off {
			mark = "# "
		}
		switch l.what {
		case lineBlank:
			b.WriteByte('\n')
		case lineComment:
			fmt.Fprintf(&b, "# %s\n", l.text)
		case lineEntry:
			key := strings.Join(append(slices.Clip(above), tomlKey(l.text)), ".")
			fmt.Fprintf(&b, "%s%s = %s\n", mark, key, tomlText(l.value))
		case lineOpen:
			above = append(above, tomlKey(l.text))
			if lines[i+1].what == lineClose {
				fmt.Fprintf(&b, "%s%s = {}\n", mark, strings.Join(above, "."))
			}
		case lineClose:
			above = above[:len(above)-1]
		}
	}
	return b.String()
}

func tomlKey(key string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return key
	}
	return jsonText(key)
}

// tomlText writes a value; what has none is an empty text.
func tomlText(v any) string {
	var parts []string
	switch v := v.(type) {
	case nil:
		return `""`
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, tomlKey(k)+" = "+tomlText(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, e := range v {
			parts = append(parts, tomlText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return jsonText(v)
}

// templateBraces writes JSON5, or JSON without comments and without what is not set.
func templateBraces(lines []templateLine, comments bool) string {
	var out []string
	key := jsonText
	if comments {
		key = func(v any) string {
			if s, _ := v.(string); isWord(s) {
				return s
			}
			return jsonText(v)
		}
	}
	closed := func() {
		if n := len(out) - 1; !comments {
			out[n] = strings.TrimSuffix(out[n], ",")
		}
	}
	out = append(out, "{")
	for _, l := range lines {
		prefix := indent(l.depth + 1)
		if l.off || l.what == lineComment || l.what == lineBlank {
			if !comments {
				continue
			}
			prefix += "// "
		}
		switch l.what {
		case lineBlank:
			out = append(out, "")
		case lineComment:
			out = append(out, prefix+l.text)
		case lineEntry:
			out = append(out, prefix+key(l.text)+": "+jsonText(l.value)+",")
		case lineOpen:
			out = append(out, prefix+key(l.text)+": {")
		case lineClose:
			closed()
			out = append(out, prefix+"},")
		}
	}
	closed()
	return strings.Join(append(out, "}"), "\n") + "\n"
}

func indent(depth int) string { return strings.Repeat("  ", depth) }

// scalarText writes a value as YAML. JSON is YAML, so that is how values are written.
func scalarText(v any) string {
	if s, ok := v.(string); ok && isWord(s) {
		return s
	}
	return jsonText(v)
}

func jsonText(v any) string {
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
