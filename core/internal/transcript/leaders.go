package transcript

import (
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/message"
)

// Leader is a system message that stands in front: a known entry, or a message of the transcript by its index.
type Leader struct {
	Owner       core.SessionID
	Seq         int64
	Fingerprint string
	Host        int // -1 for a known entry
}

// TakeLeaders takes the system messages off the beginning of the rows: those that stand in front from now on; none when that does not
// change. A message that is known from the midst of the conversation is where a list that was cut begins; one that was erased there leads as a place of its own.
func (in *Reading) TakeLeaders(v *core.View, known []Known) {
	if len(known) > 0 {
		in.leaders, in.Rows = leading(v, known, in.Rows, in.t.Messages)
	}
}

func leading(v *core.View, known []Known, rows []Row, messages []message.Message) (now []Leader, rest []Row) {
	var front []Known
	for _, sp := range v.Head {
		for _, k := range known {
			if sp.Holds(k.Owner, k.Seq) {
				front = append(front, k)
			}
		}
	}
	if len(v.Head) == 0 {
		front = known[:min(v.Lead, len(known))]
	}
	others := slices.Clone(known)
	slices.Reverse(others) // the newest of the same counts
	find := func(fp string) (Known, bool) {
		for _, list := range [][]Known{front, others} {
			if i := slices.IndexFunc(list, func(k Known) bool { return k.Fingerprint == fp && k.Role == message.System }); i >= 0 {
				return list[i], true
			}
		}
		return Known{}, false
	}
	rest = rows
	for len(rest) > 0 && messages[rest[0].Index].Role == message.System {
		r := rest[0]
		k, ok := find(r.Fingerprint)
		switch {
		case ok && !k.Leads && !k.Erased:
			return changed(now, front), rest
		case ok && k.Leads:
			now = append(now, Leader{Fingerprint: r.Fingerprint, Owner: k.Owner, Seq: k.Seq, Host: -1})
		case !r.Own:
			now = append(now, Leader{Fingerprint: r.Fingerprint, Host: r.Index})
		}
		rest = rest[1:]
	}
	return changed(now, front), rest
}

// changed returns the leaders unless they stand in front already.
func changed(now []Leader, front []Known) []Leader {
	if slices.EqualFunc(now, front, func(l Leader, k Known) bool { return l.Fingerprint == k.Fingerprint }) {
		return nil
	}
	return now
}

// LeadersOf returns those that stand in front instead of the first of the path.
func LeadersOf(v *core.View) []Leader {
	var out []Leader
	for _, sp := range v.Head {
		for seq := sp.From; seq < sp.To; seq++ {
			out = append(out, Leader{Owner: *sp.Session, Seq: seq, Host: -1})
		}
	}
	return out
}

// leadMarks returns the marks of those leaders that are new, by their index in a draft in which they come last; next is the position of the draft's
// first message.
func leadMarks(id core.SessionID, leaders []Leader, first int, next int64) map[int]Mark {
	out := make(map[int]Mark)
	var seqs []string
	at := first
	for _, l := range leaders {
		if l.Host >= 0 {
			l.Owner, l.Seq = id, next+int64(at)
			at++
		}
		if l.Owner == id {
			seqs = append(seqs, strconv.FormatInt(l.Seq, 10))
		}
	}
	for i := first; i < at; i++ {
		out[i] = Mark{records.Leads, strings.Join(seqs, ",")}
	}
	return out
}
