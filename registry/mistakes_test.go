package registry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
)

// TestAllMistakesAtOnce: whoever mends a file sees everything that is wrong with it, wherever it stands.
func TestAllMistakesAtOnce(t *testing.T) {
	r := newRegistry(t, &shop{})
	_, err := r.Load(yaml("retriver: x\nwindow: {hihg: 0.8, low: much}\nrecentMessages: many\nagents:\n  coder: {failur: strict}\narms:\n  - {name: a, override: {tokeniser: x}}\n"))
	if !errors.Is(err, core.ErrInvalid) {
		t.Fatalf("Load = %v, want ErrInvalid", err)
	}
	for _, want := range []string{
		"6 mistakes:\n", `retriver: unknown key "retriver", did you mean "retriever"?`, `window.hihg: unknown key "hihg", did you mean "high"?`, "window.low: ", "recentMessages: ",
		`agents.coder.failur: unknown key`, `arms.0.override.tokeniser: unknown key`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing:\n%v", want, err)
		}
	}
	if _, err := r.Load(yaml("retriver: x\n")); err == nil || strings.Contains(err.Error(), "mistakes") {
		t.Errorf("a single mistake: %v", err)
	}
}

// Values out of range are told at once, too, with the agent whose they are.
func TestAllRanges(t *testing.T) {
	r := newRegistry(t, &shop{})
	_, err := r.Load(yaml("agents: {coder: {window: {high: 3, low: 7}, recall: {share: 9, deadline: 0s}}}\n"))
	for _, want := range []string{"4 mistakes:\n", "agents.coder: core: config: window.high: must be 0.2 to 1", "window.low: must be 0.1 to 0.99", "recall.share: must be 0 to 0.5", "recall.deadline: must be positive"} {
		if err == nil || !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
