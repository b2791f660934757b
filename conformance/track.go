package conformance

import (
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// track is what the model knows of one session.
type track struct {
	id core.SessionID
	// log is what is in force, in order: everything ingested, or the host's transcript.
	log []item
	// cur is the open turn of a host that appends it itself.
	cur     []item
	open    bool
	curBeat bool
	turn    int
	// stored must stay readable.
	stored []item
	// loose counts, by their bytes, messages that only stand in the transcript: they are stored once the engine saw it.
	loose map[string]int
	// floating marks may stand anywhere: results that came late, what a subagent handed back.
	floating map[string]bool
	// handedBack is about what the results of subagents cost that the session shows, in tokens.
	handedBack int
	// inherited are marks of the parent that a fork shows.
	inherited map[string]bool
	parent    *track
	// granted is when the grant ends; bounded says that what a fork inherited goes with it. A host that hands over its transcript has
	// copied what is inherited.
	granted time.Time
	grant   string
	bounded bool
	// waiting are calls without a result.
	waiting []string
	// prev is the last prompt, nil when nothing can be compared with it.
	prev *prompt
	// minBudget is the smallest budget asked for so far.
	minBudget int
	compacted bool
	// recalled says that a recall block may have been shown: it may stay.
	recalled bool
	// outgrew says that a prompt was asked for when the conversation came near the budget, or a compaction.
	outgrew bool
	// added says that a prompt had an addition of the engine's.
	added bool
	// moved says that since the last prompt something else than a step may have moved the window.
	moved   bool
	commit  *core.CommitTurnRequest
	commits int
	fresh   bool
	// system are the system messages in front of the transcript in turn systemTurn, lines what else was put in front of it, and leftOut is how many
	// messages the newest one left out.
	system     []item
	systemTurn int
	lines      []item
	leftOut    int
	// told are the messages, by their bytes, that the engine was handed in a transcript.
	told map[string]bool
}

func newTrack(id core.SessionID) *track {
	return &track{id: id, loose: map[string]int{}, floating: map[string]bool{}, told: map[string]bool{}, inherited: map[string]bool{}, fresh: true}
}

// stands puts items into the transcript that are not committed.
func (t *track) stands(items []item) {
	t.log = append(t.log, items...)
	for _, it := range items {
		t.loose[it.wire]++
	}
}

// messagesOf returns the messages of items.
func messagesOf(items []item) []message.Message {
	out := make([]message.Message, len(items))
	for i := range items {
		out[i] = items[i].msg
	}
	return out
}

// reach reports whether a mark of another session may be shown in t.
func (t *track) reach(mark string, owner *track, now time.Time, across bool) bool {
	switch {
	case owner == t, t.floating[mark]:
		return true
	case across && owner.id.Agent == t.id.Agent:
		return true
	case t.inherited[mark]:
		return !t.bounded || now.Before(t.granted)
	case t.parent != nil && (owner == t.parent || t.parent.floating[mark]):
		return now.Before(t.granted)
	}
	return false
}

// searches reports whether a search may bring what a subagent of the track's session said.
func (t *track) searches(owner *track, now time.Time) bool {
	return owner.parent == t && now.Before(owner.granted)
}

// inForce returns the log as it counts at a time: without what was erased, and what a fork inherited ends with its grant.
func (t *track) inForce(now time.Time) []item {
	log := slices.DeleteFunc(slices.Clone(t.log), func(it item) bool { return it.erased })
	if !t.bounded || now.Before(t.granted) {
		return log
	}
	return slices.DeleteFunc(log, func(it item) bool {
		return it.inherited || slices.ContainsFunc(it.marks, func(m string) bool { return t.inherited[m] })
	})
}

// last returns the newest item that is neither hidden nor blank.
func (t *track) last() (item, bool) {
	for _, it := range slices.Backward(t.log) {
		if !it.beat && !it.erased {
			return it, true
		}
	}
	return item{}, false
}

// plainUser reports whether an item is an ordinary message of the user.
func plainUser(it item) bool {
	return it.msg.Role == message.User && it.msg.Type == "" && len(it.results) == 0
}

// plain reports whether an item is an ordinary message that says something.
func plain(it item) bool {
	return !it.blank && !it.beat && !it.erased && !it.summary && len(it.marks) > 0 && len(it.calls)+len(it.results) == 0
}
