package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func taskCompactorChecks() []Check {
	owner := []Need{NeedOwner}
	return []Check{
		{ID: "patch.alone", Promise: 6, Suite: SuiteCompactor, compactor: patchAlone, Needs: owner, dear: true,
			Rule: "a patch is a function of its task: what was asked before changes no answer, and no answer that was given"},
		{ID: "patch.concurrent", Promise: 6, Suite: SuiteCompactor, compactor: patchConcurrent,
			Rule: "several tasks at the same time get the patches that each of them gets alone"},
		{ID: "patch.long", Promise: 4, Suite: SuiteCompactor, compactor: patchLong, Needs: owner, once: true,
			Rule: "more than a thousand entries are compacted as few are, what is long and cannot be published is not forgotten, and the thirtieth time is as the first"},
		{ID: "patch.paid", Promise: 4, Suite: SuiteCompactor, compactor: patchPaid, Needs: owner, once: true,
			Rule: "what a model answered before the compaction's time was over, wherever in its work that was, is published, or in the patch that is returned with the error"},
	}
}

const (
	// longPieces pieces of longText words do not fit one question to a model.
	longPieces = 40
	longText   = 1000
	// asksTwice of them fill two questions, or more.
	asksTwice = 18
	// manyPieces makes a task of more than a thousand entries, and often is how often the same is asked.
	manyPieces = 700
	often      = 30
)

// makers describes a replacement that says it is a model's where none was asked, or none's where one answered.
func (r *compactorRun) makers(patches []core.Patch, asked bool) string {
	warned := slices.ContainsFunc(patches, func(p core.Patch) bool { return len(p.Warnings) > 0 })
	for _, p := range patches {
		for _, rep := range p.Replace {
			if rep.Kind == "host" {
				return "a replacement says that the host made it, kind \"host\""
			}
			if rep.Kind == "summary" && !asked {
				return "a replacement is a model's, kind \"summary\", and no model was asked"
			}
			if rep.Kind == "fallback" && asked && !warned {
				return "a replacement is a fallback and no warning says why: the model answered"
			}
		}
	}
	return ""
}

// included describes an earlier summary with content that ended and of which nothing is left, neither in the text that took its place nor in what a model was
// asked; or one that is repeated and does not end, so that it is shown twice.
func (r *compactorRun) included(c core.Compaction, patches []core.Patch) string {
	for _, s := range c.Summaries {
		marks := marksIn(s.Text)
		if len(marks) == 0 {
			continue // a pointer, no content
		}
		over := false
		for _, p := range patches {
			for _, rep := range p.Replace {
				ends, says := slices.Contains(rep.Summaries, s.ID), slices.Contains(marksIn(rep.Text), marks[0])
				over = over || ends
				if ends && !says && (rep.Kind != "summary" || !r.model.heard(marks[0])) {
					return fmt.Sprintf("a replacement of kind %q ends the earlier summary %q of kind %q, and its text does not include what that says: %.80q", rep.Kind, s.ID, s.Kind, rep.Text)
				}
				if says && !over {
					return fmt.Sprintf("a replacement of kind %q repeats the earlier summary %q of kind %q, and does not end it: it is there twice", rep.Kind, s.ID, s.Kind)
				}
			}
		}
	}
	return ""
}

// richWish and otherWish are instructions of tasks.
const (
	richWish  = "keep what was said about the kestrel bridge – 橋"
	otherWish = "leave out the kestrel bridge"
)

// variants are tasks that differ in one thing each.
func (r *compactorRun) variants() []core.Compaction {
	change := func(f func(c *core.Compaction)) core.Compaction {
		c := r.rich(true)
		f(&c)
		return c
	}
	return []core.Compaction{
		change(func(*core.Compaction) {}),
		change(func(c *core.Compaction) { c.Force = false }),
		change(func(c *core.Compaction) { c.Target = c.Tokens / 4 }),
		change(func(c *core.Compaction) { c.Instructions = otherWish }),
		change(func(c *core.Compaction) { c.Instructions = "" }),
		change(func(c *core.Compaction) { c.Protected = 0 }),
		change(func(c *core.Compaction) { c.Summaries = nil }),
		change(func(c *core.Compaction) { c.Host = core.NoHost{} }),
		change(func(c *core.Compaction) { c.SummaryTokens = 20 }),
		change(func(c *core.Compaction) { c.Session = core.SessionID{Agent: "agent-b", Session: "main"} }),
		change(func(c *core.Compaction) {
			for i := range c.Entries {
				e := &c.Entries[i]
				e.Message = e.Message.WithParts(slices.Clone(e.Message.Parts))
				for j := range e.Message.Parts {
					e.Message.Parts[j].Text = strings.ReplaceAll(e.Message.Parts[j].Text, "budget", "harbour")
				}
				e.Fingerprint, e.Time = message.Fingerprint(e.Message), e.Time.AddDate(0, 1, 0)
			}
		}),
		change(func(c *core.Compaction) {
			c.Stubs = nil
			for i := range c.Entries {
				c.Entries[i].ID = "D" + c.Entries[i].ID
			}
		}),
		change(func(*core.Compaction) {}),
	}
}

// answers asks one compactor and returns everything handed over, published or not.
func (r *compactorRun) answers(of core.Compactor, c core.Compaction) ([]core.Patch, string) {
	var out []core.Patch
	c.Publish = func(_ context.Context, p core.Patch) error { out = append(out, p); return nil }
	p, err := of.Compact(r.ctx(), c)
	if err != nil {
		return nil, fmt.Sprintf("Compact: error %v, want none", err)
	}
	return append(out, p), ""
}

// copied copies patches as deep as a compactor could reach.
func copied(patches []core.Patch) []core.Patch {
	out := slices.Clone(patches)
	for i := range out {
		p := &out[i]
		p.Replace, p.Warnings, p.Stubs = slices.Clone(p.Replace), slices.Clone(p.Warnings), maps.Clone(p.Stubs)
		for j := range p.Replace {
			rep := &p.Replace[j]
			rep.Entries, rep.Summaries, rep.Meta = slices.Clone(rep.Entries), slices.Clone(rep.Summaries), maps.Clone(rep.Meta)
		}
		if p.Delegated != nil {
			p.Delegated = new(*p.Delegated)
		}
		for id, s := range p.Stubs {
			s.Texts = maps.Clone(s.Texts)
			p.Stubs[id] = s
		}
	}
	return out
}

func patchAlone(r *compactorRun) string { return r.alone(r.compactor, 0) }

// alone asks a compactor for one patch after the other, each so much later than the one before, and another one for each of them alone.
func (r *compactorRun) alone(of core.Compactor, later time.Duration) string {
	var given, kept [][]core.Patch
	for n, c := range r.variants() {
		c.Now = c.Now.Add(time.Duration(n) * later)
		alone, text := r.answers(r.open(r.tb, r.model), c)
		if text != "" {
			return text
		}
		asked := r.model.Calls()
		got, text := r.answers(of, c)
		if text != "" {
			return text
		}
		for _, wish := range []string{richWish, otherWish} {
			if wish != c.Instructions && r.model.heardSince(asked, wish) {
				return fmt.Sprintf("task %d, of one that was asked others before: a model is asked with the instructions of another task", n+1)
			}
		}
		if d := differs(got, alone); d != "" {
			return fmt.Sprintf("task %d, of one that was asked others before: the patch's %s", n+1, d)
		}
		given, kept = append(given, got), append(kept, copied(got))
	}
	for n := range given {
		if d := differs(given[n], kept[n]); d != "" {
			return fmt.Sprintf("the patch of task %d was changed after it was returned: its %s", n+1, d)
		}
	}
	return ""
}

// refused lets nothing be published.
func (r *compactorRun) refused() string {
	c := r.task(true)
	refused := map[string]bool{}
	c.Publish = func(_ context.Context, p core.Patch) error {
		for _, rep := range p.Replace {
			for _, id := range rep.Entries {
				refused[id] = true
			}
		}
		return errors.New("conformance: publish: injected")
	}
	p, err := r.compactor.Compact(r.ctx(), c)
	if err != nil {
		return ""
	}
	for _, rep := range p.Replace {
		for _, id := range rep.Entries {
			delete(refused, id)
		}
	}
	if len(refused) > 0 || p.Empty() {
		return fmt.Sprintf("%d entries whose replacement could not be published are neither in the patch that is returned nor an error", len(refused))
	}
	return ""
}

func patchLong(r *compactorRun) string {
	few := r.pieces
	r.pieces = nil
	for i := range manyPieces {
		r.pieces = append(r.pieces, piece{Calls: (i % 3) % 2 * 2, Size: 5 + i%20})
	}
	c := r.task(true)
	patches, text := r.run(c)
	if text == "" {
		text = r.legal(c, patches)
	}
	if text == "" {
		text = r.progress(c, patches)
	}
	if text != "" {
		return fmt.Sprintf("%d entries: %s", len(c.Entries), text)
	}
	// What is long is published piece by piece.
	r.pieces = longTexts()
	if text := r.refused(); text != "" {
		return text
	}
	r.pieces = few
	var first []core.Patch
	for n := range often {
		got, text := r.answers(r.compactor, r.task(true))
		if text == "" && n > 0 {
			text = differs(got, first)
		}
		if text != "" {
			return fmt.Sprintf("the same for the %dth time: %s", n+1, text)
		}
		first = got
	}
	return ""
}

// longTexts are pieces about which a model is asked more than once.
func longTexts() []piece {
	out := make([]piece, longPieces)
	for n := range out {
		out[n] = piece{Size: longText, Calls: n % 2}
	}
	return out
}

// patchPaid ends the time of a compaction at many places. One that makes a text of each answer has kept each; one that makes one text of all answers has nothing to keep.
func patchPaid(r *compactorRun) string {
	return r.ends(func(at place, whole, got outcome) string {
		if text := r.legal(got.task, got.patches); text != "" {
			return fmt.Sprintf("of what was done after %d answers: %s", got.answers, text)
		}
		const least = 3
		all, texts, kept := whole.asked.number(), summaries(whole.patches), summaries(got.patches)
		if all < least || texts < least {
			return ""
		}
		want := 0
		switch {
		case texts == all && whole.asked.atOnceMost() == 1: // what it just looks at may be lost, but for the first
			if want = got.answers; at.what == whenCounted && want > 1 {
				want--
			}
		case got.answers >= all-1:
			want = 1
		}
		if kept < want {
			return fmt.Sprintf("a model gave %d answers until then, %d make %d summaries otherwise: %d were published or are in the patch, want %d", got.answers, all, texts, kept, want)
		}
		return ""
	})
}
