package mask

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/compacting"
)

// work is one compaction under way.
type work struct {
	cfg   Config
	c     core.Compaction
	names map[string]string
	stubs map[string]core.Stub
	// kept is the set of the newest results, by the position of their entries.
	kept map[int]bool
	// left is what the session costs so far.
	left int
	// all says that everything is to be masked that may be.
	all bool
}

func (w *work) enough() bool { return !w.all && w.left <= w.c.Target }

// namesOf returns the names of the tools by call id: results do not name them in every format. A host may use an id again, then the nearest call
// before a result is meant; names of one id differ too seldom to look.
func namesOf(entries []core.Entry) map[string]string {
	names := make(map[string]string)
	for i := range entries {
		for _, p := range entries[i].Message.Parts {
			if p.Kind == message.ToolCall && p.CallID != "" {
				names[p.CallID] = p.Name
			}
		}
	}
	return names
}

// newest returns the positions of the entries with the newest results that stay.
func (w *work) newest() map[int]bool {
	if w.kept != nil {
		return w.kept
	}
	w.kept = make(map[int]bool)
	room := w.cfg.KeepResults
	for i := len(w.c.Entries) - 1; i >= 0 && room > 0; i-- {
		if n := len(w.c.Entries[i].Message.Results()); n > 0 {
			room -= n
			w.kept[i] = true
		}
	}
	return w.kept
}

// maskOld masks the results of entry i when they are neither new nor failed.
func (w *work) maskOld(i int) {
	e := &w.c.Entries[i]
	if e.Type != core.TypeMessage || !e.Message.HasResults() || w.newest()[i] {
		return
	}
	if w.cfg.KeepFailed && slices.ContainsFunc(e.Message.Parts, func(p message.Part) bool { return p.IsError }) {
		return
	}
	st := core.Stub{Kind: core.Masked, Texts: make(map[int]string)}
	for n, p := range e.Message.Parts {
		switch p.Kind {
		case message.ToolResult:
			st.Texts[n] = w.line(p, e)
		case message.Image, message.Other:
			st.Texts[n] = "[" + string(p.Kind) + " not shown; entry " + e.ID + "]"
		}
	}
	w.put(i, st)
}

// line stands for a result. It is worded like the engine's own, so that it does not matter who masked.
func (w *work) line(p message.Part, e *core.Entry) string {
	name := p.Name
	if name == "" {
		name = w.names[p.CallID]
	}
	if name = compacting.FirstLine(name, 80); name == "" {
		name = "tool"
	}
	outcome := "ok"
	if p.IsError {
		outcome = "error"
	}
	return fmt.Sprintf("[tool result not shown: %s, %s, %d tokens; entry %s]", name, outcome, e.Tokens, e.ID)
}

// clipLarge shortens the oversized results of an entry that maskOld leaves alone, and oversized answers. What was shortened before
// stays as it is.
func (w *work) clipLarge(i int) {
	e := &w.c.Entries[i]
	if w.cfg.ClipTokens == 0 || e.Type != core.TypeMessage || e.Tokens <= w.cfg.ClipTokens || compacting.CostOf(w.c, i) < e.Tokens {
		return
	}
	kind := message.ToolResult
	switch {
	case e.Message.HasResults():
	case e.Role == message.Assistant && !e.Message.HasCalls():
		kind = message.Text
	default:
		return
	}
	st := core.Stub{Kind: core.Clipped, Texts: make(map[int]string)}
	for n, p := range e.Message.Parts {
		if p.Kind != kind {
			continue
		}
		if size := w.c.Count(p.Text); size > w.cfg.ClipTokens {
			marker := fmt.Sprintf("\n[... shortened, %d tokens in all; entry %s ...]\n", size, e.ID)
			st.Texts[n] = window.Clip(p.Text, size, w.cfg.ClipTokens, marker, w.c.Count)
		}
	}
	if len(st.Texts) > 0 {
		w.put(i, st)
	}
}

// put takes a stub over when it saves enough.
func (w *work) put(i int, st core.Stub) {
	e := &w.c.Entries[i]
	st.Tokens = perMessage + len(e.Message.Parts)
	for n, p := range e.Message.Parts {
		if text, ok := st.Texts[n]; ok {
			st.Tokens += w.c.Count(p.Name) + w.c.Count(text)
			continue
		}
		st.Tokens += w.c.Count(p.Name) + w.c.Count(p.Text) + w.c.Count(p.Args)
		switch p.Kind {
		case message.Image:
			st.Tokens += imageTokens
		case message.Other:
			st.Tokens += w.c.Count(string(p.Raw))
		}
	}
	before := w.costOf(i)
	if before-st.Tokens < w.cfg.LeastTokens || st.Tokens >= e.Tokens {
		return
	}
	if w.stubs == nil {
		w.stubs = make(map[string]core.Stub)
	}
	w.stubs[e.ID] = st
	w.left -= before - st.Tokens
}

const (
	// perMessage is what a message costs besides its parts, at most.
	perMessage = 6
	// imageTokens is what the engine reckons with for an image.
	imageTokens = 1600
)
