package cli_test

import (
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// What a table of replays does not show is said below it.
func TestCautions(t *testing.T) {
	run(t, builtin.New(), "", "replay", "--budget", "8k", "--retriever", "recent", "--compactor", "archive,index,mask").
		want(t, cli.ExitOK, "note: example.jsonl, budget 8000: 3 of 3 configurations compacted nothing, so their compactors are not told apart")
	run(t, builtin.New(), "", "replay", "--budget", "100").want(t, cli.ExitOK, "hybrid+archive+memory, budget 100: nothing was recalled")
	got := run(t, builtin.New(), "", "replay", "--budget", "2k", "--compactor", "archive,index")
	got.want(t, cli.ExitOK, "(naive sliding)", "0 violations")
	got.lacks(t, "note: ")
	// No prompt fits: there is no cost to show, and none that could be the lowest.
	run(t, builtin.New(), "", "replay", "--budget", "5").want(t, cli.ExitOK, "hybrid+archive+memory       -     -      -      0       -         -\n", "budget 5: no prompt fits, so none was verified")
	run(t, builtin.New(), "", "replay", "--budget", "5", "--wide").want(t, cli.ExitOK, "      76       -     -         -\n", "budget 5: no prompt fits, so none was verified")
	bad := write(t, "c.yaml", "store: {type: sqlite, path: /dev/null/store.db}\n")
	got = run(t, builtin.New(), "", "replay", "--config", bad, "--budget", "2k")
	got.want(t, cli.ExitFailure, "nothing was verified: 1 replay failed")
	got.lacks(t, "0 violations")
}

func (o outcome) lacks(t *testing.T, text string) {
	t.Helper()
	if said := o.out + o.errors; strings.Contains(said, text) {
		t.Errorf("%q is there:\n%s", text, said)
	}
}
