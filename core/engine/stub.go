package engine

import (
	"maps"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// stubOver lays st over what was shown of the same entry before: parts that st does not name stay as they were shown.
func stubOver(st window.Stub, before window.Stub) window.Stub {
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
func (e *Engine) maskMedia(entry core.Entry) (window.Stub, bool) {
	st := window.Stub{Kind: window.Clipped, Texts: make(map[int]string)}
	if entry.Role != message.User {
		return st, false
	}
	for i, p := range entry.Message.Parts {
		if p.Kind != message.Image && p.Kind != message.Other {
			continue
		}
		if note := window.MediaNote(p, entry.ID); e.count(note) < e.partCost(&p) {
			st.Texts[i] = note
		}
	}
	if len(st.Texts) == 0 {
		return st, false
	}
	st.Tokens = e.messageCost(shownAs(entry, &st))
	return st, true
}
