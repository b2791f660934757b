package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry"
	"github.com/contextengine/contextengine/registry/builtin"
)

// outcome is what a command line did.
type outcome struct {
	code        int
	out, errors string
}

func run(t *testing.T, reg *registry.Registry, stdin string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), reg, args, cli.IO{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	return outcome{code, out.String(), errs.String()}
}

// want fails the test unless the command ended with a code and every text stands in one of its streams.
func (o outcome) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	for _, s := range texts {
		if !strings.Contains(o.out+o.errors, s) && !strings.Contains(unfolded(o.out+o.errors), unfolded(s)) {
			t.Errorf("%q is missing", s)
		}
	}
	if t.Failed() {
		t.Fatalf("stdout:\n%s\nstderr:\n%s", o.out, o.errors)
	}
}

// unfolded is a text as if it had never been broken into lines.
func unfolded(text string) string { return strings.Join(strings.Fields(text), " ") }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayOfTheExample(t *testing.T) {
	run(t, builtin.New(), "", "replay").want(t, cli.ExitOK, "example.jsonl: 1 session, 152 messages", "hybrid+archive+memory", "(naive sliding)", "0 violations in 152 calls")
}

func TestReplayAsJSON(t *testing.T) {
	got := run(t, builtin.New(), "", "replay", "--json", "--budget", "2k", "--retriever", "recent,hybrid", "--jitter", "3")
	got.want(t, cli.ExitOK)
	var v struct {
		Violations *int
		Reports    []struct {
			Config string
			Budget int
			Calls  int
			Steps  int
		}
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Violations == nil || *v.Violations != 0 || len(v.Reports) != 2 {
		t.Fatalf("%+v", v)
	}
	for i, name := range []string{"recent+archive+memory", "hybrid+archive+memory"} {
		if r := v.Reports[i]; r.Config != name || r.Budget != 2000 || r.Calls != 76 || r.Steps == 0 {
			t.Errorf("report %d: %+v, want %s", i, r, name)
		}
	}
}

func TestReplayOfCombinations(t *testing.T) {
	got := run(t, builtin.New(), "", "replay", "--budget", "2k,4k", "--combinations", "all", "--compactor", "archive,delegate")
	got.want(t, cli.ExitOK, "0 violations")
	if strings.Contains(got.out, "+summary+") {
		t.Errorf("summary was not asked for:\n%s", got.out)
	}
	for _, name := range []string{"hybrid+archive+memory", "recent+delegate+memory", "semantic+archive+memory"} {
		if !strings.Contains(got.out, name) {
			t.Errorf("%s is missing:\n%s", name, got.out)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"command", []string{"repaly"}, `did you mean "replay"?`},
		{"flag", []string{"replay", "--bogus"}, "--bogus"},
		{"budget", []string{"replay", "--budget", "plenty"}, "such as 8000 or 8k"},
		{"retriever", []string{"replay", "--retriever", "hybird"}, `did you mean "hybrid"?`},
		{"combinations", []string{"replay", "--combinations", "some"}, "(known: all)"},
		{"store of combinations", []string{"replay", "--combinations", "all", "--store", "memroy"}, `did you mean "memory"?`},
		{"format", []string{"replay", "--format", "opnai", "-"}, "opnai"},
		{"turn", []string{"explain", "--turn", "99"}, "76 model calls in 21 turns"},
		{"session", []string{"explain", "--session", "morning"}, `unknown session "morning"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, builtin.New(), "", tt.args...)
			got.want(t, cli.ExitUsage, tt.want)
		})
	}
}

func TestConfigurationErrors(t *testing.T) {
	file := write(t, "bad.yaml", "retriver: hybrid\n")
	for _, verb := range []string{"replay", "doctor", "explain"} {
		run(t, builtin.New(), "", verb, "--config", file).want(t, cli.ExitUsage, `did you mean "retriever"?`)
	}
	run(t, builtin.New(), "", "replay", "--config", "absent.yaml").want(t, cli.ExitUsage, "absent.yaml")
}

func TestConfigurationFromTheEnvironment(t *testing.T) {
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), builtin.New(), []string{"doctor"}, cli.IO{
		Stdout: &out, Stderr: &errs,
		Environ: []string{"CONTEXTENGINE_CONFIG=" + write(t, "c.yaml", "compactor: summary\n"), "CONTEXTENGINE_RETRIEVER=recent"},
	})
	outcome{code, out.String(), errs.String()}.want(t, cli.ExitOK, "retriever recent, compactor summary", "note  model")
}

func TestTwoConfigurations(t *testing.T) {
	a, b := write(t, "a.yaml", "window: {high: 0.8, low: 0.6}\n"), write(t, "b.toml", "retriever = \"recent\"\n")
	run(t, builtin.New(), "", "replay", "--budget", "4k", "--config", a, "--config", b).
		want(t, cli.ExitOK, "a:hybrid+archive+memory", "b:recent+archive+memory", "0 violations")
}

const short = `{"role":"system","content":"be brief"}
{"role":"user","content":"hello"}
{"role":"assistant","content":"hi"}
{"role":"user","content":"how are you?"}
`

func TestMalformedLine(t *testing.T) {
	file := write(t, "t.jsonl", strings.Replace(short, `{"role":"assistant","content":"hi"}`, `{"role":"assistant","content"`, 1))
	run(t, builtin.New(), "", "replay", file).want(t, cli.ExitFailure, file+":3: expected")
	run(t, builtin.New(), "", "replay", "--keep-going", file).
		want(t, cli.ExitOK, "warning: "+file+":3: expected", "passed over 1 malformed line", "3 messages", "0 violations")
}

func TestStandardInput(t *testing.T) {
	run(t, builtin.New(), short, "replay", "-").want(t, cli.ExitOK, "stdin: 1 session, 4 messages", "0 violations in 4 calls")
	run(t, builtin.New(), "", "replay", "-").want(t, cli.ExitFailure, "no messages")
}

func TestBudgetErrorsAreNoViolations(t *testing.T) {
	long := strings.Replace(short, "be brief", strings.Repeat("rule ", 1000), 1)
	got := run(t, builtin.New(), long, "replay", "-", "--budget", "500", "--json")
	got.want(t, cli.ExitOK, `"violations": 0`, `"budgetErrors": 2`)
}

func TestExplain(t *testing.T) {
	run(t, builtin.New(), "", "explain", "--turn", "12", "--budget", "2k", "--wide").
		want(t, cli.ExitOK, "turn 12, model call 45", "in the window", "Remind me which ticket the race was?", "recalled", "#57", "left out", "out: compacted")
	run(t, builtin.New(), "", "explain", "--call", "2", "--json").want(t, cli.ExitOK, `"call": 2`, `"messagesBefore"`, `"choices"`)
	run(t, builtin.New(), "", "explain").want(t, cli.ExitOK, "turn 21", "Obrigada!")
}

func TestDoctor(t *testing.T) {
	run(t, builtin.New(), "", "doctor").want(t, cli.ExitOK, "ok    store", "ok    tokenizer")
	run(t, builtin.New(), "", "doctor", "--json").want(t, cli.ExitOK, `"ok": true`)
	words := write(t, "words.yaml", "retriever: semantic\nstore: memory\n")
	run(t, builtin.New(), "", "doctor", "--config", words).want(t, cli.ExitOK, "note  retriever", "finds words here and no meaning", "-> set embedder and the searcher vector")
	run(t, builtin.New(), "", "explain", "--config", words).want(t, cli.ExitOK, "note: semantic finds words here and no meaning")
	run(t, builtin.New(), "", "explain", "--config", words, "--json").want(t, cli.ExitOK, `"caveat": "semantic finds words here`)
	run(t, builtin.New(), "", "list").want(t, cli.ExitOK, "where neither is configured only words")
	config := write(t, "c.yaml", "engine: openbrain\n")
	run(t, builtin.New(), "", "doctor", "--config", config).want(t, cli.ExitUsage, "fail", "baseUrl and apiKey are required", "-> set what is missing")
}

func TestDoctorOfAStoreOutOfReach(t *testing.T) {
	reg := builtin.New()
	if err := registry.AddStore(reg, "far", "cannot be reached", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.Store, error) { return far{}, nil }); err != nil {
		t.Fatal(err)
	}
	config := write(t, "c.yaml", "store: far\n")
	run(t, reg, "", "doctor", "--config", config).want(t, cli.ExitFailure, "fail  store", "far away", "check that the server runs")
	run(t, reg, "", "list").want(t, cli.ExitOK, "far", "cannot be reached")
	run(t, reg, "", "replay", "--config", config, "--budget", "2k").want(t, cli.ExitFailure, "failed", "far away")
}

// far is a store that cannot be reached.
type far struct{ core.Store }

func (far) Ping(context.Context) error {
	return errors.Join(errors.New("far away"), core.ErrUnavailable)
}
func (far) Close() error { return nil }

func TestList(t *testing.T) {
	run(t, builtin.New(), "", "list").want(t, cli.ExitOK, "retrievers", "hybrid", "window.high", "number, default 0.9")
	got := run(t, builtin.New(), "", "list", "--json")
	var v struct {
		Parts []registry.Part
		Keys  []registry.Key
	}
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || len(v.Parts) < 10 || len(v.Keys) < 10 {
		t.Errorf("%d parts, %d keys, error %v", len(v.Parts), len(v.Keys), err)
	}
}

func TestInit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	run(t, builtin.New(), "", "init", "--output", file).want(t, cli.ExitOK, "wrote "+file)
	run(t, builtin.New(), "", "doctor", "--config", file).want(t, cli.ExitOK)
	run(t, builtin.New(), "", "init", "--output", file).want(t, cli.ExitFailure, "exists", "--force")
	run(t, builtin.New(), "", "init", "--output", file, "--force").want(t, cli.ExitOK)
	run(t, builtin.New(), "", "init", "--output", "-").want(t, cli.ExitOK, "window:")
}

func TestVersion(t *testing.T) {
	run(t, builtin.New(), "", "version").want(t, cli.ExitOK, "contextengine")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := cli.Run(ctx, builtin.New(), []string{"replay"}, cli.IO{Stdout: &out, Stderr: &errs}); code != cli.ExitCancelled {
		t.Errorf("exit code %d, want %d; %s", code, cli.ExitCancelled, errs.String())
	}
}
