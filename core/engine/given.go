package engine

import (
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// What a part is given is its own: it may write to it, also after the call, and changes nothing of what the engine holds. So is what the engine takes from a part.

// own returns entries that share nothing with those given.
func own(entries []core.Entry) []core.Entry {
	out := make([]core.Entry, len(entries))
	for i := range entries {
		out[i] = entries[i].Clone()
	}
	return out
}

// ownTask returns the same compaction for a compactor to have.
func ownTask(c core.Compaction) core.Compaction {
	c.Entries, c.Cost, c.Stubs, c.Summaries = own(c.Entries), slices.Clone(c.Cost), maps.Clone(c.Stubs), slices.Clone(c.Summaries)
	for id, stub := range c.Stubs {
		c.Stubs[id] = ownStub(stub)
	}
	for i := range c.Summaries {
		of := slices.Clone(c.Summaries[i].Of)
		for j := range of {
			if of[j].Session != nil {
				of[j].Session = new(*of[j].Session)
			}
		}
		c.Summaries[i].Of = of
	}
	if t := c.Request.Transcript; t != nil {
		t = new(*t)
		t.Messages = slices.Clone(t.Messages)
		for i := range t.Messages {
			t.Messages[i] = t.Messages[i].Clone()
		}
		c.Request.Transcript = t
	}
	return c
}

// ownStub returns the same stub with texts of its own.
func ownStub(st window.Stub) window.Stub {
	st.Texts = maps.Clone(st.Texts)
	return st
}
