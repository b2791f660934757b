package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// triesChecks look at hosts that let a turn be made again, and go back to an earlier try.
var triesChecks = []Check{
	{ID: "contract.tries", Promise: 5, Suite: SuiteEngine, script: scriptTries,
		Rule: "where a turn is made again, and the same is called under another id with another result, whichever try the host's transcript holds is shown, each call with its own result"},
}

// scriptTries makes turns again: after each other, or with another turn between; where everything has a name, and where only calls have ids.
func scriptTries(s *script) string {
	for n, names := range []string{"", "id", "time", "", "id"} {
		s.id = recallSession(fmt.Sprintf("tries %d", n))
		h := turnHost{script: s, names: names}
		h.list = []message.Message{h.says(message.User, "greets"), h.says(message.Assistant, "greets back")}
		if text := h.showsList(); text != "" {
			return text
		}
		begins := h.list
		if n > 2 {
			begins = slices.Concat(begins, h.looks())
		}
		first := h.looks()
		second := copiedMessages(first)
		for i := range second[1:] {
			h.named(&second[1+i])
		}
		second[1].Parts[len(second[1].Parts)-1].CallID += "-again"
		second[2].Parts = []message.Part{{Kind: message.ToolResult, CallID: first[2].Parts[0].CallID + "-again", Name: "look", Text: s.message(message.Tool, "seen otherwise").Text()}}
		second[3] = h.says(message.Assistant, "answers otherwise")
		for try, turn := range [][]message.Message{first, second, first, second, first} {
			if h.list = begins; try < 2 && n%2 == 0 && h.tells() {
				if text := h.accept(true, turn); text != "" {
					return text
				}
			}
			h.list = slices.Concat(begins, turn)
			if text := h.showsList(); text != "" {
				return fmt.Sprintf("messages named by %q, a turn is made again, list %d holds try %d: %s", names, try+1, try%2+1, text)
			}
		}
	}
	return ""
}

// showsList looks whether all that the transcript says is shown, in its order.
func (h *turnHost) showsList() string {
	if text := h.asks(nil, "", core.CallPrompt); text != "" {
		return text
	}
	var shown strings.Builder
	for _, m := range h.got.Messages {
		shown.WriteString(allOf(m))
	}
	rest := shown.String()
	for i, m := range h.list {
		for _, part := range m.Parts {
			_, after, ok := strings.Cut(rest, part.Text)
			if !ok {
				return fmt.Sprintf("message %d of %d (%s), %q, is not shown, or not in its place: %d messages are", i+1, len(h.list), m.Role, part.Text, len(h.got.Messages))
			}
			rest = after
		}
	}
	return ""
}
