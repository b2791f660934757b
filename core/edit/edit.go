// Package edit holds what can happen to a session's View, as values: core.View.Apply takes them, and nothing else sets a field of a view.
//
// An edit keeps the view in itself right: what is cut off the path leaves the summaries and the window too, what comes in front of the window moves it. The
// epoch rises with the edits that say so, and with Anew.
package edit

import (
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// Extend puts an entry of any session at the end of the path. Leads says that it is one of the leading system messages.
type Extend struct {
	Session core.SessionID
	Seq     int64
	Leads   bool
}

// Edit implements core.Edit.
func (e Extend) Edit(v *core.View) {
	if e.Leads {
		v.Lead++
	}
	extend(v, e.Session, e.Seq)
}

func extend(v *core.View, id core.SessionID, seq int64) {
	var owner *core.SessionID
	if id != v.Session {
		other := id
		owner = &other
	}
	if n := len(v.Path); n > 0 {
		last := &v.Path[n-1]
		if last.To == seq && (owner == nil && last.Session == nil || owner != nil && last.Session != nil && *last.Session == id) {
			last.To++
			return
		}
	}
	v.Path = append(v.Path, core.Span{Session: owner, From: seq, To: seq + 1})
}

// Insert puts an entry in front of the one at a position behind the leading system messages, and lets everything else stay where it is: what has left the
// window, or is covered by a summary, goes on doing so. The entry has left the window with them: the note counts it, also where it stands among those of a summary, which
// does not speak of it. In the window itself the epoch rises. Leads says that it is a leading system message itself, right behind the others.
type Insert struct {
	At      int
	Session core.SessionID
	Seq     int64
	Leads   bool
	// Noted says that the note counts at once what came among those of a summary, and not from the next step on. The epoch rises then.
	Noted bool
}

// Edit implements core.Edit.
func (e Insert) Edit(v *core.View) {
	pos := e.At
	tail := v.Slice(pos, v.Len())
	v.Path = v.Slice(0, pos)
	extend(v, e.Session, e.Seq)
	v.Path = append(v.Path, tail...)
	before := v.Front()
	late := false
	if pos < v.Frontier { // also where the window's start is sought
		if at := summaryAt(v, pos); at >= 0 && !e.Leads {
			late = true
			v.Summaries[at].Late++
		}
		v.Frontier++
	}
	switch {
	case pos < v.Start || pos == v.Start && pos > max(v.Frontier, v.Lead):
		switch {
		case late && e.Noted:
			if v.Shown != nil {
				v.Shown = &core.Front{Summaries: v.Shown.Summaries, Left: v.Shown.Left + 1}
			}
			v.Epoch++
		case v.Shown == nil:
			v.Shown = &before // the note's number changes when the window steps, and no sooner
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
	if e.Leads {
		v.Lead++
	}
	if v.Told.From >= pos {
		v.Told.From++
	}
	if v.Told.To > pos || v.Told.To < v.Told.From {
		v.Told.To++
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

// summaryAt returns the index of the summary that a position of a view belongs to, -1 where none does.
func summaryAt(v *core.View, pos int) int {
	end := v.Floor()
	if pos < end {
		return -1
	}
	for i := range v.Summaries {
		if end += v.Summaries[i].Places(); pos < end {
			return i
		}
	}
	return -1
}

// Cut shortens the path to its first To entries and takes back everything that stood for what is cut. What stands in front stays on the path, behind those, unless
// nothing else does. The window's start is found anew. The epoch rises.
type Cut struct{ To int }

// Edit implements core.Edit.
func (e Cut) Edit(v *core.View) {
	n, floor := e.To, v.Floor()
	truncate(v, n)
	v.Epoch++
	v.Shown, v.Pinned = nil, ""
	v.Recall, v.Kept = nil, nil
	v.Lead = min(v.Lead, n)
	v.Seen = min(v.Seen, n)
	v.Told = core.Told{From: min(v.Told.From, n), To: min(v.Told.To, n)}
	v.Start = -1 // found anew by the next assemble: what was too much before may fit now
	covered := floor
	for i, sum := range v.Summaries {
		if covered += sum.Places(); covered > n {
			v.Summaries = v.Summaries[:i:i]
			break
		}
	}
	if v.Frontier > n {
		v.Frontier = floor
		for _, sum := range v.Summaries {
			v.Frontier += sum.Places()
		}
	}
	if floor > n {
		v.Frontier = 0 // the host shows again what it had compacted
	}
	if n == 0 {
		v.Start, v.Frontier, v.Backlog, v.Stubs, v.Summaries, v.Head = 0, 0, 0, nil, nil, nil
	}
	for _, sp := range v.Head {
		for seq := sp.From; seq < sp.To; seq++ {
			if v.Position(*sp.Session, seq) < 0 {
				extend(v, *sp.Session, seq)
			}
		}
	}
}

// Reset remembers what is in force, for the first turn without it. It goes before the Cut.
type Reset struct{}

// Edit implements core.Edit.
func (Reset) Edit(v *core.View) {
	r := &core.Reset{}
	for _, sp := range v.Slice(max(v.Lead, v.Frontier), v.Len()) {
		r.Path = append(r.Path, sp.Owned(v.Session))
	}
	if n := len(v.Summaries); n > 0 {
		r.Summary = v.Summaries[n-1].ID
	}
	v.Reset = r
}

// truncate takes what stands behind the first n entries off the path. A host may still have copies of what was another session's.
func truncate(v *core.View, n int) {
	inherit(v, v.Slice(n, v.Len()))
	v.Path = v.Slice(0, n)
}

// inherit notes entries of other sessions that were on the path.
func inherit(v *core.View, gone []core.Span) {
	v.Inherited = slices.Clone(v.Inherited)
	for _, sp := range gone {
		if sp.Session != nil && !slices.ContainsFunc(v.Inherited, func(old core.Span) bool {
			return *old.Session == *sp.Session && old.From <= sp.From && sp.To <= old.To
		}) {
			v.Inherited = append(v.Inherited, sp)
		}
	}
}

// Disown takes the entries of other sessions off the path, and all that stood for any. What stands in Keep stays, and what leads of it leads still. The epoch rises.
type Disown struct{ Keep []core.Scope }

// Edit implements core.Edit.
func (e Disown) Edit(v *core.View) {
	stays := func(sp core.Span) bool {
		return sp.Session == nil || slices.ContainsFunc(e.Keep, func(s core.Scope) bool { return s.Contains(*sp.Session) })
	}
	var own, gone []core.Span
	lead, pos := 0, 0
	for _, sp := range v.Path {
		if stays(sp) {
			own = append(own, sp)
			lead += max(min(sp.Len(), v.Lead-pos), 0)
		} else {
			gone = append(gone, sp)
		}
		pos += sp.Len()
	}
	v.Path = own
	inherit(v, gone)
	v.Head = slices.DeleteFunc(slices.Clone(v.Head), func(sp core.Span) bool { return *sp.Session != v.Session && !stays(sp) })
	v.Start, v.Frontier, v.Lead, v.Seen, v.Backlog = -1, 0, lead, 0, 0
	v.Summaries, v.Shown, v.Stubs, v.Pinned = nil, nil, nil, ""
	v.Recall, v.Kept = nil, nil
	v.Host, v.Told = core.Ledger{}, core.Told{From: v.Len(), To: v.Len()}
	v.Epoch++
}

// Relay lays the path anew: entries of the view's own session that were moved come behind those whose position they had, unless the path shows them
// already, and its positions that are gone, or there twice, are left out. The epoch rises.
type Relay struct {
	// Moved are the new positions, by the old one.
	Moved map[int64][]int64
	Gone  map[int64]bool
	// Lost are entries of other sessions that are gone; every span names its session.
	Lost []core.Span
}

// Edit implements core.Edit.
func (e Relay) Edit(v *core.View) {
	type place struct {
		owner core.SessionID
		seq   int64
	}
	old := v.Clone()
	var at []int // the new place of every old one, and of the end
	v.Path = nil
	n := 0
	seen := make(map[place]bool)
	for _, sp := range old.Path {
		owner := *sp.Owned(v.Session).Session
		for seq := sp.From; seq < sp.To; seq++ {
			at = append(at, n)
			lost := func(sp core.Span) bool { return sp.Holds(owner, seq) }
			if seen[place{owner, seq}] || owner == v.Session && e.Gone[seq] || slices.ContainsFunc(e.Lost, lost) {
				switch i := summaryAt(&old, len(at)-1); {
				case i < 0:
				case v.Summaries[i].Late > 0 && !v.Summaries[i].MadeOf(owner, seq):
					v.Summaries[i].Late--
				default:
					v.Summaries[i].Covers--
				}
				continue
			}
			seen[place{owner, seq}] = true
			extend(v, owner, seq)
			n++
			if owner != v.Session {
				continue
			}
			for _, moved := range e.Moved[seq] {
				if old.Position(owner, moved) >= 0 {
					continue
				}
				extend(v, owner, moved)
				n++
				for i := range v.Summaries {
					if v.Summaries[i].MadeOf(owner, seq) {
						v.Summaries[i].Covers++
					}
				}
			}
		}
	}
	at = append(at, n)
	v.Summaries = slices.DeleteFunc(v.Summaries, func(sum core.Summary) bool { return sum.Places() == 0 && sum.Of != nil })
	to := func(pos int) int {
		if pos <= 0 || pos >= len(at) {
			return pos
		}
		return at[pos]
	}
	v.Start, v.Frontier, v.Seen, v.Host.Len = to(old.Start), to(old.Frontier), to(old.Seen), to(old.Host.Len)
	v.Told = core.Told{From: to(old.Told.From), To: to(old.Told.To)}
	if old.Lead > 0 && old.Lead < len(at) {
		v.Lead = min(at[old.Lead-1]+1, at[old.Lead])
	}
	v.Recall, v.Kept = nil, nil
	v.Epoch++
}

// Rename makes the view speak of an entry by its new id.
type Rename struct{ From, To string }

// Edit implements core.Edit.
func (e Rename) Edit(v *core.View) {
	if st, ok := v.Stubs[e.From]; ok {
		delete(v.Stubs, e.From)
		v.Stubs[e.To] = st
	}
	if v.Pinned == e.From {
		v.Pinned = e.To
	}
}

// Inherit gives a fork what its parent shows. The epoch rises.
type Inherit struct{ Parent *core.View }

// Edit implements core.Edit.
func (e Inherit) Edit(v *core.View) {
	parent := e.Parent
	for _, sp := range parent.Path {
		v.Path = append(v.Path, sp.Owned(parent.Session))
	}
	v.Lead, v.Start, v.Frontier, v.Seen = parent.Lead, parent.Start, parent.Frontier, parent.Seen
	v.Shown = parent.Shown
	v.Head = slices.Clone(parent.Head)
	v.Inherited = slices.Clone(parent.Inherited) // the parent's host may have copies, and so may the fork's
	v.Summaries, v.Stubs, v.Budget, v.Backlog, v.Pinned = parent.Summaries, parent.Stubs, parent.Budget, parent.Backlog, parent.Pinned
	v.Turns, v.Called = parent.Turns, parent.Called
	v.Explains = parent.Explains // what both show begins alike
	v.Host = parent.Host
	v.Recall, v.Kept = nil, nil
	v.Epoch++
}

// Count says how far the session's positions and turns go.
type Count struct{ Next, Turns int64 }

// Edit implements core.Edit.
func (e Count) Edit(v *core.View) { v.Next, v.Turns = e.Next, e.Turns }

// Lead puts system messages in front, in the place of those that stood there. The epoch rises.
type Lead struct{ Head []core.Span }

// Edit implements core.Edit.
func (e Lead) Edit(v *core.View) {
	v.Head = e.Head
	v.Epoch++
}

// Anew says that what was sent before is no prefix of what is sent now.
type Anew struct{}

// Edit implements core.Edit.
func (Anew) Edit(v *core.View) { v.Epoch++ }

// Epoch is Anew where another epoch is known than the view's: the higher one counts.
type Epoch struct{ Known uint64 }

// Edit implements core.Edit.
func (e Epoch) Edit(v *core.View) { v.Epoch = max(v.Epoch, e.Known) + 1 }

// Seek lets the next assemble find the window's start anew.
type Seek struct{}

// Edit implements core.Edit.
func (Seek) Edit(v *core.View) { v.Start = -1 }

// Begin lets the window begin at a position that was sought. The epoch rises.
type Begin struct {
	Start int
	// Pinned is the user message of the turn that it begins inside; empty where it does not.
	Pinned string
	// Backlog is about what the entries between the frontier and it cost, in tokens.
	Backlog int
}

// Edit implements core.Edit.
func (e Begin) Edit(v *core.View) {
	v.Start, v.Pinned, v.Backlog = e.Start, e.Pinned, e.Backlog
	v.Shown, v.Recall, v.Kept = nil, nil, nil
	v.Epoch++
}

// Leave lets the oldest entries leave the window.
type Leave struct {
	// Start is where the window begins then.
	Start int
	// Entries are the ids of those that leave, Tokens what they cost together.
	Entries []string
	Tokens  int
	// Unpin says that a turn begins inside the window, so that no other one's message has to stay. A pinned one that leaves is among Entries.
	Unpin bool
}

// Edit implements core.Edit.
func (e Leave) Edit(v *core.View) {
	v.Backlog += e.Tokens
	if e.Unpin {
		v.Pinned = ""
	}
	unstub(v, e.Entries)
	v.Start, v.Shown, v.Kept = e.Start, nil, nil
}

// unstub takes away what is shown instead of entries that left, one that is pinned aside.
func unstub(v *core.View, ids []string) {
	for _, id := range ids {
		if id != v.Pinned {
			delete(v.Stubs, id)
		}
	}
}

// Retreat gives the newest entries that summaries stand for back to the window, which begins with the one at To. The epoch rises.
type Retreat struct{ To int }

// Edit implements core.Edit.
func (e Retreat) Edit(v *core.View) {
	end, frontier := v.Frontier, e.To
	for i := len(v.Summaries) - 1; i >= 0 && end > e.To; i-- {
		sum := &v.Summaries[i]
		from := end - sum.Places()
		back, late := end-max(from, e.To), 0
		if sum.Late > 0 {
			late = min(unspoken(v, sum, end-back, end), sum.Late, back)
		}
		sum.Late -= late
		if sum.Covers -= back - late; sum.Covers <= 0 {
			v.Summaries = v.Summaries[:i:i]
			frontier = min(from, e.To) // what came late in front of all that it speaks of is left by the window, and nothing stands for it
		}
		end = from
	}
	v.Frontier, v.Start, v.Seen, v.Backlog, v.Shown = frontier, e.To, min(v.Seen, e.To), 0, nil
	v.Recall, v.Kept = nil, nil
	v.Epoch++
}

// unspoken returns how many of the positions from <= pos < to a summary does not speak of.
func unspoken(v *core.View, sum *core.Summary, from, to int) int {
	n := 0
	for _, sp := range v.Slice(from, to) {
		owner := *sp.Owned(v.Session).Session
		for seq := sp.From; seq < sp.To; seq++ {
			if !sum.MadeOf(owner, seq) {
				n++
			}
		}
	}
	return n
}

// Restart lets the conversation begin at a position: the host put something of its own in the place of all before. The epoch rises.
type Restart struct{ At int }

// Edit implements core.Edit.
func (e Restart) Edit(v *core.View) {
	v.Start, v.Frontier, v.Backlog = e.At, e.At, 0
	v.Summaries, v.Shown, v.Pinned = nil, nil, ""
	v.Recall, v.Kept = nil, nil
	v.Epoch++
}

// Clamp lets no position lie behind the end of the path.
type Clamp struct{}

// Edit implements core.Edit.
func (Clamp) Edit(v *core.View) {
	v.Start, v.Frontier, v.Lead = min(v.Start, v.Len()), min(v.Frontier, v.Len()), min(v.Lead, v.Len())
}

// Summarise sets the summaries.
type Summarise struct{ Summaries []core.Summary }

// Edit implements core.Edit.
func (e Summarise) Edit(v *core.View) { v.Summaries = e.Summaries }

// Advance moves the frontier, and the window's start where it lies behind that; what the entries between the two cost shrinks as
// they leave.
type Advance struct {
	Frontier int
	// Gone are the ids of the entries that summaries stand for from now on.
	Gone []string
}

// Edit implements core.Edit.
func (e Advance) Edit(v *core.View) {
	if left := v.Start - v.Frontier; left > 0 && len(e.Gone) > 0 {
		v.Backlog = v.Backlog * max(v.Start-e.Frontier, 0) / left
	}
	v.Frontier = e.Frontier
	v.Start = max(v.Start, e.Frontier)
	unstub(v, e.Gone)
}

// Show sets what stands in front of the window where that is not what the summaries say; nil where it is.
type Show struct{ Front *core.Front }

// Edit implements core.Edit.
func (e Show) Edit(v *core.View) { v.Shown = e.Front }

// Stub sets what is shown instead of an entry's content.
type Stub struct {
	ID   string
	Stub window.Stub
}

// Edit implements core.Edit.
func (e Stub) Edit(v *core.View) {
	if v.Stubs == nil {
		v.Stubs = make(map[string]window.Stub)
	}
	v.Stubs[e.ID] = e.Stub
}

// Unstub shows entries as they are.
type Unstub struct{ IDs []string }

// Edit implements core.Edit.
func (e Unstub) Edit(v *core.View) {
	for _, id := range e.IDs {
		delete(v.Stubs, id)
	}
}

// Pin keeps a user message in front although the window starts behind it, in the place of the one that was; none when the id is empty.
type Pin struct{ ID string }

// Edit implements core.Edit.
func (e Pin) Edit(v *core.View) {
	if v.Pinned != e.ID {
		delete(v.Stubs, v.Pinned)
	}
	v.Pinned = e.ID
}

// See says up to which position it was decided whether an entry has to be shortened.
type See struct{ To int }

// Edit implements core.Edit.
func (e See) Edit(v *core.View) { v.Seen = e.To }

// Budget sets the token budget that the marks of the window derive from.
type Budget struct{ Tokens int }

// Edit implements core.Edit.
func (e Budget) Edit(v *core.View) { v.Budget = e.Tokens }

// Lean says how much of what is not history is left out, and in which turn that was decided.
type Lean struct {
	Level int
	Turn  int64
}

// Edit implements core.Edit.
func (e Lean) Edit(v *core.View) { v.Lean, v.LeanTurn = e.Level, e.Turn }

// Speak says whether the addition to the system prompt was given up, and whether the engine's own text is in it. The epoch rises.
type Speak struct{ Mute, Explains bool }

// Edit implements core.Edit.
func (e Speak) Edit(v *core.View) {
	v.Mute, v.Explains = e.Mute, e.Explains
	v.Epoch++
}

// Recall sets the recall block in force.
type Recall struct{ Block *core.Recall }

// Edit implements core.Edit.
func (e Recall) Edit(v *core.View) { v.Recall = e.Block }

// Keep lets the block of a turn that is over stay where it was shown.
type Keep struct{}

// Edit implements core.Edit.
func (Keep) Edit(v *core.View) {
	if v.Recall != nil && v.Recall.Text != "" {
		v.Kept = append(v.Kept, *v.Recall)
	}
	v.Recall, v.Reset = nil, nil
}

// Unkeep takes out the blocks of earlier turns.
type Unkeep struct{}

// Edit implements core.Edit.
func (Unkeep) Edit(v *core.View) { v.Kept = nil }

// Unrecall takes out everything that is recalled.
type Unrecall struct{}

// Edit implements core.Edit.
func (Unrecall) Edit(v *core.View) { v.Recall, v.Kept = nil, nil }

// Match sets what the host's transcript was.
type Match struct{ Ledger core.Ledger }

// Edit implements core.Edit.
func (e Match) Edit(v *core.View) { v.Host = e.Ledger }

// Tell sets what a transcript showed of the turn that runs: the path from a position on.
type Tell struct{ From int }

// Edit implements core.Edit.
func (e Tell) Edit(v *core.View) { v.Told = core.Told{From: e.From, To: v.Len()} }

// Sent sets what Assemble returned lately, the ones used last behind; none where what was returned counts no longer.
type Sent struct{ Outputs []core.Ledger }

// Edit implements core.Edit.
func (e Sent) Edit(v *core.View) {
	v.Output, v.Outputs = core.Ledger{}, nil
	if n := len(e.Outputs); n > 0 {
		v.Output, v.Outputs = e.Outputs[n-1], slices.Clone(e.Outputs[:n-1])
	}
}

// Lengthen says that what was matched and returned when the path was From long holds for the path as it is: nothing came that a host shows.
type Lengthen struct{ From int }

// Edit implements core.Edit.
func (e Lengthen) Edit(v *core.View) {
	grow := func(l *core.Ledger) {
		if l.Len == e.From {
			l.Len = v.Len()
		}
	}
	grow(&v.Host)
	grow(&v.Output)
	for i := range v.Outputs {
		grow(&v.Outputs[i])
	}
}

// Commit notes an advancement key, and keeps the newest of them.
type Commit struct {
	Key  string
	Most int
}

// Edit implements core.Edit.
func (e Commit) Edit(v *core.View) {
	v.Commits = append(v.Commits, e.Key)
	if n := len(v.Commits); n > e.Most {
		v.Commits = v.Commits[n-e.Most:]
	}
}

// Call notes another name of an entry, in the place of the one that was noted before, and keeps the newest of all.
type Call struct{ Called core.Called }

// MaxCalled is how many names core.View.Called holds at most.
const MaxCalled = 32

// Edit implements core.Edit.
func (e Call) Edit(v *core.View) {
	list := slices.DeleteFunc(slices.Clone(v.Called), func(c core.Called) bool { return c.Entry == e.Called.Entry })
	v.Called = append(list, e.Called)
	v.Called = v.Called[max(0, len(v.Called)-MaxCalled):]
}

// Uncall takes away the names that were noted of entries.
type Uncall struct{ Entries map[string]bool }

// Edit implements core.Edit.
func (e Uncall) Edit(v *core.View) {
	v.Called = slices.DeleteFunc(slices.Clone(v.Called), func(c core.Called) bool { return e.Entries[c.Entry] })
}

// Erased counts the erasures that took something out of the view.
type Erased struct{ Count uint64 }

// Edit implements core.Edit.
func (e Erased) Edit(v *core.View) { v.Erased = e.Count }

// Enlist makes the session one of an arm of an experiment.
type Enlist struct{ Arm string }

// Edit implements core.Edit.
func (e Enlist) Edit(v *core.View) { v.Arm = e.Arm }

// Tally adds to what was done for the session.
type Tally struct{ More core.Tally }

// Edit implements core.Edit.
func (e Tally) Edit(v *core.View) { v.Tally = v.Tally.Plus(e.More) }

// Adopt makes another session the parent.
type Adopt struct{ Parent core.SessionID }

// Edit implements core.Edit.
func (e Adopt) Edit(v *core.View) { v.Parent = &e.Parent }

// Heir notes a fork that belongs to another agent.
type Heir struct{ Session core.SessionID }

// Edit implements core.Edit.
func (e Heir) Edit(v *core.View) { v.Heirs = append(v.Heirs, e.Session) }

// Allow adds a grant; those that are over go.
type Allow struct {
	Grant core.Grant
	Now   time.Time
}

// Edit implements core.Edit.
func (e Allow) Edit(v *core.View) {
	Lapse{e.Now}.Edit(v)
	v.Grants = append(v.Grants, e.Grant)
}

// Lapse removes the grants that are over.
type Lapse struct{ Now time.Time }

// Edit implements core.Edit.
func (e Lapse) Edit(v *core.View) {
	v.Grants = slices.DeleteFunc(v.Grants, func(g core.Grant) bool { return !e.Now.Before(g.Until) })
}

// Revoke ends the grants that were given with the session, with ID those of that preparation alone, or with Search those to search that scope, which subagents gave it.
type Revoke struct {
	ID     string
	Search core.Scope
}

// Edit implements core.Edit.
func (e Revoke) Edit(v *core.View) {
	v.Grants = slices.DeleteFunc(v.Grants, func(g core.Grant) bool {
		return g.Search == (e.Search != core.Scope{}) && (!g.Search || g.Scope == e.Search) && (e.ID == "" || g.ID == e.ID)
	})
}

// Publish gives the view its version.
type Publish struct{ Version uint64 }

// Edit implements core.Edit.
func (e Publish) Edit(v *core.View) { v.Version = e.Version }
