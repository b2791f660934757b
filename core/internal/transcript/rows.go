// Package transcript compares what a host says happened with what is known of a session, and says how the conversation goes on: what it shows is in force, what is new, what was taken
// back, and what it only does not show. Start with Read; the rule for the head of a list is in head.go. Everything here is pure: nothing is stored or read.
package transcript

import (
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Reading is a host's transcript taken apart: read, its leaders taken off, what is joined split, and then compared with what is known.
type Reading struct {
	// Rows are what the transcript says, without the leaders once they are taken.
	Rows []Row

	t       *core.Transcript
	end     []message.Role // the host's own lines behind the last row
	leaders []Leader
	// The first output messages are what the engine returned when the path was reach long; 0 where the list does not begin so.
	output, reach int
	// The first given messages are what the engine returned some time, when the path was then long.
	given, then int
	// others are messages that say what something erased said, and that the host tells apart from that.
	others map[int]bool
}

// TellApart says of a message that the host tells it apart from something erased that said the same: it is no message of the engine's own.
func (in *Reading) TellApart(index int) {
	if in.others == nil {
		in.others = make(map[int]bool)
	}
	in.others[index] = true
}

// Read takes a transcript apart. fps are its messages' fingerprints as they may be stored. own lists the fingerprints that the engine's own messages show, with "" for
// what the engine itself says in them, and none for what shows nothing else. Inside a turn (loop) the messages around those may be missing because a rule took them out.
func Read(t *core.Transcript, fps []string, own map[string][]string, loop bool) *Reading {
	in := Reading{t: t}
	var fillers []message.Role
	gap := false
	for i, fp := range fps {
		shows, ok := own[fp]
		at := slices.Index(shows, fp)
		if t.Messages[i].Type == message.Filler {
			gap, fillers = true, append(fillers, t.Messages[i].Role)
			continue
		}
		if !ok || at >= 0 {
			// It may be the host's or the engine's; if it is the engine's, a rule took out what stood around it.
			in.Rows = append(in.Rows, Row{Index: i, Fingerprint: fp, Gap: gap || loop && at > 0, Fillers: fillers})
			gap, fillers = loop && at >= 0 && at < len(shows)-1, nil
			continue
		}
		for _, of := range shows {
			if of == "" { // what the engine itself says there
				gap = true
				continue
			}
			in.Rows = append(in.Rows, Row{Index: i, Fingerprint: of, Own: true, Gap: gap, Fillers: fillers})
			gap, fillers = false, nil
		}
		gap = gap || len(shows) == 0
	}
	in.end = fillers
	return &in
}

// Row is a message of a host's transcript, or one of those that a message of the engine's own shows.
type Row struct {
	Index       int
	Fingerprint string
	Own         bool
	// Gap says that a note of the engine's own stands in front of it: what is missing there is not shown, and still in force.
	Gap bool
	// Fillers are the roles of the host's own lines in front of it.
	Fillers []message.Role
}

// Disown takes out what is not known of the first n messages. They are what the engine returned when the path was then long, so it made them itself: of what left the
// window since, or of what was erased. What is missing there is still in force.
func (in *Reading) Disown(n, then int, known []Known) {
	if in.given, in.then = n, then; n == 0 {
		return
	}
	there := make(map[string]bool, len(known))
	for i := range known {
		there[known[i].Fingerprint] = true
	}
	rows, gap := in.Rows[:0], false
	for _, r := range in.Rows {
		if r.Index < n && !there[r.Fingerprint] && !in.others[r.Index] {
			gap = true
			continue
		}
		r.Gap = r.Gap || gap
		rows, gap = append(rows, r), false
	}
	in.Rows = rows
}

// BuildsOn says that the first n messages are what the engine returned, inside this turn, when the path was reach long. What was on the path then and is not among
// them is only not shown: a rule took it out, or it fell out of the window. It is still in force.
func (in *Reading) BuildsOn(n, reach int) { in.output, in.reach = n, reach }

// FollowNothing is for a transcript that may go on behind an output of no messages: all that was in force was erased, or left the window, or no prompt shows it. Where it
// shows nothing that is known, it does, and is no new beginning, if nothing came since (last), it begins with what a model answered, or hosts show nothing of what is known.
func (in *Reading) FollowNothing(known []Known, last bool) {
	there := func(r Row) bool {
		return slices.ContainsFunc(known, func(k Known) bool { return k.Fingerprint == r.Fingerprint })
	}
	if len(in.Rows) == 0 || slices.ContainsFunc(in.Rows, there) {
		return
	}
	hard := func(k Known) bool { return !k.Soft }
	follows := last || in.t.Messages[in.Rows[0].Index].Role == message.Assistant || !slices.ContainsFunc(known, hard)
	in.Rows[0].Gap = in.Rows[0].Gap || follows
}

func fingerprints(rows []Row) []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].Fingerprint
	}
	return out
}

// Spoken returns the messages that are not the host's own fillers, and where they were. It returns the same slice when that is all of them.
func Spoken(messages []message.Message) (kept []message.Message, at []int) {
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

// Placed gives the ids of what Spoken kept their places among all n messages; fillers have none.
func Placed(ids []string, at []int, n int) []string {
	if at == nil {
		return ids
	}
	out := make([]string, n)
	for i, to := range at {
		out[to] = ids[i]
	}
	return out
}

// withoutEchoes takes out what a message of the engine's own shows when the host shows it itself, too. Tool results are told apart by their calls: two calls
// may give the same. Of the first output messages, which the engine returned, none is new, whatever rules made of the ids of calls.
func withoutEchoes(known []Known, rows []Row, messages []message.Message, output int) []Row {
	free, left := make(map[string]int, len(known)), make(map[string]int, len(known))
	for _, k := range known {
		free[k.Fingerprint]++
		left[k.Fingerprint]++
	}
	hosts := make(map[string][]int)
	for _, r := range rows {
		if !r.Own {
			free[r.Fingerprint]--
			if r.Index < output {
				left[r.Fingerprint]--
			}
			hosts[r.Fingerprint] = append(hosts[r.Fingerprint], r.Index)
		}
	}
	return slices.DeleteFunc(rows, func(r Row) bool {
		if !r.Own {
			return false
		}
		if m := &messages[r.Index]; m.HasResults() {
			calls := CallIDs(m)
			if slices.ContainsFunc(hosts[r.Fingerprint], func(i int) bool { return slices.Equal(CallIDs(&messages[i]), calls) }) {
				return true
			}
			left[r.Fingerprint]--
			return left[r.Fingerprint] < 0
		}
		free[r.Fingerprint]--
		return free[r.Fingerprint] < 0
	})
}
