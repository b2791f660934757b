package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

func compactorChecks() []Check {
	return slices.Concat(soonChecks(), compactorContract(), roundChecks(), ownershipChecks(), taskCompactorChecks(), includingChecks(), moodChecks(), shapeChecks(), hangingChecks())
}

func compactorContract() []Check {
	owner, delegate := []Need{NeedOwner}, []Need{NeedDelegate}
	return []Check{
		{ID: "patch.publish", Promise: 9, Suite: SuiteCompactor, compactor: patchPublish, Needs: owner,
			Rule: "what was published is not returned once more, and what could not be published is an error"},
		{ID: "patch.oldest", Promise: 5, Suite: SuiteCompactor, compactor: patchOldest, Needs: owner,
			Rule: "replacements stand for the oldest live entries, without a gap, each once, none of them protected"},
		{ID: "patch.groups", Promise: 5, Suite: SuiteCompactor, compactor: patchGroups, Needs: owner,
			Rule: "a tool call and its results are replaced together"},
		{ID: "patch.text", Promise: 10, Suite: SuiteCompactor, compactor: patchText, Needs: owner,
			Rule: "a replacement has a text and a kind, a stub a text; protected and unknown entries get no stub, no text takes a tool call's place, however long its arguments are, and neither a text nor a model says or is told what is hidden"},
		{ID: "patch.progress", Promise: 4, Suite: SuiteCompactor, compactor: patchProgress, Needs: owner,
			Rule: "a patch makes the window cheaper, forced also below every mark, and one that does less than asked says why"},
		{ID: "patch.fallback", Promise: 4, Suite: SuiteCompactor, compactor: patchFallback, Needs: owner,
			Rule: "a model that fails, lies or says nothing is no error: a deterministic fallback makes progress, and a warning says what became of the model"},
		{ID: "patch.listed", Promise: 4, Suite: SuiteCompactor, compactor: patchListed, Needs: owner,
			Rule: "a host is asked only for what it lists, and one that lists less stops no progress"},
		{ID: "patch.deadline", Promise: 4, Suite: SuiteCompactor, compactor: patchDeadline, Needs: owner,
			Rule: "a model that hangs does not hold the compactor 5 s beyond its context, and does not stop its progress"},
		{ID: "patch.pure", Promise: 2, Suite: SuiteCompactor, compactor: patchPure,
			Rule: "a patch is its reader's to write to: what is written to one is in no other"},
		{ID: "deterministic.patch", Promise: 6, Suite: SuiteCompactor, compactor: deterministicPatch, Needs: owner,
			Rule: "the same task and the same answers of the model give the same patch, and the only time in it is the task's"},
		{ID: "patch.owner", Promise: 3, Suite: SuiteCompactor, compactor: patchOwner, Needs: owner,
			Rule: "a compactor that owns compaction never asks the runtime to compact"},
		{ID: "patch.delegate", Promise: 3, Suite: SuiteCompactor, compactor: patchDelegate, Needs: delegate,
			Rule: "a delegating compactor asks the runtime exactly once and passes its result through"},
		{ID: "cancel.patch", Promise: 9, Suite: SuiteCompactor, compactor: compactorCancel,
			Rule: "Compact returns when its context ends, with what it has or with the context's error"},
	}
}

// run asks for a compaction and returns everything handed over.
func (r *compactorRun) run(c core.Compaction) ([]core.Patch, string) {
	p, err := r.compactor.Compact(r.ctx(), c)
	if err != nil {
		return nil, fmt.Sprintf("Compact: error %v, want none", err)
	}
	return r.all(p), ""
}

func patchOldest(r *compactorRun) string {
	for _, force := range []bool{false, true} {
		c := r.task(force)
		patches, text := r.run(c)
		if text != "" {
			return text
		}
		var got []string
		for _, p := range patches {
			for _, rep := range p.Replace {
				got = append(got, rep.Entries...)
			}
		}
		ids := idsOf(c.Entries)
		if len(got) > len(ids)-c.Protected {
			return fmt.Sprintf("%d entries are replaced, %d of %d are protected", len(got), c.Protected, len(ids))
		}
		slices.SortFunc(got, func(a, b string) int { return slices.Index(ids, a) - slices.Index(ids, b) })
		if d := sameIDs(got, ids[:len(got)]); d != "" {
			return "replaced entries: " + d
		}
	}
	// Somebody insists where all of it has to stay.
	c := r.task(true)
	c.Protected = len(c.Entries)
	patches, text := r.run(c)
	for _, p := range patches {
		for _, rep := range p.Replace {
			if len(rep.Entries) > 0 {
				return fmt.Sprintf("entries %q are replaced, and all %d are protected", rep.Entries, c.Protected)
			}
		}
	}
	if text != "" {
		return text
	}
	return r.protectedWithin(len(r.pieces))
}

// protectedWithin asks where what has to stay begins in the midst of one of several groups, and all that may go has to.
func (r *compactorRun) protectedWithin(n int) string {
	r.pieces = []piece{{Size: 60}, {Calls: 1, Size: 60}, {Size: 60}, {Calls: 3, Size: 60}, {Size: 60}, {Calls: 2, Size: 60, Ended: true}, {Size: 60}}
	c := r.task(true)
	group := 1 + 2*(n%3)
	for i, e := range c.Entries {
		if r.groups[e.ID] == group { // its last one
			c.Protected, c.Target = len(c.Entries)-i, 1
		}
	}
	patches, text := r.run(c)
	for _, p := range patches {
		for _, rep := range p.Replace {
			for _, e := range c.Entries[len(c.Entries)-c.Protected:] {
				if slices.Contains(rep.Entries, e.ID) {
					return fmt.Sprintf("entry %q is replaced and is one of the %d that are protected, which begin within a call and its results", e.ID, c.Protected)
				}
			}
		}
	}
	return text
}

// summaryKinds are those of core.Summary.
var summaryKinds = []string{"summary", "fallback", "note", "index", "host"}

func patchText(r *compactorRun) string {
	if text := r.trueTexts(r.task(true)); text != "" {
		return text
	}
	front := []piece{{Size: 20}, {Calls: 2, Size: 20}}
	for n := range hiddenPieces {
		front = append(front, piece{Size: 20, Odd: len(oddPieces) - 1 - n}, piece{Size: 30})
	}
	r.pieces, r.args = slices.Concat(front, r.pieces, front), fmt.Sprintf(`{"of":%q}`, wordy(longWords))
	if text := r.trueTexts(r.task(true)); text != "" {
		return text
	}
	return inTurn(r.callsStay, r.silence)
}

// silence asks where nothing was said: there is nothing to write down, and something stands there all the same.
func (r *compactorRun) silence() string {
	r.pieces = slices.Repeat([]piece{{Odd: slices.IndexFunc(oddPieces, func(p oddPiece) bool { return p.name == "without parts" })}}, 60)
	return r.trueTexts(r.task(true))
}

// longResult is as many words as are shortened by whoever shortens results.
const longResult = 800

// callsStay asks where it is enough to shorten results: the calls stay, and have long arguments.
func (r *compactorRun) callsStay() string {
	r.pieces = []piece{{Calls: 1, Size: longResult}, {Calls: 2, Size: longResult}, {Size: 5}, {Calls: 2, Size: longResult, Joined: true}, {Calls: 1, Size: 5}, {Calls: 1}, {Size: 5}, {Size: 5}, {Size: 5}}
	for _, tenths := range []int{5, 9} {
		c := r.task(true)
		c.Target = c.Tokens * tenths / 10
		for i := range c.Entries {
			if e := &c.Entries[i]; i > tenths && len(e.Message.Calls()) > 0 { // some say what they call for
				e.Message = e.Message.WithParts(append([]message.Part{{Kind: message.Text, Text: "I look. "}}, e.Message.Parts...))
				e.Fingerprint = message.Fingerprint(e.Message)
			}
		}
		if text := r.trueTexts(c); text != "" {
			return fmt.Sprintf("long results and arguments, %d tenths may stay: %s", tenths, text)
		}
	}
	return ""
}

// trueTexts looks at the texts of a patch, and at what a model was told.
func (r *compactorRun) trueTexts(c core.Compaction) string {
	calls := r.model.Calls()
	patches, text := r.run(c)
	r.shown = patches
	if text != "" {
		return text
	}
	free := idsOf(c.Entries[:len(c.Entries)-c.Protected])
	for _, e := range r.entries {
		for _, mark := range marksIn(e.Text()) {
			said := slices.ContainsFunc(patches, func(p core.Patch) bool {
				return slices.ContainsFunc(p.Replace, func(rep core.Replacement) bool { return slices.Contains(marksIn(rep.Text), mark) })
			})
			if told := r.model.heardSince(calls, mark); e.Hidden() && (said || told) {
				return fmt.Sprintf("entry %q (%s, %s) is hidden, and what it says is in a replacement: %v, or was told to a model: %v", e.ID, e.Type, e.Role, said, told)
			}
		}
	}
	for _, p := range patches {
		for _, rep := range p.Replace {
			if rep.Text == "" || rep.Kind == "" {
				return fmt.Sprintf("a replacement of %d entries has text %q and kind %q, want both", len(rep.Entries), rep.Text, rep.Kind)
			}
			if !slices.Contains(summaryKinds, rep.Kind) {
				return fmt.Sprintf("a replacement of %d entries is of kind %q, a summary's is one of %q", len(rep.Entries), rep.Kind, summaryKinds)
			}
		}
		for id, s := range p.Stubs {
			if !slices.Contains(free, id) {
				return fmt.Sprintf("entry %q gets a stub, it is protected or unknown", id)
			}
			if s.Kind == "" || len(s.Texts) == 0 {
				return fmt.Sprintf("the stub of entry %q has kind %q and %d texts", id, s.Kind, len(s.Texts))
			}
			for i, part := range c.Entries[slices.Index(free, id)].Message.Parts {
				if _, named := s.Texts[i]; named && part.Kind == message.ToolCall {
					return fmt.Sprintf("the stub of entry %q has a text in the place of a tool call: its results would stand alone", id)
				}
			}
		}
	}
	return ""
}

func patchFallback(r *compactorRun) string {
	for _, mood := range []Mood{Empty, Failing, Lying, Hostile} {
		r.set(mood)
		for _, c := range []core.Compaction{r.task(true), r.rich(true)} {
			r.published = nil
			calls := r.model.Calls()
			patches, text := r.run(c)
			if text == "" {
				text = r.progress(c, patches)
			}
			if text == "" && r.model.Calls() > calls && (mood == Empty || mood == Failing) {
				text = owned(patches)
			}
			if text == "" && r.model.Calls() > calls {
				text = silent(patches)
			}
			if text != "" {
				return fmt.Sprintf("model is %s, %d earlier summaries: %s", mood, len(c.Summaries), text)
			}
		}
	}
	for _, mood := range []Mood{Failing, Empty, Lying} {
		r.set(mood)
		if text := r.silence(); text != "" {
			return fmt.Sprintf("model is %s: %s", mood, text)
		}
	}
	return r.fallsBack()
}

// fallsBack asks where a model answers some questions of a compaction and fails at others: which of the texts are its own, and what became of the rest, is told nevertheless.
func (r *compactorRun) fallsBack() string {
	r.pieces = longTexts()[:asksTwice]
	for _, moods := range [][2]Mood{{Honest, Failing}, {Failing, Honest}} {
		r.set(moods[0])
		r.model.turns(1, moods[1])
		calls := r.model.Calls()
		c := r.task(true)
		c.Target = 1 // all that may go has to
		patches, text := r.run(c)
		if text == "" && r.model.Calls() > calls {
			text = silent(patches)
		}
		if text != "" {
			return fmt.Sprintf("model is %s once and then %s: %s", moods[0], moods[1], text)
		}
	}
	return ""
}

// silent describes patches with a text that a model did not write, although one was asked, where nobody says why.
func silent(patches []core.Patch) string {
	for _, p := range patches {
		if len(p.Warnings) > 0 {
			return ""
		}
	}
	for _, p := range patches {
		if slices.ContainsFunc(p.Replace, func(rep core.Replacement) bool { return rep.Kind == "fallback" }) {
			return "a model was asked and the text is of kind \"fallback\": no warning says what became of the model"
		}
	}
	return ""
}

// owned describes what patches keep to themselves of a model that gave nothing.
func owned(patches []core.Patch) string {
	if !slices.ContainsFunc(patches, func(p core.Patch) bool { return len(p.Warnings) > 0 }) {
		return "no warning says what became of it"
	}
	for _, p := range patches {
		for _, rep := range p.Replace {
			if rep.Kind == "summary" {
				return "a text of its own is called a model's: kind \"summary\""
			}
		}
	}
	return ""
}

// patchDeadline gives a hanging model little time and the compactor enough to notice.
func patchDeadline(r *compactorRun) string {
	r.model.Set(Hanging)
	c := r.task(true)
	ctx, cancel := context.WithTimeout(r.ctx(), 30*time.Millisecond)
	defer cancel()
	p, text, err := r.back(ctx, c)
	switch {
	case text != "":
		return text
	case err != nil && ctx.Err() == nil:
		return fmt.Sprintf("Compact: error %v before its time was over", err)
	}
	if text := r.progress(c, r.all(p)); text != "" && err == nil {
		return text
	}
	return ""
}

// patchPure writes to all that a patch holds, and asks for the same once more.
func patchPure(r *compactorRun) string {
	for _, task := range []func(bool) core.Compaction{r.task, r.rich} {
		first, text := r.answers(r.compactor, task(true))
		if text != "" {
			return text
		}
		kept := copied(first)
		spoil(first)
		again, text := r.answers(r.compactor, task(true))
		if text != "" {
			return text
		}
		if d := differs(again, kept); d != "" {
			return "after the first patch was written to, that for the same task is another one: its " + d
		}
	}
	return ""
}

// spoiled counts what spoil did in this process.
var spoiled atomic.Int64

// spoil writes to all that patches hold, something else each time: who shares what it writes to with every other part of the process is found the second time too.
// The texts of a stub are shared, and nobody writes to them.
func spoil(patches []core.Patch) {
	word := fmt.Sprintf("written to %d", spoiled.Add(1))
	for _, p := range patches {
		for i := range p.Replace {
			rep := &p.Replace[i]
			for _, ids := range [][]string{rep.Entries, rep.Summaries} {
				for j := range ids {
					ids[j] = word
				}
			}
			if rep.Meta != nil {
				rep.Meta["written"] = word
			}
			rep.Text, rep.Kind, rep.Ref = word, word, word
		}
		for i := range p.Warnings {
			p.Warnings[i] = word
		}
		for id := range p.Stubs {
			p.Stubs[id] = window.Stub{Kind: window.StubKind(word)}
		}
		if p.Delegated != nil {
			*p.Delegated = core.CompactResult{Reason: word}
		}
	}
}

func patchOwner(r *compactorRun) string {
	if _, text := r.run(r.task(true)); text != "" {
		return text
	}
	if n := r.host.Compacts(); n != 0 {
		return fmt.Sprintf("the runtime was asked to compact %d times", n)
	}
	return ""
}

func patchDelegate(r *compactorRun) string {
	want := core.CompactResult{OK: true, Compacted: true, Summary: "the host's", TokensBefore: 900, TokensAfter: 100}
	r.host.onCompact = func(core.CompactRequest) core.CompactResult { return want }
	p, err := r.compactor.Compact(r.ctx(), r.task(true))
	if err != nil {
		return fmt.Sprintf("Compact: error %v, want none", err)
	}
	if n := r.host.Compacts(); n != 1 {
		return fmt.Sprintf("the runtime was asked to compact %d times, want once", n)
	}
	// What an engine hands to a delegate.
	c := r.task(true)
	bare := core.Compaction{Session: c.Session, Force: true, Now: c.Now, Count: c.Count, Host: c.Host, Request: c.Request}
	if again, err := r.compactor.Compact(r.ctx(), bare); err != nil || again.Delegated == nil || r.host.Compacts() != 2 {
		return fmt.Sprintf("Compact of a task without entries: error %v, result %+v, the runtime was asked %d times more, want once", err, again.Delegated, r.host.Compacts()-1)
	}
	if p.Delegated == nil {
		return "the patch does not hold the runtime's result"
	}
	got := *p.Delegated
	got.Delegated = false
	if got != want || len(p.Stubs)+len(p.Replace) > 0 {
		return fmt.Sprintf("the patch holds %+v, want the runtime's %+v and nothing else", *p.Delegated, want)
	}
	return ""
}
