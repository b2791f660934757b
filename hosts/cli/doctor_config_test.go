package cli_test

import (
	"os"
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
	if err := os.WriteFile(file, []byte("store: memory\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got = run(t, builtin.New(), "", "doctor", "--config", file)
	got.lacks(t, "others on this machine")
}
