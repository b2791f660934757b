package engine

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/internal/transcript"
)

// readLead returns the items of the system messages in front.
func (r *reader) readLead(ctx context.Context, v *core.View) ([]item, error) {
	if len(v.Head) == 0 {
		return r.read(ctx, v, 0, min(v.Lead, v.Len()))
	}
	var out []item
	for _, sp := range v.Head {
		err := r.scanSpan(ctx, v, sp, func(entry core.Entry) {
			it := r.gauge.item(entry, nil)
			if !entry.Type.Hidden() {
				it.cost = entry.Tokens
			}
			out = append(out, it)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leadWith puts leaders in front. Their entries are stored by now.
func leadWith(v *core.View, leaders []transcript.Leader) {
	if len(leaders) == 0 {
		return
	}
	head := make([]core.Span, len(leaders))
	for i := range leaders {
		l := &leaders[i]
		head[i] = core.Span{Session: &l.Owner, From: l.Seq, To: l.Seq + 1}
	}
	v.Apply(edit.Lead{Head: head})
}

// leadersOf returns what stood in front since an entry came.
func leadersOf(entry core.Entry) []core.Span {
	id := entry.SessionID()
	var out []core.Span
	for text := range strings.SplitSeq(entry.Meta[records.Leads], ",") {
		if seq, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, core.Span{Session: &id, From: seq, To: seq + 1})
		}
	}
	return out
}

// adoptBefore puts an entry that was stored in front of another one where it belongs. It reports false for all others, and when that one is not on the path
// any more.
func adoptBefore(v *core.View, entry core.Entry) bool {
	at := cmp.Or(entry.Meta[transcript.MetaStray], entry.Meta[transcript.MetaBefore])
	if at == "" {
		return false
	}
	pos := 0
	for _, sp := range v.Path {
		sp = sp.Owned(v.Session)
		for seq := sp.From; seq < sp.To; seq++ {
			if transcript.PlaceName(*sp.Session, seq) == at {
				v.Apply(edit.Insert{At: pos, Session: entry.SessionID(), Seq: entry.Seq})
				return true
			}
			pos++
		}
	}
	return false
}
