package window

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// MaskText stands for a result that is not shown, of the tool of that name; tokens is what its entry costs whole, and id the entry's. A nameless tool is
// called just that.
func MaskText(name string, result message.Part, tokens int, id string) string {
	if name == "" {
		name = "tool"
	}
	outcome := "ok"
	if result.IsError {
		outcome = "error"
	}
	return fmt.Sprintf("[tool result not shown: %s, %s, %d tokens; entry %s]", name, outcome, tokens, id)
}

// ClipMarker stands between the head and the tail of a clipped text, which had so many tokens.
func ClipMarker(tokens int, id string) string {
	return fmt.Sprintf("\n[... shortened, %d tokens in all; entry %s ...]\n", tokens, id)
}

// NotShown counts messages in front of what is shown.
func NotShown(n int) string { return notShown(n) + ".]" }

func notShown(n int) string {
	return "[" + strconv.Itoa(n) + " earlier messages are stored but not shown"
}

// noteOf takes the number and the rest of a text that begins as NotShown does.
var noteOf = regexp.MustCompile(`(?s)^\[(\d{1,9}) earlier messages are stored but not shown(.*)$`)

// NotShownEither counts further messages in a text that begins as NotShown does, so that one note speaks of all. It reports false, and returns the text as it is,
// where it begins otherwise.
func NotShownEither(text string, further int) (string, bool) {
	found := noteOf.FindStringSubmatch(text)
	if found == nil {
		return text, false
	}
	n, _ := strconv.Atoi(found[1])
	rest := found[2]
	if times, ok := strings.CutPrefix(rest, ", from "); ok {
		rest = fmt.Sprintf(", the first %d from %s", n, times)
	}
	return notShown(n+further) + rest, true
}

// MaskStub masks every result of an entry with MaskText, and the media inside and beside them with MediaNote; name names the tool of a result. Tokens is left
// to the caller, who can count. It is a function of its arguments.
func MaskStub(m message.Message, tokens int, id string, name func(message.Part) string) Stub {
	st := Stub{Kind: Masked, Texts: make(map[int]string)}
	for i, p := range m.Parts {
		switch p.Kind {
		case message.ToolResult:
			st.Texts[i] = MaskText(name(p), p, tokens, id)
			for _, in := range message.Inside(p) {
				st.Texts[i] += "\n" + MediaNote(in, id)
			}
		case message.Image, message.Other:
			st.Texts[i] = MediaNote(p, id)
		}
	}
	return st
}
