package engine

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/internal/records"
	"github.com/contextengine/contextengine/core/message"
)

// What the head of a transcript says is little: hosts hand over what fits, put lines of their own in front of it, and write their system prompt anew with
// every turn. The rule is:
//
//   - System messages at the beginning stand in front from then on. Those that did stay stored, and are found.
//   - Where the list begins with a known message, what is known from before it is not shown by the host, and stays in force.
//   - Where it begins with unknown messages and goes on with known ones, the unknown ones are put in front of the first known one. What is known from
//     before that stays in force, unless the host says that its list is whole: then it is superseded.
//
// A list that is nothing but what the conversation began with is a rewind, also where a line stands in it: whoever goes back there sends the same bytes as a
// host that keeps its first message, leaves out the rest, and says the second one anew. What was taken back must not go on being sent; what was only left out is still
// stored. A host that cuts shows something of the end with what it says anew.
//
// What came in that way may be a line that the host puts in front of whatever it shows. Found again later, it says nothing about what stood behind it.

// Keys of core.Entry.Meta about a message's place in a transcript, beside core.MetaLeads.
const (
	// metaStray names, on a message that stood unknown at the head of a transcript, the place of the entry that it was put in front of.
	metaStray = "stray"
	// metaBefore names, on a message that came in the midst of what was known, the place of the entry that it stands in front of: it is found there when
	// the view that says so was not published any more.
	metaBefore = "before"
)

func placeName(id core.SessionID, seq int64) string {
	return strconv.FormatInt(seq, 10) + "@" + id.String()
}

// claimStrays links the messages of a transcript that strays say: between the same known messages as before, or at the head, wherever the stray stands.
func claimStrays(strays map[int]string, host []string, match, linked []int) {
	if len(strays) == 0 {
		return
	}
	next := func(i int) int {
		for _, k := range match[i:] {
			if k >= 0 {
				return k
			}
		}
		return math.MaxInt
	}
	prev, head := -1, true
	for i, fp := range host {
		switch {
		case match[i] >= 0:
			prev, head = match[i], false
		case linked[i] < 0:
			end := next(i)
			for _, k := range slices.Sorted(maps.Keys(strays)) {
				if strays[k] != fp || !head && (k <= prev || k >= end) {
					continue
				}
				linked[i] = k
				if k > prev && k < end {
					match[i], prev = k, k
				}
				delete(strays, k)
				break
			}
		}
	}
}

// spoken returns the messages that are not the host's own fillers, and where they were. It returns the same slice when that is all of them.
func spoken(messages []message.Message) (kept []message.Message, at []int) {
	made := func(m message.Message) bool { return m.Type == message.Filler }
	if !slices.ContainsFunc(messages, made) {
		return messages, nil
	}
	kept, at = make([]message.Message, 0, len(messages)), make([]int, 0, len(messages))
	for i := range messages {
		if !made(messages[i]) {
			kept, at = append(kept, messages[i]), append(at, i)
		}
	}
	return kept, at
}

// placed gives the ids of what spoken kept their places among all n messages; fillers have none.
func placed(ids []string, at []int, n int) []string {
	if at == nil {
		return ids
	}
	out := make([]string, n)
	for i, to := range at {
		out[to] = ids[i]
	}
	return out
}

// leader is a system message that stands in front: a known entry, or a message of the transcript by its index.
type leader struct {
	owner core.SessionID
	seq   int64
	fp    string
	host  int // -1 for a known entry
}

// readLead returns the items of the system messages in front.
func (e *Engine) readLead(ctx context.Context, v *core.View) ([]item, error) {
	if len(v.Head) == 0 {
		return e.read(ctx, v, 0, min(v.Lead, v.Len()))
	}
	var out []item
	for _, sp := range v.Head {
		err := e.scanSpan(ctx, v, sp, func(entry core.Entry) {
			it := e.item(entry, nil)
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

// leading takes the system messages off the beginning of a transcript's rows. It returns those that stand in front from now on; none when that does not
// change. A message that is known from the midst of the conversation is where a list that was cut begins.
func leading(v *core.View, known []knownEntry, rows []row, messages []message.Message) (now []leader, rest []row) {
	var front []knownEntry
	for _, sp := range v.Head {
		for _, k := range known {
			if sp.Holds(k.owner, k.seq) {
				front = append(front, k)
			}
		}
	}
	if len(v.Head) == 0 {
		front = known[:min(v.Lead, len(known))]
	}
	others := slices.Clone(known)
	slices.Reverse(others) // the newest of the same counts
	find := func(fp string) (knownEntry, bool) {
		for _, list := range [][]knownEntry{front, others} {
			if i := slices.IndexFunc(list, func(k knownEntry) bool { return k.fp == fp && k.role == message.System }); i >= 0 {
				return list[i], true
			}
		}
		return knownEntry{}, false
	}
	rest = rows
	for len(rest) > 0 && messages[rest[0].index].Role == message.System {
		r := rest[0]
		k, ok := find(r.fp)
		switch {
		case ok && !k.leads && !k.erased:
			return changed(now, front), rest
		case ok:
			now = append(now, leader{fp: r.fp, owner: k.owner, seq: k.seq, host: -1})
		case !r.own:
			now = append(now, leader{fp: r.fp, host: r.index})
		}
		rest = rest[1:]
	}
	return changed(now, front), rest
}

// changed returns the leaders unless they stand in front already.
func changed(now []leader, front []knownEntry) []leader {
	if slices.EqualFunc(now, front, func(l leader, k knownEntry) bool { return l.fp == k.fp }) {
		return nil
	}
	return now
}

// leadersOfView returns those that stand in front instead of the first of the path.
func leadersOfView(v *core.View) []leader {
	var out []leader
	for _, sp := range v.Head {
		for seq := sp.From; seq < sp.To; seq++ {
			out = append(out, leader{owner: *sp.Session, seq: seq, host: -1})
		}
	}
	return out
}

// leadWith puts leaders in front. Their entries are stored by now.
func leadWith(v *core.View, leaders []leader) {
	if len(leaders) == 0 {
		return
	}
	head := make([]core.Span, len(leaders))
	for i := range leaders {
		l := &leaders[i]
		head[i] = core.Span{Session: &l.owner, From: l.seq, To: l.seq + 1}
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

// leadMarks returns the marks of those leaders that are new, by their index in a draft in which they come last; next is the position of the draft's
// first message.
func leadMarks(id core.SessionID, leaders []leader, first int, next int64) map[int]mark {
	out := make(map[int]mark)
	var seqs []string
	at := first
	for _, l := range leaders {
		if l.host >= 0 {
			l.owner, l.seq = id, next+int64(at)
			at++
		}
		if l.owner == id {
			seqs = append(seqs, strconv.FormatInt(l.seq, 10))
		}
	}
	for i := first; i < at; i++ {
		out[i] = mark{records.Leads, strings.Join(seqs, ",")}
	}
	return out
}
