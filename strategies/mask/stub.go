package mask

import (
	"cmp"
	"maps"
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
	stubs map[string]window.Stub
	// kept is the set of the newest results, by the position of their entries; pictured that of the newest images and files.
	kept, pictured map[int]bool
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
	w.put(i, window.MaskStub(e.Message, e.Tokens, e.ID, w.nameOf))
}

// nameOf returns the name of the tool that gave a result, in one short line.
func (w *work) nameOf(p message.Part) string {
	return compacting.FirstLine(cmp.Or(p.Name, w.names[p.CallID]), 80)
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
	st := window.Stub{Kind: window.Clipped, Texts: make(map[int]string)}
	for n, p := range e.Message.Parts {
		if p.Kind != kind {
			continue
		}
		if size := w.c.Count(p.Text); size > w.cfg.ClipTokens {
			st.Texts[n] = w.clipped(p.Text, size, w.cfg.ClipTokens, e.ID)
		}
	}
	if len(st.Texts) > 0 {
		w.put(i, st)
	}
}

// clipped returns head and tail of a text, at most limit tokens of it, around a line that names size and entry.
func (w *work) clipped(text string, size, limit int, id string) string {
	return window.Clip(text, size, limit, window.ClipMarker(size, id), w.c.Count)
}

// before returns what is shown of entry i already. It is unknown where it costs less than it should and nobody says why.
func (w *work) before(i int) (st window.Stub, known bool) {
	e := &w.c.Entries[i]
	if st, ok := w.stubs[e.ID]; ok {
		return st, true
	}
	cost := compacting.CostOf(w.c, i)
	if st, ok := w.c.Stubs[e.ID]; ok && st.Tokens == cost {
		return st, true
	}
	return window.Stub{}, cost >= e.Tokens
}

// put takes a stub over when it saves enough. What was shortened of the entry before stays so.
func (w *work) put(i int, st window.Stub) {
	e := &w.c.Entries[i]
	if old, known := w.before(i); known && len(old.Texts) > 0 {
		texts := maps.Clone(old.Texts)
		maps.Copy(texts, st.Texts)
		st.Texts = texts
	}
	st.Tokens = perMessage + len(e.Message.Parts)
	for n, p := range e.Message.Parts {
		st.Tokens += w.c.Count(p.Name)
		text, named := st.Texts[n]
		if !named || st.Kind != window.Masked {
			for _, in := range message.Inside(p) {
				st.Tokens += w.blockCost(in)
			}
		}
		if named {
			st.Tokens += w.c.Count(text)
			continue
		}
		st.Tokens += w.c.Count(p.Text) + w.c.Count(p.Args) + w.blockCost(p)
	}
	before := w.costOf(i)
	if before-st.Tokens < w.cfg.LeastTokens || st.Tokens >= e.Tokens {
		return
	}
	if w.stubs == nil {
		w.stubs = make(map[string]window.Stub)
	}
	w.stubs[e.ID] = st
	w.left -= before - st.Tokens
}

// blockCost is what a block costs besides its text, in tokens.
func (w *work) blockCost(p message.Part) int {
	switch p.Kind {
	case message.Image:
		return window.ImageTokens
	case message.Other:
		return w.c.Count(string(p.Raw))
	}
	return 0
}

// perMessage is what a message costs besides its parts, at most.
const perMessage = 6
