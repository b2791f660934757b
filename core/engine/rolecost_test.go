package engine_test

import (
	"strings"
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
		"a role from the future": message.FormatPi, "filler": message.FormatPi, "developer": message.FormatOpenAI, `develop\u0065r`: message.FormatOpenAI,
		"system": message.FormatOpenAI,
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
			want := len(strings.ReplaceAll(role, `\u0065`, "e")) + len("what was said") + 4 + len("user") + len("now") + 4
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

// TestLongCommand: a command of the host's that is longer than all the room there is leaves a prompt within the budget, as it is encoded.
func TestLongCommand(t *testing.T) {
	codec, err := message.Lookup(message.FormatPi)
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int{300, 1000, 2900, 3100} {
		m, err := codec.Decode([]byte(`{"role":"bashExecution","command":"cat` + strings.Repeat(" word", 3000) + `","output":"done","exitCode":0}`))
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t)
		f.ingest(user("hello"), m, user("now"))
		cost := 0
		for _, m := range f.assemble(budget).Messages {
			raw, err := message.Encode(m, message.FormatPi)
			if err != nil {
				t.Fatal(err)
			}
			cost += wordCounter(string(raw))
		}
		if cost > budget {
			t.Errorf("a budget of %d: the prompt has %d words", budget, cost)
		}
	}
}
