package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestCompletion: a shell completes what there is, and nothing is made by asking.
func TestCompletion(t *testing.T) {
	config, path := keeping(t)
	complete := func(args ...string) []string {
		t.Helper()
		got := run(t, builtin.New(), "", append([]string{"__complete"}, args...)...)
		got.want(t, cli.ExitOK)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		return lines[:len(lines)-1] // the last one is for the shell
	}
	if got := complete("inspect", "--config", config, "--agent", ""); len(got) != 0 {
		t.Errorf("agents of no store: %q", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("completion made a store")
	}
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4), chat(t, "two", 2)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "replay", "--color", "al").want(t, cli.ExitUsage) // an error lists the values in an order of its own
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"inspect", "--config", config, "--agent", "a"}, "ann"},
		{[]string{"inspect", "--config", config, "--agent", "ann", "--session", ""}, "one two"},
		{[]string{"export", "--config", config, "--agent", "ann", "--session", "t"}, "two"},
		{[]string{"replay", "--retriever", ""}, "hybrid recent semantic"},
		{[]string{"replay", "--retriever", "hybrid,r"}, "hybrid,recent"},
		{[]string{"stats", "--store", "p"}, "postgres"},
		{[]string{"replay", "--compactor", "su"}, "summary"},
		{[]string{"replay", "--color", "a"}, "auto always"},
		{[]string{"dataset", "fetch", "lo"}, "locomo"},
		{[]string{"replay", "--config", ""}, "yaml yml toml json json5"},
	} {
		if got := strings.Join(complete(tt.args...), " "); got != tt.want {
			t.Errorf("%q completes to %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestHelp: what there is to do stands in groups, within 80 columns where the words are ours.
func TestHelp(t *testing.T) {
	help := run(t, builtin.New(), "", "--help").out
	at := 0
	for _, group := range []string{"Try and measure:", "Set up:", "Serve other programs:", "Look into what is stored:", "Move, keep and erase it:"} {
		i := strings.Index(help, group)
		if i < at {
			t.Errorf("%q is not where it belongs:\n%s", group, help)
		}
		at = i
	}
	for line := range strings.SplitSeq(help, "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
}

func TestAgentsAndSessions(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "agents", "--config", config).want(t, cli.ExitOK, "the store remembers nobody")
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4), chat(t, "two", 2)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "bob", chat(t, "one", 2)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "agents", "--config", config).want(t, cli.ExitOK, "ann           2      3         6", "bob           1      1         2")
	run(t, builtin.New(), "", "agents", "--config", config, "--json").want(t, cli.ExitOK, `"agent": "ann"`)
	run(t, builtin.New(), "", "sessions", "--config", config, "--agent", "ann").want(t, cli.ExitOK, "one          2         4", "two          1         2")
}

// TestSchema: the schema that list prints may be named in a file.
func TestSchema(t *testing.T) {
	schema := run(t, builtin.New(), "", "list", "--schema")
	schema.want(t, cli.ExitOK, `"$schema": "https://json-schema.org/draft/2020-12/schema"`, `"recentMessages"`)
	file := write(t, "c.json", `{"$schema": "`+filepath.ToSlash(write(t, "schema.json", schema.out))+`", "store": "memory"}`)
	run(t, builtin.New(), "", "doctor", "--config", file).want(t, cli.ExitOK)
}
