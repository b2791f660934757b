package memory

import (
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func cloneEntries(entries []*core.Entry) []core.Entry {
	if len(entries) == 0 {
		return nil
	}
	out := make([]core.Entry, len(entries))
	for i, e := range entries {
		out[i] = cloneEntry(e)
	}
	return out
}

// cloneEntry copies everything that e refers to and that could be written to.
func cloneEntry(e *core.Entry) core.Entry {
	c := *e
	c.Message = cloneMessage(&e.Message)
	c.Meta = maps.Clone(e.Meta)
	return c
}

// cloneMessage copies the parts and puts all raw bytes into one new buffer: two allocations, however many parts.
func cloneMessage(m *message.Message) message.Message {
	c := *m
	c.Parts = slices.Clone(m.Parts)
	n := len(m.Raw)
	for i := range m.Parts {
		n += len(m.Parts[i].Raw)
	}
	buf := make([]byte, 0, n)
	take := func(raw []byte) []byte {
		if raw == nil {
			return nil
		}
		from := len(buf)
		buf = append(buf, raw...)
		// The capacity ends with the bytes, so that appending to one does not write into the next.
		return buf[from:len(buf):len(buf)]
	}
	c.Raw = take(m.Raw)
	for i := range c.Parts {
		c.Parts[i].Raw = take(c.Parts[i].Raw)
	}
	return c
}

// cloneView copies everything that v refers to and that could be written to.
func cloneView(v *core.View) core.View {
	c := v.Clone()
	for i, span := range c.Path {
		if span.Session != nil {
			id := *span.Session
			c.Path[i].Session = &id
		}
	}
	if c.Recall != nil {
		c.Recall.Items = slices.Clone(c.Recall.Items)
	}
	return c
}
