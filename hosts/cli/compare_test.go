package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// toolRun is a conversation in which the agent uses again what it read long before.
func toolRun(t *testing.T, name string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"role":"user","content":"where is order %d?"}`+"\n", i)
		fmt.Fprintf(&b, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"get_order","arguments":"{\"order\":\"ORD-%04d-%s\"}"}}]}`+"\n", i, max(i-3, 0)*7, name)
		fmt.Fprintf(&b, `{"role":"tool","tool_call_id":"c%d","content":"%s the next one is ORD-%04d-%s"}`+"\n", i, strings.Repeat("nothing of interest. ", 20), i*7, name)
		fmt.Fprintf(&b, `{"role":"assistant","content":"done with %d"}`+"\n", i)
	}
	return write(t, name+".jsonl", b.String())
}

func TestCompare(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	args := []string{"compare", toolRun(t, "AX", 30), toolRun(t, "BY", 24), toolRun(t, "CZ", 36), toolRun(t, "DW", 28), toolRun(t, "EV", 32), "--retriever", "recent,hybrid", "--budget", "1k", "--html", page}
	run(t, builtin.New(), "", args...).want(t, cli.ExitOK, "5 conversations, compared with recent+archive+memory", "reuse all", "recalled: hybrid+archive+memory higher by", "identifiers needed later")
	got := run(t, builtin.New(), "", append(args, "--json", "--force")...)
	got.want(t, cli.ExitOK)
	var v struct {
		Conversations int
		Differences   []struct {
			Metric, Verdict string
			Difference      struct{ Conversations int }
		}
		Identifiers []struct{ Needed int }
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || v.Conversations != 5 || len(v.Differences) == 0 || v.Differences[0].Difference.Conversations != 5 ||
		len(v.Identifiers) == 0 || v.Identifiers[0].Needed == 0 {
		t.Errorf("%+v, %v", v, err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The window under hybrid+archive+memory", "side by side", "Identifiers that survive", "<svg"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	run(t, builtin.New(), "", append(args[:len(args)-1:len(args)-1], filepath.Join(t.TempDir(), "six.html"), "--compactor", "archive,mask")...).
		want(t, cli.ExitOK, "recalled, hybrid+archive+memory: hybrid+archive+memory higher by", "recalled, hybrid+mask+memory: hybrid+mask+memory higher by")
	run(t, builtin.New(), "", "compare", args[1], "--retriever", "recent").want(t, cli.ExitUsage, "nothing to be compared with")
	run(t, builtin.New(), "", "compare", args[1], "--retriever", "recent,hybrid", "--keep", "3").want(t, cli.ExitUsage, "--keep")
	run(t, builtin.New(), "", "compare", args[1], "--retriever", "recent,hybrid", "--budget", "1k", "--html", page, "--force", "--session", "nobody").want(t, cli.ExitUsage, "nobody", "AX.jsonl")
}
