package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// TestDoctorLooksEverywhere: what is wrong is found wherever it stands, and not with the agent main alone.
func TestDoctorLooksEverywhere(t *testing.T) {
	address, _ := paid(t)
	for _, tt := range []struct {
		name, text string
		code       int
		want       []string
	}{
		{"a broken agent", "store: memory\nagents:\n  coder: {searchers: [vector]}\n", cli.ExitUsage, []string{`fail  agents, arms   registry: engine for "coder"`}},
		{"a broken arm", "store: memory\narms:\n  - {name: a, weight: 100000}\n  - {name: b, weight: 0.001, override: {searchers: [vector]}}\n", cli.ExitUsage, []string{`fail  agents, arms   registry: engine for "", arm "b"`}},
		{"sound ones", "store: memory\nagents:\n  coder: {recentMessages: 9}\narms: [{name: a}]\n", cli.ExitOK, []string{"ok    agents, arms   agents coder; arms a: their engines can be made"}},
		{"a mistyped agent of an arm", "store: memory\nagents:\n  coder: {recentMessages: 9}\narms: [{name: a, agents: [codr]}]\n", cli.ExitOK, []string{`note  arms           arm "a" takes sessions of agent "codr"`, `did you mean "coder"?`}},
		{"a variable in a file", "store: memory\nmodel: {type: openai, baseUrl: \"" + address + "\", model: m, apiKey: \"${OPENAI_API_KEY}\"}\n", cli.ExitUsage, []string{"fail  variables      model.apiKey: ${OPENAI_API_KEY} is taken as it stands", "CONTEXTENGINE_MODEL__API_KEY"}},
		{"a variable in an address", "store: memory\nmodel: {type: openai, baseUrl: \"http://${MODEL_HOST}/v1\", model: m}\n", cli.ExitUsage, []string{"fail  variables      model.baseUrl: ${MODEL_HOST} is taken as it stands", "CONTEXTENGINE_MODEL__BASE_URL"}},
		{"a mistyped searcher", "store: memory\nretriever: {type: hybrid, weights: {lexial: 3}}\n", cli.ExitUsage, []string{`weights.lexial: unknown searcher "lexial", did you mean "lexical"? (known: lexical)`, "-> correct the configuration"}},
		{"arms that take nobody", "store: memory\narms: [{name: a, weight: 0}, {name: b, weight: 0}]\n", cli.ExitOK, []string{"note  arms           every arm has the weight 0: no session is given one"}},
		{"an engine without parts", "engine: legacy\n", cli.ExitOK, []string{"ok    store          none is configured, and none is needed"}},
		{"an embedder", "store: memory\nembedder: {type: openai, baseUrl: \"" + address + "\", model: m}\n", cli.ExitOK, []string{"ok    embedder       openai answers: vectors of 2 numbers by m"}},
		{"an embedder that is away", "store: memory\nembedder: {type: openai, baseUrl: \"http://127.0.0.1:1/v1\", model: m, maxRetries: 0}\n", cli.ExitFailure, []string{"fail  embedder       openai: ", "check that the server runs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, builtin.New(), "", "doctor", "--config", write(t, "c.yaml", tt.text)).want(t, tt.code, tt.want...)
		})
	}
}

// A file with a key in it is for its owner alone.
func TestDoctorLooksAtTheFile(t *testing.T) {
	file := write(t, "c.yaml", "store: memory\nmodel: {type: openai, baseUrl: \"http://127.0.0.1:1/v1\", model: m, apiKey: sesame}\n")
	got := run(t, builtin.New(), "", "doctor", "--config", file)
	got.want(t, cli.ExitOK)
	got.lacks(t, "others on this machine")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	got = run(t, builtin.New(), "", "doctor", "--config", file)
	got.want(t, cli.ExitOK, "note  file ", "holds a key, and others on this machine can read it", "chmod 600 ")
	got.lacks(t, "sesame")
	for _, text := range []string{
		"store: memory\n",
		"store: memory\nmodel: {type: openai, baseUrl: \"http://127.0.0.1:1/v1\", model: m, apiKey: \"${MODEL_KEY}\"}\n",
		"store: {type: postgres, dsn: \"postgres://u:${PASSWORD}@localhost/x\"}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got = run(t, builtin.New(), "", "doctor", "--config", file)
		got.lacks(t, "others on this machine")
	}
}

// An agent that is asked about and that the configuration does not name is most likely a slip.
func TestDoctorOfAMistypedAgent(t *testing.T) {
	file := write(t, "c.yaml", "store: memory\nagents: {coder: {recentMessages: 9}}\n")
	run(t, builtin.New(), "", "doctor", "--config", file, "--agent", "codr").want(t, cli.ExitOK, `note  agents         there is no agent "codr" in the configuration: what holds for all is looked at`, `did you mean "coder"?`)
	run(t, builtin.New(), "", "doctor", "--config", file, "--agent", "coder").lacks(t, "note  agents")
}

// A damaged store says more than a line: none of it leaves its column.
func TestDoctorKeepsToItsColumns(t *testing.T) {
	file := write(t, "c.yaml", "store: memory\nretreiver: x\nwindow: {high: 9}\n")
	got := run(t, builtin.New(), "", "doctor", "--config", file)
	got.want(t, cli.ExitUsage, `unknown key "retreiver"`, "window.high: must be 0.2 to 1", "2 mistakes:")
	lines := strings.Split(strings.TrimRight(got.out, "\n"), "\n")
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, strings.Repeat(" ", 21)) {
			t.Errorf("a line begins left of its column: %q", line)
		}
	}
	if len(lines) < 6 {
		t.Errorf("it is not folded:\n%s", got.out)
	}
}
