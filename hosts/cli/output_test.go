package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// full is standard output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A command whose answer cannot be written has failed, and says so.
func TestAnswersAreWritten(t *testing.T) {
	config, _ := keeping(t)
	run(t, builtin.New(), "", "import", "--config", config, "--agent", "ann", chat(t, "one", 4)).want(t, cli.ExitOK)
	for _, args := range []string{
		"version", "list", "list --prompts", "completion bash", "experiment", "stats --config C", "verify --config C", "doctor --config C", "agents --config C", "vacuum --config C",
		"inspect --config C --agent ann --session one", "retain --config C --max-age 1h", "forget --config C --agent ann --receipts", "explain --budget 2k", "--help",
	} {
		var errs bytes.Buffer
		code := cli.Run(t.Context(), builtin.New(), strings.Fields(strings.ReplaceAll(args, "C", config)), cli.IO{Stdin: strings.NewReader(""), Stdout: full{}, Stderr: &errs})
		if code != cli.ExitFailure || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: exit code %d, %q", args, code, errs.String())
		}
	}
}

// What was not verified is not called free of violations, and a flag that has nothing to act on says so.
func TestReplaySaysWhatItDidNot(t *testing.T) {
	legacy := write(t, "legacy.yaml", "engine: legacy\n")
	got := run(t, builtin.New(), "", "replay", "--budget", "2k", "--config", legacy)
	got.want(t, cli.ExitOK, "nothing was verified: the engine promises nothing")
	got.lacks(t, "0 violations")
	run(t, builtin.New(), "", "replay", "--budget", "2k", "--model").want(t, cli.ExitOK, "note: no model is configured: --model changes nothing")
	one := write(t, "one.jsonl", `{"role":"user","content":"hello"}`+"\n")
	run(t, builtin.New(), "", "replay", one).lacks(t, "95 %")
}
