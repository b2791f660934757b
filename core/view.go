package core

import (
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// View is what a session's window is made of: the one owner of session state. It is small (it grows with the
// window, not with the conversation), plain data, and marshals to JSON, which gives every text back byte for byte.
//
// Only the Engine makes views. Each published view has the version of its predecessor plus one.
type View struct {
	Session SessionID `json:"session"`
	Version uint64    `json:"version"`
	// Epoch rises whenever what was sent before is no longer a prefix of what will be sent: steps, compactions, resets and forks.
	Epoch uint64 `json:"epoch"`
	// Path lists the entries in force, in conversation order. A position is an index into the concatenated spans.
	Path []Span `json:"path,omitempty"`
	// Next is the Seq of the next entry, Turns the number of user turns so far.
	Next  int64 `json:"next"`
	Turns int64 `json:"turns"`
	// Start is the position of the first entry that the window shows. It moves at steps and compactions only.
	Start int `json:"start"`
	// Frontier is the position up to which Summaries stand for the entries; Frontier <= Start except for a fork.
	Frontier int `json:"frontier"`
	// Summaries are shown before the window's first entry, oldest first.
	Summaries []Summary `json:"summaries,omitempty"`
	// Shown is what stands in front of the window when that is not what Summaries say: a compaction of entries that had left before is
	// shown from the next step on, so that it costs no prompt cache.
	Shown *Front `json:"shown,omitempty"`
	// Stubs say what is shown instead of an entry's content, by entry id. They hold for entries from Start on.
	Stubs map[string]window.Stub `json:"stubs,omitempty"`
	// Lead is the number of system messages at the beginning of the path; they always stay.
	Lead int `json:"lead,omitempty"`
	// Head are the system messages that stand in front instead of the first Lead ones, since the host began its transcript with others; every span names
	// its session. The entries are on the path: at its beginning, where they came, or behind what is left of it after a cut.
	Head []Span `json:"head,omitempty"`
	// Seen is the position up to which it was decided whether an entry has to be clipped.
	Seen int `json:"seen,omitempty"`
	// Backlog is about what the entries from Frontier to Start cost, in tokens.
	Backlog int `json:"backlog,omitempty"`
	// Budget is the token budget that the last step was made for. The marks of the window derive from it, so that a
	// budget that jitters from call to call moves nothing.
	Budget int `json:"budget,omitempty"`
	// Pinned is the id of a user message that stays although the window starts behind it: the newest turn outgrew
	// the budget.
	Pinned string `json:"pinned,omitempty"`
	// Lean is how much of what is not history had to be left out for the newest messages to fit, see fit.
	Lean int `json:"lean,omitempty"`
	// LeanTurn is the turn that Lean was set in.
	LeanTurn int64 `json:"leanTurn,omitempty"`
	// Explains says that the engine's own text stands behind the system prompt: it comes when something has left the window, and stays, see begins.
	Explains bool `json:"explains,omitempty"`
	// Mute says that the whole addition to the system prompt was given up, see turnsMute.
	Mute bool `json:"mute,omitempty"`
	// Recall is the recall block in force. Kept are those of earlier turns, oldest first: they stay where they were shown until the window moves, so
	// that nothing behind them is billed again.
	Recall *Recall  `json:"recall,omitempty"`
	Kept   []Recall `json:"kept,omitempty"`
	// Reset is what the host began anew without, until the turn that may be given some of it is over.
	Reset *Reset `json:"reset,omitempty"`
	// Host is what the host's transcript was when it was last matched; Output is what Assemble returned last, or a host handed back since.
	Host   Ledger `json:"host,omitzero"`
	Output Ledger `json:"output,omitzero"`
	// Told is what transcripts showed of the turn that runs.
	Told Told `json:"told,omitzero"`
	// Called are by what the host knows entries that it called otherwise when they came, at most 32, the newest behind.
	Called []Called `json:"called,omitempty"`
	// Outputs are what Assemble returned before that, the ones used last behind: a host that is in a turn may go on building on one of them.
	Outputs []Ledger `json:"outputs,omitempty"`
	// Commits are the newest advancement keys, oldest first; older ones are recognised by the keys of their entries.
	Commits []string `json:"commits,omitempty"`
	// Erased counts the erasures that took something out of the view.
	Erased uint64 `json:"erased,omitempty"`
	// Arm is the arm of an experiment that the session belongs to; empty when it belongs to none.
	Arm string `json:"arm,omitempty"`
	// Tally is what was done for a session of an arm.
	Tally Tally `json:"tally,omitzero"`
	// Parent is the session that spawned this one, if any.
	Parent *SessionID `json:"parent,omitempty"`
	// Inherited are the entries of other sessions that were on the path, until the grant for them was over or the path was cut. A host may still have copies of them.
	Inherited []Span `json:"inherited,omitempty"`
	// Heirs are the sessions of other agents that were forked from this one: an erasure has to reach them.
	Heirs []SessionID `json:"heirs,omitempty"`
	// Grants open other sessions to this one for a limited time.
	Grants []Grant `json:"grants,omitempty"`
}

// Edit is something that happens to a session. Package edit has what there is.
type Edit interface {
	// Edit changes a view that is not published; nobody else uses it meanwhile.
	Edit(v *View)
}

// Apply does edits, one after the other. It is the only thing that changes a view.
func (v *View) Apply(edits ...Edit) {
	for _, e := range edits {
		e.Edit(v)
	}
}

// Front is what stands in front of a window.
type Front struct {
	Summaries []Summary `json:"summaries,omitempty"`
	// Left is the number of entries that the note speaks of.
	Left int `json:"left,omitempty"`
}

// Span is a run of entries of one session: From <= Seq < To. Session is nil for the view's own session; a fork shows the parent's.
type Span struct {
	Session *SessionID `json:"session,omitempty"`
	From    int64      `json:"from"`
	To      int64      `json:"to"`
}

// Owned returns s with its session named.
func (s Span) Owned(owner SessionID) Span {
	if s.Session == nil {
		s.Session = &owner
	}
	return s
}

// Holds reports whether a span that names its session holds an entry.
func (s Span) Holds(id SessionID, seq int64) bool {
	return s.Session != nil && *s.Session == id && seq >= s.From && seq < s.To
}

// Len returns the number of entries in s.
func (s Span) Len() int { return int(s.To - s.From) }

// Summary stands for entries that left the window for good.
type Summary struct {
	// ID is the entry that holds the summary.
	ID string `json:"id"`
	// Kind says who made it: "summary" (a model), "fallback" (deterministic, a model failed), "note" (a pointer, no content),
	// "index" (identifiers and open points, extracted without a model), "host".
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
	// Covers is the number of entries it stands for, and Of which it was made of; every span names its session. Covers is less where the newest of them were given
	// back to the window.
	Covers int    `json:"covers"`
	Of     []Span `json:"of,omitempty"`
	// Late is how many more came among those, or in front of them, since: it says nothing of them, and the note counts them.
	Late int       `json:"late,omitempty"`
	Time time.Time `json:"time"`
	// Erased is how many of them were erased, or purged, when it was made. Where more of them are, and it still says something, it was made without knowing of an erasure.
	Erased int `json:"erased,omitempty"`
}

// MadeOf reports whether a summary was made of an entry.
func (s *Summary) MadeOf(id SessionID, seq int64) bool {
	return slices.ContainsFunc(s.Of, func(sp Span) bool { return sp.Holds(id, seq) })
}

// Places returns how many positions of the path a summary takes.
func (s *Summary) Places() int { return s.Covers + s.Late }

// Recall is the block of recalled entries shown before the newest turn.
type Recall struct {
	// Turn is the turn the block was made for; within a turn it stays as it is until the window steps.
	Turn int64 `json:"turn"`
	// Prompt is the fingerprint of the prompt it was made for.
	Prompt string       `json:"prompt,omitempty"`
	Text   string       `json:"text,omitempty"`
	Tokens int          `json:"tokens,omitempty"`
	Items  []RecallItem `json:"items,omitempty"`
	Time   time.Time    `json:"time"`
	// At is the position on the path in front of which the block stands.
	At int `json:"at"`
	// Until is when the first grant that the block needs expires; zero when it needs none.
	Until time.Time `json:"until,omitzero"`
}

// Reset is what was in force when the host began anew. It does not change.
type Reset struct {
	// Path lists the entries that no summary stood for, without the system messages in front; every span names its session.
	Path []Span `json:"path,omitempty"`
	// Summary is the id of the newest summary of those before; empty where there was none.
	Summary string `json:"summary,omitempty"`
}

// RecallItem is one recalled entry.
type RecallItem struct {
	ID     string  `json:"id"`
	Score  float64 `json:"score"`
	Source string  `json:"source"`
	// Part says that only a part of the entry is quoted.
	Part bool `json:"part,omitempty"`
}

// Ledger is the count and digest of a list of messages.
type Ledger struct {
	Count  int            `json:"count"`
	Digest message.Digest `json:"digest"`
	// Calls is a digest of the ids of their calls, of what Assemble returned; empty where there are none, or it is not known.
	Calls string `json:"calls,omitempty"`
	// Len is how long the view's path was then.
	Len int `json:"len,omitempty"`
	// Whole says that the path was the list, and held nothing that is only not shown.
	Whole bool `json:"whole,omitempty"`
}

// Called is the name that a host gave an entry later on: its Message.Key, Message.ID and Message.Time, and the ids of its calls or results, in order. Of an entry that was
// erased by then it holds Origin instead, keyed digests of the same.
type Called struct {
	Entry string    `json:"entry"`
	Key   string    `json:"key,omitempty"`
	ID    string    `json:"id,omitempty"`
	Time  time.Time `json:"time,omitzero"`
	Calls []string  `json:"calls,omitempty"`

	Origin string `json:"origin,omitempty"`
}

// Message returns a message that has the name and says nothing.
func (c Called) Message() *message.Message {
	m := message.Message{Key: c.Key, ID: c.ID, Time: c.Time}
	for _, id := range c.Calls {
		m.Parts = append(m.Parts, message.Part{Kind: message.ToolCall, CallID: id})
	}
	return &m
}

// Told are the positions on the path of what transcripts showed of a turn: From <= position < To.
type Told struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Grant lets a session recall from another one until it expires.
type Grant struct {
	Scope Scope     `json:"scope"`
	Until time.Time `json:"until"`
	// ID identifies the grant for a rollback.
	ID string `json:"id"`
	// Before bounds what is recalled of the scope to positions below it; 0 is no bound.
	Before int64 `json:"before,omitempty"`
	// Closed are the positions of the scope that were not in force when it was given, because of a reset or a rewind: nothing there is recalled or found unless
	// Recall.ResetHistory says so.
	Closed []Span `json:"closed,omitempty"`
	// Search says that the scope is open to who searches, and that nothing of it is recalled unasked.
	Search bool `json:"search,omitempty"`
}

// Front returns what stands in front of the window now.
func (v *View) Front() Front {
	if v.Shown != nil {
		return *v.Shown
	}
	return Front{Summaries: v.Summaries, Left: v.Left()}
}

// Left is the number of entries that the window does not show and no summary stands for. The note in front of the window may speak of another number until it steps.
func (v *View) Left() int {
	n := max(v.Start-max(v.Frontier, v.Lead), 0)
	for i := range v.Summaries {
		n += v.Summaries[i].Late
	}
	return n
}

// Floor is the position from which on the summaries stand for entries. What is in front of it leads, or the host compacted it itself.
func (v *View) Floor() int {
	n := v.Frontier
	for i := range v.Summaries {
		n -= v.Summaries[i].Places()
	}
	return max(n, 0)
}

// Position returns where an entry stands on the path, -1 when it does not.
func (v *View) Position(id SessionID, seq int64) int {
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

// Len returns the number of entries in force.
func (v *View) Len() int {
	n := 0
	for _, s := range v.Path {
		n += s.Len()
	}
	return n
}

// At returns the session and Seq of the entry at a position, 0 <= pos < Len.
func (v *View) At(pos int) (SessionID, int64) {
	for _, s := range v.Path {
		if n := s.Len(); pos >= n {
			pos -= n
			continue
		}
		if s.Session != nil {
			return *s.Session, s.From + int64(pos)
		}
		return v.Session, s.From + int64(pos)
	}
	return v.Session, -1
}

// Slice returns the spans of the positions from <= pos < to that there are, in order.
func (v *View) Slice(from, to int) []Span {
	var out []Span
	pos := 0
	for _, s := range v.Path {
		a, b := max(from, pos), min(to, pos+s.Len())
		if a < b {
			out = append(out, Span{Session: s.Session, From: s.From + int64(a-pos), To: s.From + int64(b-pos)})
		}
		pos += s.Len()
	}
	return out
}

// Clone returns a view that shares nothing with v that could change. The slices, the maps and the values behind pointers of a View are its own. What those hold in
// turn is shared, since nobody writes to it once it is made: a span's session, the spans of a summary, a reset or a grant, what a block recalls, a stub's texts.
func (v *View) Clone() View {
	c := *v
	c.Path = slices.Clone(v.Path)
	c.Summaries = slices.Clone(v.Summaries)
	c.Head = slices.Clone(v.Head)
	c.Stubs = maps.Clone(v.Stubs)
	c.Commits, c.Called = slices.Clone(v.Commits), slices.Clone(v.Called)
	c.Grants = slices.Clone(v.Grants)
	c.Kept = slices.Clone(v.Kept)
	c.Outputs = slices.Clone(v.Outputs)
	c.Heirs = slices.Clone(v.Heirs)
	c.Inherited = slices.Clone(v.Inherited)
	c.Recall, c.Shown, c.Reset, c.Parent = copied(v.Recall), copied(v.Shown), copied(v.Reset), copied(v.Parent)
	return c
}

// copied returns a pointer to a copy.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Tally is what the engine did for a session that belongs to an arm of an experiment, from when it joined on. Other sessions have none. A call is
// counted with the next change of the view, so what a process did last before it ended may be missing.
type Tally struct {
	// Calls are the windows assembled, Tokens what they cost together, Cached what of that a prompt cache had from the call before.
	Calls  int64 `json:"calls,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	Cached int64 `json:"cached,omitempty"`
	// Took is how long assembling them took.
	Took time.Duration `json:"took,omitempty"`
	// Recalled are the turns for which something was recalled, Used those of them whose answer says some of it in its words: four in a row, or an
	// identifier, that the prompt did not say.
	Recalled int64 `json:"recalled,omitempty"`
	Used     int64 `json:"used,omitempty"`
	// Degraded are the calls that a part failed in and that were answered all the same, Errors those that were not answered.
	Degraded int64 `json:"degraded,omitempty"`
	Errors   int64 `json:"errors,omitempty"`
}

// Plus returns the two together.
func (t Tally) Plus(more Tally) Tally {
	return Tally{
		Calls: t.Calls + more.Calls, Tokens: t.Tokens + more.Tokens, Cached: t.Cached + more.Cached, Took: t.Took + more.Took, Recalled: t.Recalled + more.Recalled,
		Used: t.Used + more.Used, Degraded: t.Degraded + more.Degraded, Errors: t.Errors + more.Errors,
	}
}
