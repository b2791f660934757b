package memory

import (
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
)

func cloneEntries(entries []*core.Entry) []core.Entry {
	if len(entries) == 0 {
		return nil
	}
	out := make([]core.Entry, len(entries))
	for i, e := range entries {
		out[i] = e.Clone()
	}
	return out
}

// cloneView copies everything that v refers to and that could be written to.
func cloneView(v *core.View) core.View {
	c := v.Clone()
	for _, spans := range [][]core.Span{c.Path, c.Head} {
		ownSpans(spans)
	}
	c.Inherited = ownSpans(slices.Clone(c.Inherited))
	for i := range c.Grants {
		c.Grants[i].Closed = ownSpans(slices.Clone(c.Grants[i].Closed))
	}
	ownSummaries(c.Summaries)
	if c.Shown != nil {
		shown := *c.Shown
		shown.Summaries = ownSummaries(slices.Clone(shown.Summaries))
		c.Shown = &shown
	}
	for id, stub := range c.Stubs {
		stub.Texts = maps.Clone(stub.Texts)
		c.Stubs[id] = stub
	}
	if c.Recall != nil {
		c.Recall.Items = slices.Clone(c.Recall.Items)
	}
	if c.Reset != nil {
		c.Reset = &core.Reset{Path: ownSpans(slices.Clone(c.Reset.Path)), Summary: c.Reset.Summary}
	}
	for i := range c.Kept {
		c.Kept[i].Items = slices.Clone(c.Kept[i].Items)
	}
	if c.Parent != nil {
		parent := *c.Parent
		c.Parent = &parent
	}
	return c
}

// ownSpans gives each span a session of its own, in place.
func ownSpans(spans []core.Span) []core.Span {
	for i, span := range spans {
		if span.Session != nil {
			id := *span.Session
			spans[i].Session = &id
		}
	}
	return spans
}

// ownSummaries gives each summary spans of its own, in place.
func ownSummaries(summaries []core.Summary) []core.Summary {
	for i := range summaries {
		summaries[i].Of = ownSpans(slices.Clone(summaries[i].Of))
	}
	return summaries
}
