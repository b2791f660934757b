package core

import (
	"maps"
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
	return strings.TrimSpace(quoteName(cutRune(firstLine(text), 64)))
}

// withNotes adds to what stands for a result the notes on the images inside it, which leave with it.
func withNotes(text string, result message.Part, id string) string {
	for _, p := range message.Inside(result) {
		text += "\n" + MediaNote(p, id)
	}
	return text
}

// over lays st over what was shown of the same entry before: parts that st does not name stay as they were shown.
func (st Stub) over(before Stub) Stub {
	if len(before.Texts) == 0 {
		return st
	}
	texts := maps.Clone(before.Texts)
	maps.Copy(texts, st.Texts)
	st.Texts = texts
	return st
}

// maskMedia returns the stub that puts notes in the place of a user's images and other blocks; what the user wrote stays. It returns false when there is
// nothing to put away.
func (e *Engine) maskMedia(entry Entry) (Stub, bool) {
	st := Stub{Kind: Clipped, Texts: make(map[int]string)}
	if entry.Role != message.User {
		return st, false
	}
	for i, p := range entry.Message.Parts {
		if p.Kind != message.Image && p.Kind != message.Other {
			continue
		}
		if note := MediaNote(p, entry.ID); e.count(note) < e.partCost(&p) {
			st.Texts[i] = note
		}
	}
	if len(st.Texts) == 0 {
		return st, false
	}
	st.Tokens = e.messageCost(shownAs(entry, &st))
	return st, true
}
