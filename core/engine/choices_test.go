package engine_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
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
