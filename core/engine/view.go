package engine

import (
	"cmp"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// frontOf returns what stands in front of the window now.
func frontOf(v *core.View) core.Front {
	if v.Shown != nil {
		return *v.Shown
	}
	return core.Front{Summaries: v.Summaries, Left: max(v.Start-max(v.Frontier, v.Lead), 0)}
}

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

// positionOf returns where an entry stands on the path, -1 when it does not.
func positionOf(v *core.View, id core.SessionID, seq int64) int {
	at := 0
	for _, sp := range v.Path {
		owner := v.Session
		if sp.Session != nil {
			owner = *sp.Session
		}
		if owner == id && seq >= sp.From && seq < sp.To {
			return at + int(seq-sp.From)
		}
		at += sp.Len()
	}
	return -1
}

// disown takes the entries of other sessions off the path.
func disown(v *core.View) {
	var own []core.Span
	v.Inherited = slices.Clone(v.Inherited)
	for _, sp := range v.Path {
		if sp.Session == nil {
			own = append(own, sp)
		} else {
			v.Inherited = append(v.Inherited, sp)
		}
	}
	v.Path = own
	v.Start, v.Frontier, v.Lead, v.Seen, v.Backlog = -1, 0, 0, 0, 0
	v.Summaries, v.Shown, v.Stubs, v.Pinned, v.Head = nil, nil, nil, "", nil
	unrecall(v)
	v.Host = core.Ledger{}
	v.Epoch++
}

// unrecall takes out everything that is recalled.
func unrecall(v *core.View) { v.Recall, v.Kept = nil, nil }

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
