package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestPathsOfPeople: "~" and $HOME are the home in flags, arguments and variables, as they are in a configuration; a folder that is called "~" is "./~".
func TestPathsOfPeople(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run: homes are found otherwise there")
	}
	config, _ := keeping(t)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := os.ReadFile(chat(t, "one", 4))
	if err != nil {
		t.Fatal(err)
	}
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(here)
	if err := os.Mkdir("~", 0o700); err != nil { // a trap for those who do not expand
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{home + "/c.yaml": text, home + "/one.jsonl": messages, "./~/here.yaml": text} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(env string, args ...string) outcome {
		t.Helper()
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), builtin.New(), args, cli.IO{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + home, env}})
		return outcome{code, out.String(), errs.String()}
	}
	const fromEnv = "CONTEXTENGINE_CONFIG=~/c.yaml"
	do("", "import", "~/one.jsonl", "--config=~/c.yaml", "--agent=~/ann").want(t, cli.ExitOK, "imported 4")
	do("", "agents", "--config=${HOME}/c.yaml").want(t, cli.ExitOK, "~/ann ") // a name is no path
	for _, verb := range [][]string{{"stats"}, {"doctor"}, {"upgrade", "--check", "--from=0.1.0"}, {"replay", "$HOME/one.jsonl"}, {"explain", "~/one.jsonl"}} {
		do(fromEnv, verb...).want(t, cli.ExitOK)
	}
	do(fromEnv, "export", "-o=~/e.jsonl").want(t, cli.ExitOK)
	do(fromEnv, "backup", "~/b.db").want(t, cli.ExitOK)
	do("", "man", "~/man").want(t, cli.ExitOK)
	do("", "init", "-o", "~/i.yaml").want(t, cli.ExitOK)
	do("", "stats", "--config=./~/here.yaml").want(t, cli.ExitOK)
	do("", "stats", "--config", "~bob/c.yaml").want(t, cli.ExitUsage, `error: --config: path "~bob/c.yaml": only "~" itself`)
	do("", "man", "~bob/man").want(t, cli.ExitUsage, `error: DIR: path "~bob/man": only "~" itself`)
	do("CONTEXTENGINE_CONFIG=~bob/c.yaml", "stats").want(t, cli.ExitUsage, `error: CONTEXTENGINE_CONFIG: path "~bob/c.yaml": only "~" itself`)

	const keys = "OPENBRAIN_SERVE_KEYS=~/k.json"
	do(keys, "openbrain", "key", "new", "--name", "laptop", "--source", "*").want(t, cli.ExitOK)
	do(keys, "openbrain", "key", "list").want(t, cli.ExitOK, "laptop")
	do("OPENBRAIN_SERVE_KEYS=~bob/k.json", "openbrain", "key", "list").want(t, cli.ExitUsage, `error: OPENBRAIN_SERVE_KEYS: path "~bob/k.json": only "~" itself`)
	do("OPENBRAIN_SERVE_PATH=~/b.db", "openbrain", "backup", "--to=~/copy.db").want(t, cli.ExitOK)
	for _, name := range []string{"e.jsonl", "b.db", "man/contextengine.1", "i.yaml", "k.json", "copy.db"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Errorf("it is not in the home: %v", err)
		}
	}
	if left, err := filepath.Glob("*/*"); err != nil || len(left) != 1 || left[0] != "~/here.yaml" {
		t.Errorf("in the working directory there are %q, %v", left, err)
	}
}

// TestCompletionBelowTheHome: a shell completes what a store holds that is below the home.
func TestCompletionBelowTheHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not run: homes are found otherwise there")
	}
	t.Setenv("HOME", t.TempDir())
	config := write(t, "c.yaml", "store: {type: sqlite, path: ~/store.db}\n")
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4)).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "__complete", "inspect", "--config", config, "--agent", "").want(t, cli.ExitOK, "ann")
}
