package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/internal/pgtest"
	"github.com/contextengine/contextengine/registry/builtin"
)

const evaluateFixtures = "../../experiment/questions/testdata/"

// evaluation runs evaluate with --json.
func evaluation(t *testing.T, environ []string, args ...string) recall.Result {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), builtin.New(), append([]string{"evaluate", "--json"}, args...), cli.IO{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ,
	})
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, out.String(), errs.String())
	}
	var res recall.Result
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		t.Fatal(err)
	}
	return res
}

func armNames(res recall.Result) string {
	var out []string
	for _, a := range res.Arms {
		out = append(out, a.Name)
	}
	return strings.Join(out, " | ")
}

func TestEvaluateTable(t *testing.T) {
	t.Parallel()
	details := filepath.Join(t.TempDir(), "details.jsonl")
	run(t, builtin.New(), "", "evaluate", evaluateFixtures+"beam", "--store", "memory,sqlite", "--depth", "1,10", "--budget", "1k", "--details", details).want(t, cli.ExitOK,
		"beam: 2 conversations, 8 messages, 4 questions with evidence", "note: 2 of the questions name no evidence", "all: 4 questions, ± over 2 conversations",
		"R@10", "hybrid(lexical)+memory", "hybrid(lexical)+sqlite", "knowledge_update: 2 questions", "packed 1k",
		"1 and 2 at R@10: too few to tell (2 conversations, 5 are needed): the same so far", "1 and 2: the same candidates in the same order for 4 of 4 questions")
	data, err := os.ReadFile(details)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var row struct {
		Arm, Conversation, Question string
		Recall                      map[string]float64
	}
	if err := json.Unmarshal([]byte(lines[0]), &row); err != nil || len(lines) != 8 || row.Arm != "hybrid(lexical)+memory" || row.Conversation != "1" || len(row.Recall) != 3 {
		t.Errorf("%d lines, %+v, %v", len(lines), row, err)
	}
}

func TestEvaluateSweep(t *testing.T) {
	t.Parallel()
	resume := filepath.Join(t.TempDir(), "sweep.jsonl")
	args := []string{evaluateFixtures + "own.jsonl", "--set", "searchers.lexical.namedBoost=1,1.5", "--set", "retriever.hybrid.limit=1,50", "--resume", resume}
	first := evaluation(t, nil, args...)
	if got, want := armNames(first), "hybrid(lexical)+memory namedBoost=1 limit=1 | hybrid(lexical)+memory namedBoost=1 limit=50 | "+
		"hybrid(lexical)+memory namedBoost=1.5 limit=1 | hybrid(lexical)+memory namedBoost=1.5 limit=50"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := first.Arms[1].Settings; s["retriever.hybrid.limit"] != "50" || first.Arms[0].Config == first.Arms[1].Config || first.Arms[0].Questions != nil {
		t.Errorf("%+v", first.Arms[:2])
	}
	again := evaluation(t, nil, args...)
	for i, a := range again.Arms {
		if first.Arms[i].Resumed || !a.Resumed {
			t.Errorf("%s: resumed %v, then %v", a.Name, first.Arms[i].Resumed, a.Resumed)
		}
	}
	run(t, builtin.New(), "", append([]string{"evaluate"}, args...)...).want(t, cli.ExitOK, "note: 4 of 4 results taken from the file of finished results")
}

// TestEvaluateConfigs: each file is an arm, and so is each arm that a file describes.
func TestEvaluateConfigs(t *testing.T) {
	t.Parallel()
	a := write(t, "a.yaml", "retriever: recent\n")
	b := write(t, "b.yaml", "arms:\n  - {name: on, override: {searchers: {lexical: {namedBoost: 2}}}}\n  - {name: off, override: {retriever: {type: semantic, searcher: lexical}}}\n")
	res := evaluation(t, nil, evaluateFixtures+"locomo.json", "--config", a, "--config", b)
	if got, want := armNames(res), "a:recent+memory | b:on:hybrid(lexical)+memory | b:off:only(lexical)+memory"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r := res.Arms[0].Groups[0].Measures[0].Recall; r.Mean != 0 || r.N != 3 {
		t.Errorf("a retriever that recalls nothing: %+v", r)
	}
	if res.Orders[1].Base != "a:recent+memory" || res.Protocol.Unit != "message" {
		t.Errorf("%+v, %+v", res.Orders, res.Protocol)
	}
}

func TestEvaluateErrors(t *testing.T) {
	t.Parallel()
	set := evaluateFixtures + "own.jsonl"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{set, "--set", "retriever.hybrid.recent=10,20"}, cli.ExitUsage, `unknown key "recent" (known: contextChars`},
		{[]string{set, "--set", "nonsense"}, cli.ExitUsage, "--set: sweep: \"nonsense\": want key=value"},
		{[]string{set, "--retriever", "hybird"}, cli.ExitUsage, `did you mean "hybrid"?`},
		{[]string{set, "--pack", "page"}, cli.ExitUsage, `unknown value of --pack "page"`},
		{[]string{set, "--budget", "lots"}, cli.ExitUsage, `budget "lots": want a positive number`},
		{[]string{set, "--workers", "-1"}, cli.ExitUsage, "--workers: must not be negative"},
		{[]string{set, "--resume", set}, cli.ExitUsage, "line 1: not a result"},
		{[]string{"none.jsonl"}, cli.ExitFailure, "none.jsonl: no such file"},
		{[]string{write(t, "bad.jsonl", `{"id":"m1"}`)}, cli.ExitFailure, `line 1: neither "text" nor "question" is there`},
		{[]string{}, cli.ExitUsage, "evaluate needs DATASET"},
	} {
		run(t, builtin.New(), "", append([]string{"evaluate"}, c.args...)...).want(t, c.code, c.want)
	}
	run(t, builtin.New(), "", "evaluate", set, "--retriever", "semantic").want(t, cli.ExitFailure, `not reported as "semantic"`, "set embedder and the searcher vector")
	config := write(t, "legacy.yaml", "engine: legacy\n")
	run(t, builtin.New(), "", "evaluate", set, "--config", config).want(t, cli.ExitFailure, `engine "legacy" has no retriever that can be asked alone`)
}

// TestEvaluateStores: the search of PostgreSQL itself stands in the same table as lexical search over every store, and nothing stays there.
func TestEvaluateStores(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	var servers pgtest.Servers
	t.Cleanup(servers.Stop)
	dsn := servers.Plain(t).Database(t)
	environ := []string{"CONTEXTENGINE_POSTGRES_DSN=" + dsn}
	res := evaluation(t, environ, evaluateFixtures+"beam", "--store", "memory,sqlite,postgres", "--parts", "--workers", "1")
	if got, want := armNames(res), "hybrid(lexical)+memory | only(lexical)+memory | hybrid(lexical)+sqlite | only(lexical)+sqlite | "+
		"hybrid(store+lexical)+postgres | only(store)+postgres | only(lexical)+postgres"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, o := range res.Orders {
		if lexical := !strings.Contains(o.Other, "store"); lexical && o.Same != o.Of {
			t.Errorf("%s has the same order for %d of %d questions", o.Other, o.Same, o.Of)
		}
	}
	if own := res.Arms[5].Groups[0].Measures[1].Recall; own.Mean == 0 || res.Arms[5].Failed > 0 {
		t.Errorf("PostgreSQL's own search: %+v", own)
	}
	var left bytes.Buffer
	code := cli.Run(t.Context(), builtin.New(), []string{"stats", "--store", "postgres"}, cli.IO{Stdin: strings.NewReader(""), Stdout: &left, Stderr: &left, Environ: environ})
	if code != cli.ExitOK || !regexp.MustCompile(`entries\s+0\b`).MatchString(left.String()) {
		t.Errorf("exit code %d; want nothing left in the store:\n%s", code, left.String())
	}
}
