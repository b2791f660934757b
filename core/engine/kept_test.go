package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// TestBlockBeforeAPrompt: what was recalled for a turn that the transcript holds stays where it was shown when the host goes on with a prompt that the
// transcript does not hold yet: what stood behind it would be billed again otherwise.
func TestBlockBeforeAPrompt(t *testing.T) {
	r, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"words": &finder{}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
		c.Recall.Share = 0.2
		p.Retriever = r
	})
	host := []message.Message{user("the kite is red"), assistant("noted " + strings.Repeat("word ", 300))}
	for range 20 {
		host = append(host, user("go on "+strings.Repeat("word ", 30)), assistant("done "+strings.Repeat("word ", 30)))
	}
	ask := func(prompt string, more ...message.Message) []string {
		host = append(host, more...)
		res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{
			Session: f.id, Budget: 1200, Prompt: prompt, Transcript: &core.Transcript{Messages: slices.Clone(host)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range res.Messages {
			texts = append(texts, m.Text())
		}
		return texts
	}
	ask("")
	was := ask("", user("which colour is the kite?"), assistant("let me see"), user("and its tail?"))
	if !slices.ContainsFunc(was, func(s string) bool { return strings.HasPrefix(s, "<recalled>") }) {
		t.Fatalf("nothing is recalled: %q", was)
	}
	now := ask("how long is its string?", assistant("blue"))
	if len(now) < len(was) || !slices.Equal(now[:len(was)], was) {
		t.Errorf("shown before %q, now %q", was, now)
	}
}
