package engine

import (
	"cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

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
				v.Apply(edit.Insert{At: pos, Session: entry.SessionID(), Seq: entry.Seq})
				return true
			}
			pos++
		}
	}
	return false
}
