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
