package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

func TestRedactionAtIngest(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) {
		c.Redact = []engine.RedactRule{{Name: "code", Pattern: `xyzzy-\d+`}}
	})
	host := []message.Message{user("my code is " + secret), assistant("it is " + secret)}
	commit := core.CommitTurnRequest{Session: f.id, AdvancementKey: "turn-1", Messages: host}
	if _, err := f.engine.CommitTurn(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the host's copy stays as it was, and is recognised, also after a restart
		host = append(host, user("and "+secret), assistant("yes"))
		s := shown(f.assemble(1000, transcript("next", host...)))
		if strings.Contains(s, secret) || !strings.Contains(s, "[redacted code]") {
			t.Errorf("shown: %s", s)
		}
		f.restart()
	}
	f.ingest(user("once more " + secret))
	if got := f.traces(); got != nil {
		t.Errorf("the secret is in %q", got)
	}
	if n := f.stored(); n != 7 {
		t.Errorf("%d entries are stored, want 7", n)
	}
	// What the host has is what it skips: a digest over its own messages.
	res := f.assemble(1000, transcript("next", host...), func(r *core.AssembleRequest) {
		r.Transcript = &core.Transcript{Messages: host}
	})
	skip := &core.Transcript{Skipped: len(host), Digest: message.DigestOf(host), Messages: []message.Message{user("new")}}
	if got := f.assemble(1000, func(r *core.AssembleRequest) { r.Transcript, r.Prompt = skip, "p" }); len(got.Messages) != len(res.Messages)+1 {
		t.Errorf("%d messages after a skipped transcript, %d before", len(got.Messages), len(res.Messages))
	}
}

func TestRedactRulesAreChecked(t *testing.T) {
	for name, rule := range map[string]engine.RedactRule{
		"no name":        {Pattern: "a"},
		"no pattern":     {Name: "a"},
		"not a pattern":  {Name: "a", Pattern: "("},
		"matches empty":  {Name: "a", Pattern: "a*"},
		"matches itself": {Name: "a", Pattern: "redacted"},
	} {
		cfg := engine.DefaultConfig()
		cfg.Redact = []engine.RedactRule{rule}
		if err := cfg.Validate(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "redact[0].") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRedactedTranscriptIsTakenBack: a host that goes back in a conversation of which a part was redacted is understood: it hands over its own copies, which
// say more than what is stored.
func TestRedactedTranscriptIsTakenBack(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) {
		c.Redact = []engine.RedactRule{{Name: "code", Pattern: `xyzzy-\d+`}}
	})
	host := []message.Message{user("my code is " + secret), assistant("it is " + secret), user("and now?"), assistant("nothing")}
	f.assemble(1000, transcript("next", host...))
	const want = "my code is [redacted code] | it is [redacted code]"
	if got := shown(f.assemble(1000, transcript("next", host[:2]...))); got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if n := f.stored(); n != len(host) {
		t.Errorf("%d entries are stored, want %d", n, len(host))
	}
}
