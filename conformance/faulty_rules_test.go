package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/conformance"
)

var rewrite = flag.Bool("rewrite", false, "write anew which check catches which broken part of the table")

// rulesFile names the check that catches each broken part of the table, a line each, in order: class/name, a tab, the id.
const rulesFile = "testdata/faulty.tsv"

// rules are which check catches which broken part. One whose check is known is examined by that check alone: it is the rule that the part breaks, and those before it
// have nothing to say. One that is new, or that its check catches no more, is examined by all of them.
type rules struct {
	of map[string]string

	mu  sync.Mutex
	now map[string]string
}

func knownRules(t *testing.T) *rules {
	t.Helper()
	r := &rules{of: map[string]string{}, now: map[string]string{}}
	data, err := os.ReadFile(rulesFile)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		r.of[name] = id
	}
	return r
}

// examine returns what is found, by the check that is known if it finds anything.
func (r *rules) examine(t *testing.T, b broken) []conformance.Finding {
	t.Helper()
	name := b.class + "/" + b.name
	var found []conformance.Finding
	if id := r.of[name]; id != "" {
		found = b.find(t, conformance.WithClaims(id))
	}
	if len(found) == 0 {
		found = b.find(t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.now[name]; twice {
		t.Errorf("two broken parts are called %q", name)
	}
	r.now[name] = ""
	if len(found) > 0 {
		r.now[name] = found[0].ID()
	}
	return found
}

// compare reports each part of all that another check caught than the file says; with -rewrite it writes the file. Those that were not run stay as they are.
func (r *rules) compare(t *testing.T, all []broken) {
	t.Helper()
	lines := make([]string, len(all))
	for i, b := range all {
		name := b.class + "/" + b.name
		was := r.of[name]
		id, run := r.now[name]
		if !run {
			id = was
		}
		lines[i] = name + "\t" + id + "\n"
		if id != was && !*rewrite {
			t.Errorf("%s: caught by %q, and %s says %q: go test ./conformance -run '^TestFaultyTable$' -rewrite writes it anew", name, id, rulesFile, was)
		}
		delete(r.of, name)
	}
	if !*rewrite {
		for name := range r.of {
			t.Errorf("%s stands in %s and is no broken part: see -rewrite", name, rulesFile)
		}
		return
	}
	slices.Sort(lines)
	if err := os.WriteFile(rulesFile, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(fmt.Errorf("rules: %w", err))
	}
}
