package engine_test

import (
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestCostOfTheHostsRoles: a message costs what the host calls its role, also where that is none of the four.
func TestCostOfTheHostsRoles(t *testing.T) {
	bytes := func(text string) int { return len(text) }
	for role, format := range map[string]string{
		"user": message.FormatPi, "assistant": message.FormatPi, "compactionSummary": message.FormatPi, "branchSummary": message.FormatPi, "bashExecution": message.FormatPi,
		"a role from the future": message.FormatPi, "developer": message.FormatOpenAI, "system": message.FormatOpenAI,
	} {
		t.Run(role, func(t *testing.T) {
			codec, err := message.Lookup(format)
			if err != nil {
				t.Fatal(err)
			}
			m, err := codec.Decode([]byte(`{"role":"` + role + `","content":"what was said","summary":"what was said","output":"what was said"}`))
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Counter = bytes })
			res := f.assemble(1000, transcript("", m, user("now")))
			want := len(role) + len("what was said") + 4 + len("user") + len("now") + 4
			if len(res.Messages) != 2 || res.EstimatedTokens != want {
				t.Errorf("%d messages of %d tokens, want 2 of %d", len(res.Messages), res.EstimatedTokens, want)
			}
			if stored := f.entry("what was said"); stored.Type != core.TypeMessage || stored.Tokens != want-len("user")-len("now")-4 {
				t.Errorf("stored with %d tokens as %s", stored.Tokens, stored.Type)
			}
		})
	}
}

// TestCostOfMergedRoles: messages that a provider's rule makes of others cost what their role costs, also where another role says the same.
func TestCostOfMergedRoles(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.History.Provider, p.Counter = "anthropic", func(text string) int { return len(text) }
	})
	f.ingest(user("one"), user("two"), assistant("one"), assistant("two"), user("now"))
	res := f.assemble(1000)
	want := 0
	for _, m := range res.Messages {
		want += len(m.Role) + len(m.Text()) + 4
	}
	if len(res.Messages) != 3 || res.EstimatedTokens != want {
		t.Errorf("%d messages of %d tokens, want 3 of %d", len(res.Messages), res.EstimatedTokens, want)
	}
}
