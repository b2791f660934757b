package engine_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// TestChoicesCountOnce: what is shown in front of the window, a system message or the prompt of a long turn, is not counted as out as well.
func TestChoicesCountOnce(t *testing.T) {
	turn := []message.Message{message.New(message.System, "be brief"), user("the prompt")}
	for i := range 40 {
		call, result := assistant("step "+strconv.Itoa(i)), message.New(message.Tool, "")
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "c" + strconv.Itoa(i), Name: "f", Args: "{}"})
		result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "c" + strconv.Itoa(i), Name: "f", Text: strings.Repeat("word ", 30) + strconv.Itoa(i)}}
		turn = append(turn, call, result)
	}
	f := newFixture(t)
	res := f.assemble(400, func(r *core.AssembleRequest) {
		r.Call, r.Transcript = core.CallLoop, &core.Transcript{Messages: turn, Whole: true}
	})
	shown, out := map[string]bool{}, 0
	for _, c := range res.Choices {
		if c.Message >= 0 && c.Entry != "" {
			shown[c.Entry] = true
		}
	}
	for _, c := range res.Choices {
		if c.Message >= 0 {
			continue
		}
		if out += c.Count; shown[c.Entry] {
			t.Errorf("entry %q is shown, and out: %+v", c.Entry, c)
		}
	}
	if n := f.stored(); len(shown)+out != n || out == 0 {
		t.Errorf("%d entries are stored, %d are shown and %d are out", n, len(shown), out)
	}
}

// TestChoicesOfWhatARuleDrops: no message shows a result whose call was erased, and the choices say so.
func TestChoicesOfWhatARuleDrops(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "google", "openai"} {
		f := newFixture(t)
		all := one(user("do it"), calling("c1"), resulting("c1", "the result"), assistant("done"), user("next"))
		f.assemble(1000, transcript("", all...))
		result := f.entry("the result").ID
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{entriesOf(f)[1].ID}})
		res := f.assemble(1000, transcript("", all...), under(provider))
		n, tokens := 0, 0
		for _, c := range res.Choices {
			if tokens += max(0, c.Tokens); c.Entry != result {
				continue
			}
			if n++; c.Message != -1 || c.Reason != window.OutRule || c.Tokens == 0 {
				t.Errorf("%q: %+v of %s", provider, c, shown(res))
			}
			tokens -= c.Tokens
		}
		if n != 1 || tokens != res.EstimatedTokens {
			t.Errorf("%q: %d choices of the result; all cost %d, and the prompt %d: %+v", provider, n, tokens, res.EstimatedTokens, res.Choices)
		}
	}
}
