package window

import (
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// MediaNote is the line that a window shows instead of an image, a document or a recording: what it is, as far as its block tells, and the id of the
// entry as the way back. It is a function of its arguments.
func MediaNote(p message.Part, id string) string {
	m, _ := message.MediaOf(p)
	var b strings.Builder
	b.WriteString("[" + m.Kind + " not shown")
	if s := m.String(); s != "" {
		b.WriteString(": " + s)
	}
	if s := said(p.Text); s != "" {
		b.WriteString(": " + s)
	}
	b.WriteString("; entry " + id + "]")
	return b.String()
}

// said is the beginning of a host's own description of a block.
func said(text string) string {
	return strings.TrimSpace(QuoteName(CutRune(FirstLine(text), 64)))
}

// ImageTokens is what an image costs in prompts as the engine reckons, in tokens: providers charge by size, this is the price of a large one.
const ImageTokens = 1600
