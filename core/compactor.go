package core

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core/window"
)

// Compactor decides what may stand for history that has to go.
//
// Implementers: Compact returns a Patch and changes nothing itself: no store, no view. It is a function of its argument and of a model's answers, no time is
// in it but Now and the entries' own, and it is safe for concurrent use; of earlier answers it may remember that a model failed, and leave it alone for a while,
// as Now tells, not for ever. It returns soon after ctx ends, within 5 s, and no model is asked any more then. A model that fails, hangs or returns
// nothing usable is no error: the patch then holds a deterministic fallback, for which all of this holds as well, and Warnings say what became of the
// model. A patch that is returned together with an error is published nevertheless: what was paid for is kept, and a compactor whose time is over returns what is ready. A patch that is refused is as good as none: the Engine
// reports it and does what has to be done without the compactor, or fails where it was told to be strict; so it does with a compactor that panics, or does
// not return in that time.
//
// Callers: Entries are whole groups in conversation order, at least one; Protected entries at the end must not be touched; Target < Tokens unless Force. A call and its
// results are one group, with the entry of a subagent that ended between them.
// What a Compaction holds is the compactor's own, to write to as well.
// One that does not own compaction is given the request, which it passes on to the runtime exactly once, and no history: Entries, Summaries, figures and Publish are
// zero. It leaves the runtime the time that ctx has, no less, and passes on what that answers, also where ctx ended just before: the runtime has compacted.
type Compactor interface {
	// OwnsCompaction reports whether the engine compacts itself (true) or passes the task on to the runtime (false). It never changes.
	OwnsCompaction() bool
	Compact(ctx context.Context, c Compaction) (Patch, error)
}

// Compaction is the task given to a Compactor.
type Compaction struct {
	Session SessionID
	// Summaries stand for what was compacted before, oldest first.
	Summaries []Summary
	// Entries are the live entries behind them, oldest first.
	Entries []Entry
	// Cost is what each of Entries costs in the window now, in tokens (a stubbed one costs less than Entry.Tokens).
	Cost []int
	// Stubs are what the window shows of those of Entries that were shortened before, by entry id. A stub in a Patch is laid over them: parts that it does
	// not name stay as they are shown.
	Stubs map[string]window.Stub
	// Protected is the number of entries at the end of Entries that must stay: the newest ones and, unless Force is set, all that the window shows.
	Protected int
	// Left is the number of entries at the beginning of Entries that the window does not show any more.
	Left int
	// Tokens is the cost of Summaries and Entries together, Target what they should cost afterwards.
	Tokens, Target int
	// SummaryTokens is the largest cost a single replacement text should have, in tokens. It is as exact as the texts' count: the conformance suite refuses what costs
	// twice as much.
	SummaryTokens int
	// Force asks for progress even when Tokens is below every mark.
	Force bool
	// Instructions are a person's wishes for this compaction; most often empty.
	Instructions string
	Now          time.Time
	Count        TokenCounter
	Host         Host
	// Request is what the host asked, with its settings of the model run, for a compactor that passes it on or heeds them.
	Request CompactRequest
	// Publish makes a part of the work permanent before the rest is done. Each call is checked and published atomically. What was published must
	// not be in the returned Patch again. Entries keeps its meaning. After an error nothing of that patch holds, and what was published before stays: Compact returns the
	// error, or the same once more in its Patch.
	Publish func(ctx context.Context, p Patch) error
}

// Clone returns the same compaction for somebody else to write to; Publish, Host and Count are shared.
func (c Compaction) Clone() Compaction {
	c.Entries, c.Cost, c.Stubs, c.Summaries = slices.Clone(c.Entries), slices.Clone(c.Cost), maps.Clone(c.Stubs), slices.Clone(c.Summaries)
	for i := range c.Entries {
		c.Entries[i] = c.Entries[i].Clone()
	}
	for id, stub := range c.Stubs {
		stub.Texts = maps.Clone(stub.Texts)
		c.Stubs[id] = stub
	}
	for i := range c.Summaries {
		of := slices.Clone(c.Summaries[i].Of)
		for j := range of {
			if of[j].Session != nil {
				of[j].Session = new(*of[j].Session)
			}
		}
		c.Summaries[i].Of = of
	}
	if t := c.Request.Transcript; t != nil {
		t = new(*t)
		t.Messages = slices.Clone(t.Messages)
		for i := range t.Messages {
			t.Messages[i] = t.Messages[i].Clone()
		}
		c.Request.Transcript = t
	}
	return c
}

// Patch says what should change. The Engine checks it against the promises (whole groups, nothing protected, nothing newer than what stays, fewer
// tokens than before) and publishes all of it or nothing. What a Patch holds is its reader's, to write to as well, but for the texts of a stub: it shares nothing with
// another patch.
type Patch struct {
	// Stubs replace the content of entries that stay, by entry id. Each says something, and so does what stands in the place of a result that did; none of its texts
	// stands for a tool call, whose results would be left alone.
	Stubs map[string]window.Stub
	// Replace takes entries out of the window, with a text that stands for them.
	Replace []Replacement
	// Delegated is the runtime's result when the compactor passed the task on; everything else is empty then.
	Delegated *CompactResult
	// Reason says why nothing was done, or why less than asked, in words for the host's user.
	Reason string
	// Warnings name what failed without stopping the work, such as a model whose text a fallback took the place of. They are reported by Info and hold
	// neither keys nor contents: no message, summary, wish or answer of a model.
	Warnings []string
}

// Empty reports whether p changes nothing.
func (p Patch) Empty() bool {
	return len(p.Stubs) == 0 && len(p.Replace) == 0 && p.Delegated == nil
}

// Replacement lets one text stand for the oldest entries.
type Replacement struct {
	// Ref names this replacement within one compaction; empty when nobody needs to. Unique within the compaction, and no id of an earlier summary.
	Ref string
	// Summaries are the ids of earlier summaries that the text includes, with what they say; they end there, and what is not named here is not repeated. A text that
	// counts messages counts theirs too (Summary.Covers), and one that says since when begins where they do. What the same compaction made, in this patch
	// or an earlier one, is named by its Ref.
	Summaries []string
	// Entries are the ids of the entries it stands for: the oldest live ones, without a gap.
	Entries []string
	// Text is shown instead; never empty, and cheaper than what it stands for unless it is a note. It is untrusted data, as what it was made of is: the Engine,
	// not the compactor, makes it unable to speak for anybody (window.Neutral) before it is stored or shown.
	Text string
	// Kind is a Summary's Kind.
	Kind string
	// Meta is stored with the summary: model, prompt version, cost.
	Meta map[string]string
}
