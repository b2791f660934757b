package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestManySteps: where a provider wants one message of what a user said in many, the oldest of them leave when they have to, however many that are, and no
// more than that. What is published is what was sent: another process goes on from there.
func TestManySteps(t *testing.T) {
	for _, n := range []int{40, 64, 65, 66, 67, 90, 1000} {
		store := memory.New()
		another := func() *engine.Engine {
			e, err := engine.New(engine.Parts{Store: store, Compactor: &halver{}, Counter: wordCounter}, engine.DefaultConfig())
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		id := core.SessionID{Agent: "ada", Session: "s"}
		e := another()
		var msgs []message.Message
		for i := range n {
			msgs = append(msgs, message.New(message.User, fmt.Sprintf("message %d %s", i, strings.Repeat("word ", 60))))
		}
		if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: id, Messages: msgs}); err != nil {
			t.Fatal(err)
		}
		req := core.AssembleRequest{Session: id, Budget: 100_000, Settings: core.RuntimeSettings{Provider: "anthropic"}}
		if _, err := e.Assemble(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		for _, budget := range []int{600, 500} {
			req.Budget = budget
			res, err := e.Assemble(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if res.EstimatedTokens < budget/3 { // a step leaves nearly half of it, less what does not divide
				t.Errorf("%d messages, budget %d: only %d tokens are used", n, budget, res.EstimatedTokens)
			}
			again, err := e.Assemble(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			other, err := another().Assemble(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if sent := sentText(res); sentText(again) != sent {
				t.Errorf("%d messages, budget %d: the next call sends\n%s\nthe first sent\n%s", n, budget, sentText(again), sent)
			} else if sentText(other) != sent {
				t.Errorf("%d messages, budget %d: another process sends\n%s\nthe first sent\n%s", n, budget, sentText(other), sent)
			}
		}
	}
}

// sentText is what the messages of a result say.
func sentText(res core.AssembleResult) string {
	var b strings.Builder
	for _, m := range res.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text())
	}
	return b.String()
}

// TestNoMoreLeavesThanHasTo: of what a rule merged into one message so many leave as bring the window down to its mark, which is 585 tokens here, and not one more.
func TestNoMoreLeavesThanHasTo(t *testing.T) {
	for words, want := range map[int]string{515: "[1 earlier", 516: "[2 earlier"} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Window.BatchShare = 1 })
		f.ingest(user(strings.Repeat("first ", 450)), user(strings.Repeat("second ", 44)), user(strings.Repeat("third ", words)))
		got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Settings.Provider = "anthropic" }))
		if !strings.HasPrefix(got, want) || strings.Contains(got, "second") != (words == 515) {
			t.Errorf("%d words: shown %.60q", words, got)
		}
	}
}
