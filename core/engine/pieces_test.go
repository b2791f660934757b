package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestPassagesOfOneMessage: of a long message that earlier blocks quote in part, another block quotes what they do not.
func TestPassagesOfOneMessage(t *testing.T) {
	var words []string
	for n := range 400 {
		words = append(words, fmt.Sprintf("word%d", n))
	}
	long := strings.Join(words, " ")
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.Quote, c.Recall.Whole, c.Recall.Gate, parts.Retriever = 40, 20, false, p
	})
	f.say(f.id, false, append(one(user(long)), chatter(0, 30)...)...)
	ask := func(n int, passage string) string {
		f.everything(p, "main")
		p.candidates = p.candidates[:1]
		p.candidates[0].Text = passage
		f.say(f.id, false, user(fmt.Sprintf("what was that, %d?", n)))
		res := f.assemble(600, func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull })
		var all []string
		for _, m := range res.Messages {
			if strings.Contains(m.Text(), "<recalled>") {
				all = append(all, m.Text())
			}
		}
		f.say(f.id, false, message.New(message.Assistant, "that"))
		return strings.Join(all, "\n")
	}
	got := ask(0, "")
	if !strings.Contains(got, "word0 ") || !strings.Contains(got, "word399") || strings.Contains(got, "word200 ") {
		t.Fatalf("quoted: %s", got)
	}
	for n, c := range []struct {
		passage string
		new     string
	}{
		{strings.Join(words[:250], " "), "word249"},
		{strings.Join(words[150:], " "), "word150 "},
		{long, ""},
		{strings.Join(words[300:320], " "), "word310"},
		{strings.Join(words[296:324], " "), "word296 "},
		{strings.Join(words[302:318], " "), ""},
	} {
		got := ask(n+1, c.passage)
		if !strings.Contains(got, c.new) {
			t.Errorf("passage %d: %q is not quoted: %s", n, c.new, got)
		}
		for _, w := range words {
			if n := strings.Count(got+" ", w+" ") + strings.Count(got, w+"\n"); n > 1 {
				t.Errorf("passage %d: %q is quoted %d times: %s", n, w, n, got)
				break
			}
		}
	}
}
