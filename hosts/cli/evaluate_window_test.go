package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

func TestEvaluateWindows(t *testing.T) {
	t.Parallel()
	details := filepath.Join(t.TempDir(), "details.jsonl")
	run(t, builtin.New(), "", "evaluate", evaluateFixtures+"own.jsonl", "--store", "memory", "--window", "1k,2k", "--details", details).want(t, cli.ExitOK,
		"all, a window of 1.0k tokens: 1 question", "all, a window of 2.0k tokens: 1 question", "whole", "not packed", "100.0")
	lines, err := os.ReadFile(details)
	if err != nil || strings.Count(string(lines), "\n") != 2 || !strings.Contains(string(lines), `"budget":2000`) || !strings.Contains(string(lines), `"whole":1`) {
		t.Errorf("the details: %v\n%s", err, lines)
	}
	res := evaluation(t, nil, evaluateFixtures+"own.jsonl", "--store", "memory", "--window", "1k", "--sessions", "kept")
	if s := res.Arms[0].Standing; len(s) == 0 || s[0].Whole.Mean != 0 || s[0].NotFound != 1 {
		t.Errorf("in sessions of their own: %+v", s)
	}
	for flags, want := range map[string]string{
		"--window nothing": "nothing", "--window 1k --sessions all": "--sessions", "--window 1k --depth 5": "--window: measures windows alone",
	} {
		args := append([]string{"evaluate", evaluateFixtures + "own.jsonl"}, strings.Fields(flags)...)
		run(t, builtin.New(), "", args...).want(t, cli.ExitUsage, want)
	}
}
