package engine

import (
	"cmp"

	"github.com/contextengine/contextengine/core"
)

// insertAt puts an entry in front of the one at a position behind the leading system messages, and lets everything else stay where it is: what has left the
// window, or is covered by a summary, goes on doing so, and the entry with it.
func insertAt(v *core.View, pos int, id core.SessionID, seq int64) {
	tail := v.Slice(pos, v.Len())
	v.Truncate(pos)
	v.ExtendFrom(id, seq)
	v.Path = append(v.Path, tail...)
	switch {
	case pos < v.Start || pos == v.Start && pos > max(v.Frontier, v.Lead):
		if v.Shown == nil {
			before := frontOf(v) // the note's number changes when the window steps, and no sooner
			v.Shown = &before
		}
		if pos < v.Frontier {
			coverLate(v, pos)
			v.Frontier++
		}
		v.Start++
		if v.Seen > pos {
			v.Seen++ // what was decided is decided
		}
		if v.Pinned != "" {
			v.Epoch++ // the note behind it counts what is between it and the window
		}
	default:
		v.Seen = min(v.Seen, pos)
		v.Epoch++
	}
	for i := range v.Kept {
		if v.Kept[i].At >= pos {
			v.Kept[i].At++
		}
	}
	if v.Recall != nil && v.Recall.At >= pos {
		r := *v.Recall
		r.At++
		v.Recall = &r
	}
}

// coverLate counts an entry that came late to the summary of what stands around it.
func coverLate(v *core.View, pos int) {
	end := v.Lead
	for i := range v.Summaries {
		if end += v.Summaries[i].Covers; pos < end {
			v.Summaries[i].Covers++
			return
		}
	}
}

// adoptBefore puts an entry that was stored in front of another one where it belongs. It reports false for all others, and when that one is not on the path
// any more.
func adoptBefore(v *core.View, entry core.Entry) bool {
	at := cmp.Or(entry.Meta[metaStray], entry.Meta[metaBefore])
	if at == "" {
		return false
	}
	pos := 0
	for _, sp := range v.Path {
		sp = sp.Owned(v.Session)
		for seq := sp.From; seq < sp.To; seq++ {
			if placeName(*sp.Session, seq) == at {
				insertAt(v, pos, entry.SessionID(), entry.Seq)
				return true
			}
			pos++
		}
	}
	return false
}
