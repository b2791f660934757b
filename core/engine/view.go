package engine

import (
	"cmp"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// joined returns the same spans, which name their sessions, in order and without repetition.
func joined(spans []core.Span) []core.Span {
	slices.SortFunc(spans, func(a, b core.Span) int { return cmp.Or(a.Session.Compare(*b.Session), cmp.Compare(a.From, b.From)) })
	var out []core.Span
	for _, s := range spans {
		if n := len(out); n > 0 && *out[n-1].Session == *s.Session && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

// recallsOf returns the blocks that the window shows, oldest first; the one in force is the last.
func recallsOf(v *core.View) []*core.Recall {
	out := make([]*core.Recall, 0, len(v.Kept)+1)
	for i := range v.Kept {
		out = append(out, &v.Kept[i])
	}
	if v.Recall != nil && v.Recall.Text != "" {
		out = append(out, v.Recall)
	}
	return out
}
