package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/registry/builtin"
)

// Tables keep to 80 characters however long the names in them are; --wide shows all there is.
func TestTablesFit(t *testing.T) {
	needs.NoRace(t)
	dir := t.TempDir()
	long := strings.Repeat("long-", 24) + "name"
	at := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keep := "store: {type: sqlite, path: " + filepath.Join(dir, "s.db") + "}\n"
	plain, other, set := at("plain.yaml", keep), at(long+".yaml", "retriever: recent\nstore: memory\n"), evaluateFixtures+"own.jsonl"
	arms := at("arms.yaml", keep+"arms:\n  - {name: "+long[:60]+", weight: 1}\n  - {name: b, weight: 1, override: {retriever: recent}}\n")
	keys := filepath.Join(dir, "keys.json")
	run(t, builtin.New(), "", "import", "--config", plain, "--agent", long, chat(t, long, 6)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "import", "--config", arms, "--agent", "ann", chat(t, "one", 6), chat(t, "two", 6)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "openbrain", "key", "new", "--keys", keys, "--name", long, "--source", long).want(t, cli.ExitOK)
	for _, c := range []struct {
		args string
		wide string // what --wide alone shows
	}{
		{"replay --budget 1k --config " + other, "  p95  "},
		{"replay --budget 1k --combinations all --retriever recent", "  p95  "},
		{"explain --budget 2k", ""},
		{"compare --budget 1k --retriever recent,hybrid,semantic --compactor archive,mask", "hybrid+mask+memory  semantic+archive+memory"},
		{"evaluate " + set + " --depth 1,5,10,20,50 --budget 1k,2k --config " + other + " --config " + plain, "degraded"},
		{"evaluate " + set + " --window 1k,2k", "filled"},
		{"agents --config " + plain, long},
		{"sessions --config " + plain + " --agent " + long, long},
		{"inspect --config " + plain + " --agent " + long, long},
		{"inspect --config " + plain + " --agent " + long + " --session " + long, "message 5 of " + long[:60]},
		{"experiment status --config " + arms, ""},
		{"list", ""},
		{"doctor --config " + plain, ""},
		{"dataset list --in " + dir, "publisher"},
		{"openbrain key list --keys " + keys, long},
		{"soak --sessions 1 --agents 1 --turns 1 --time 50ms --think 10ms --every 20ms --store memory", "asm/50"},
	} {
		t.Run(c.args[:min(len(c.args), 40)], func(t *testing.T) {
			got := run(t, builtin.New(), "", strings.Fields(c.args)...)
			if code := got.code; code != cli.ExitOK && code != cli.ExitViolations {
				t.Fatalf("exit code %d: %s", code, got.errors)
			}
			if c.wide != "" && strings.Contains(got.out, c.wide) {
				t.Errorf("%q is there without --wide", c.wide)
			}
			for line := range strings.SplitSeq(got.out, "\n") {
				if uniseg.StringWidth(line) > 80 && !sentence(line) {
					t.Errorf("%d columns: %s", uniseg.StringWidth(line), line)
				}
			}
			if wide := run(t, builtin.New(), "", append(strings.Fields(c.args), "--wide")...); !strings.Contains(wide.out, c.wide) {
				t.Errorf("%q is not there with --wide:\n%s", c.wide, wide.out)
			}
		})
	}
}

// sentence says whether a line is a sentence about what the table shows, and no line of one: terminals break it, and what it names can be copied.
func sentence(line string) bool {
	if _, rest, ok := strings.Cut(line, ": "); ok && !strings.Contains(rest, "  ") {
		return true
	}
	return len(strings.Fields(line)) == 1 // an address, a path, an example of a value
}
