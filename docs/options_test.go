package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

var (
	partHeading = regexp.MustCompile("^### `(.+)` \\((.+)\\)$")
	optionRow   = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+?) *\\| *([^|]*?) *\\|")
)

// option is a row of a table of options.
type option struct {
	line     int
	kind     string
	standard string
}

// tables reads the tables of options of configuration.md: by part, "name (kind)", and "" for the keys.
func tables(t *testing.T) map[string]map[string]option {
	t.Helper()
	text, err := os.ReadFile("configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]option{}
	section, known := "", false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case partHeading.MatchString(line):
			m := partHeading.FindStringSubmatch(line)
			section, known = m[1]+" ("+m[2]+")", true
		case line == "## Keys":
			section, known = "", true
		case strings.HasPrefix(line, "#"):
			known = false
		}
		if m := optionRow.FindStringSubmatch(line); known && m != nil {
			if out[section] == nil {
				out[section] = map[string]option{}
			}
			out[section][m[1]] = option{line: i + 1, kind: m[2], standard: strings.Trim(m[3], "`")}
		}
	}
	return out
}

// compareOptions says what a table has that the keys have not, and the other way round. Defaults that a part finds out for itself are empty in its keys.
func compareOptions(t *testing.T, part string, rows map[string]option, keys []registry.Key) {
	t.Helper()
	for _, k := range keys {
		row, ok := rows[k.Path]
		if !ok {
			t.Errorf("configuration.md: %s: %s is missing", part, k.Path)
			continue
		}
		delete(rows, k.Path)
		if row.kind != k.Type {
			t.Errorf("configuration.md:%d: %s: %s is %q, not %q", row.line, part, k.Path, k.Type, row.kind)
		}
		standard := ""
		switch k.Default.(type) {
		case nil:
		case map[string]any, []any:
			continue // written in short
		default:
			standard = fmt.Sprint(k.Default)
		}
		if strings.HasPrefix(k.Type, "part") || strings.HasPrefix(k.Type, "searchers") {
			continue // the engine's
		}
		if standard == "" && (row.standard == `""` || row.standard == "none" || row.standard == "") {
			continue
		}
		if standard != row.standard {
			t.Errorf("configuration.md:%d: %s: the default of %s is %q, not %q", row.line, part, k.Path, standard, row.standard)
		}
	}
	for name, row := range rows {
		t.Errorf("configuration.md:%d: %s: %s is none of its options", row.line, part, name)
	}
}

// TestOptions: the tables of options name what there is, with its type and default.
func TestOptions(t *testing.T) {
	r := builtin.New()
	rows := tables(t)
	var plain []registry.Key
	for _, k := range r.Keys() {
		if !strings.HasPrefix(k.Path, "agents.") && !strings.HasPrefix(k.Path, "arms.") {
			plain = append(plain, k)
		}
	}
	compareOptions(t, "keys", rows[""], plain)
	for _, p := range r.Describe() {
		name := fmt.Sprintf("%s (%s)", p.Name, p.Kind)
		compareOptions(t, name, rows[name], p.Keys)
		delete(rows, name)
	}
	for name := range rows {
		if name != "" {
			t.Errorf("configuration.md: there is no %s", name)
		}
	}
}
