package mask

import (
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// leastRaw is the size of a block of unknown kind from which on it is content, in bytes: smaller ones are marks of the host.
const leastRaw = 1024

// isMedia reports whether a part is an image, a document or a recording.
func isMedia(p *message.Part) bool {
	return p.Kind == message.Image || p.Kind == message.Other && len(p.Raw) >= leastRaw
}

// mediaOf counts the media of an entry, those inside results included.
func mediaOf(e *core.Entry) int {
	n := 0
	for i := range e.Message.Parts {
		p := &e.Message.Parts[i]
		if isMedia(p) {
			n++
		}
		for _, in := range message.Inside(*p) {
			if isMedia(&in) {
				n++
			}
		}
	}
	return n
}

// newestMedia returns the positions of the entries with the newest images and files that stay.
func (w *work) newestMedia() map[int]bool {
	if w.pictured != nil {
		return w.pictured
	}
	w.pictured = make(map[int]bool)
	room := w.cfg.KeepImages
	for i := len(w.c.Entries) - 1; i >= 0 && room > 0; i-- {
		if n := mediaOf(&w.c.Entries[i]); n > 0 {
			room -= n
			w.pictured[i] = true
		}
	}
	return w.pictured
}

// maskMedia puts notes in the place of the images and files of entry i when they are not new, nor part of the newest request; what was said beside them stays. An assistant's blocks
// belong to its provider and stay.
func (w *work) maskMedia(i int) {
	e := &w.c.Entries[i]
	if e.Type != core.TypeMessage || e.Role != message.User && e.Role != message.Tool || !slices.ContainsFunc(e.Message.Parts, func(p message.Part) bool { return isMedia(&p) }) {
		return
	}
	if w.newestMedia()[i] || i == w.newestPrompt() || w.cfg.KeepFailed && slices.ContainsFunc(e.Message.Parts, func(p message.Part) bool { return p.IsError }) {
		return
	}
	old, known := w.before(i)
	if !known {
		return
	}
	st := window.Stub{Kind: window.Clipped, Texts: make(map[int]string)}
	for n := range e.Message.Parts {
		if p := &e.Message.Parts[n]; isMedia(p) && old.Texts[n] == "" {
			st.Texts[n] = window.MediaNote(*p, e.ID)
		}
	}
	if len(st.Texts) > 0 {
		w.put(i, st)
	}
}

// clipPayload shortens what a user pasted. The newest message of a user, what a host put in place of history and what was shortened before stay.
func (w *work) clipPayload(i int) {
	e := &w.c.Entries[i]
	if w.cfg.PayloadTokens == 0 || e.Tokens <= w.cfg.PayloadTokens || e.Type != core.TypeMessage || e.Role != message.User || strings.HasSuffix(e.Message.Type, "Summary") {
		return
	}
	old, known := w.before(i)
	if !known || i == w.newestPrompt() {
		return
	}
	st := window.Stub{Kind: window.Clipped, Texts: make(map[int]string)}
	for n, p := range e.Message.Parts {
		if p.Kind != message.Text || old.Texts[n] != "" {
			continue
		}
		if size := w.c.Count(p.Text); size > w.cfg.PayloadTokens {
			st.Texts[n] = w.clipped(p.Text, size, w.cfg.PayloadTokens/2, e.ID)
		}
	}
	if len(st.Texts) > 0 {
		w.put(i, st)
	}
}

// newestPrompt returns the position of the newest message of a user, -1 when there is none.
func (w *work) newestPrompt() int {
	for i, e := range slices.Backward(w.c.Entries) {
		if e.Role == message.User && e.Type == core.TypeMessage && e.Message.Type == "" {
			return i
		}
	}
	return -1
}
