package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
)

// roundChecks are those of compactors that shrink a history themselves, round after round.
func roundChecks() []Check {
	owner := []Need{NeedOwner}
	return []Check{
		{ID: "patch.rounds", Promise: 4, Suite: SuiteCompactor, compactor: patchRounds, Needs: owner,
			Rule: "round after round, with summaries, stubs and a person's wishes, every patch is one that can be published, and in the end nothing is left to do"},
		{ID: "patch.honest", Promise: 1, Suite: SuiteCompactor, compactor: patchHonest, Needs: owner,
			Rule: "texts say something and are no larger than allowed, a stub says what it costs and what it stands for, and a warning repeats neither entries, summaries and wishes nor a model"},
		{ID: "patch.instructions", Suite: SuiteCompactor, compactor: patchInstructions, Needs: owner,
			Rule: "a person's wishes reach the model that is asked"},
	}
}

// earlierMarks begin the texts of earlier summaries that have content.
const earlierMarks = 8

// rich makes a task of everything a task can have: earlier summaries, stubs, wishes, entries that left.
func (r *compactorRun) rich(force bool) core.Compaction {
	c := r.task(force)
	for i, kind := range []string{"note", "note", "host", "summary"} {
		s := core.Summary{ID: fmt.Sprintf("S-%d", i), Kind: kind, Text: fmt.Sprintf("%d earlier messages about the budget", i+3), Tokens: 12, Covers: i + 3, Time: epoch,
			Of: []core.Span{{Session: new(sessionOf(1)), From: int64(10 * i), To: int64(11*i + 3)}}} // of the session that this one is a fork of
		if kind != "note" {
			s.Text = makeText(markOf(earlierMarks, i), textPlain, 6, i, nil)
			s.Tokens = messageTokens + r.count(s.Text)
		}
		c.Summaries = append(c.Summaries, s)
		c.Tokens += s.Tokens
	}
	c.Stubs = map[string]window.Stub{}
	for i, e := range c.Entries[:len(c.Entries)-c.Protected] {
		if e.Message.HasResults() && c.Cost[i] > 40 {
			c.Stubs[e.ID] = window.Stub{Kind: window.Clipped, Texts: map[int]string{0: "head … tail"}, Tokens: 10}
			c.Tokens -= c.Cost[i] - 10
			c.Cost[i] = 10
			break
		}
	}
	c.Left = min(2, len(c.Entries)-c.Protected)
	c.Target = c.Tokens / 2
	c.Instructions = richWish
	return c
}

// legal describes what is wrong with the patches of a task, if anything.
func (r *compactorRun) legal(c core.Compaction, patches []core.Patch) string {
	free := idsOf(c.Entries[:len(c.Entries)-c.Protected])
	var taken []string
	open := map[string]bool{}
	for _, s := range c.Summaries {
		open[s.ID] = true
	}
	refs := map[string]bool{}
	for _, p := range patches {
		if p.Delegated != nil {
			return "the patch of an owner holds a result of the runtime"
		}
		for _, rep := range p.Replace {
			for _, id := range rep.Summaries {
				if !open[id] {
					return fmt.Sprintf("a replacement ends the summary %q, which is not there", id)
				}
				delete(open, id)
			}
			if rep.Ref != "" {
				if refs[rep.Ref] || slices.ContainsFunc(c.Summaries, func(s core.Summary) bool { return s.ID == rep.Ref }) {
					return fmt.Sprintf("two replacements have the ref %q, or it is that of an earlier summary", rep.Ref)
				}
				refs[rep.Ref], open[rep.Ref] = true, true
			}
			if len(rep.Entries)+len(rep.Summaries) == 0 {
				return "a replacement stands for nothing"
			}
			if n := r.count(rep.Text); n > 2*c.SummaryTokens {
				return fmt.Sprintf("a replacement of %d entries costs %d tokens, a text should cost at most %d", len(rep.Entries), n, c.SummaryTokens)
			}
			taken = append(taken, rep.Entries...)
		}
	}
	for i, id := range taken {
		if j := slices.Index(idsOf(c.Entries), id); j >= len(free) {
			return fmt.Sprintf("entry %q is replaced, and is protected", id)
		}
		if i >= len(free) || free[i] != id {
			return fmt.Sprintf("the replaced entries are %q, the oldest are %q", taken[:min(len(taken), 12)], free[:min(len(free), 12)])
		}
	}
	for i := len(taken); i > 0 && i < len(c.Entries); i++ {
		if r.groups[c.Entries[i].ID] == r.groups[c.Entries[i-1].ID] && i == len(taken) {
			return fmt.Sprintf("entry %q stays while others of its group are replaced", c.Entries[i].ID)
		}
	}
	gone := map[string]bool{} // what is published later may replace what got a stub before
	for _, p := range patches {
		for _, rep := range p.Replace {
			for _, id := range rep.Entries {
				gone[id] = true
			}
		}
		for id := range p.Stubs {
			if gone[id] {
				return fmt.Sprintf("entry %q is replaced and gets a stub", id)
			}
			if !slices.Contains(free, id) {
				return fmt.Sprintf("entry %q gets a stub, it is protected or unknown", id)
			}
		}
	}
	return ""
}

// publish does what an engine does with patches: the task that is left.
func (r *compactorRun) publish(c core.Compaction, patches []core.Patch, round int) core.Compaction {
	next := c
	next.Stubs = map[string]window.Stub{}
	maps.Copy(next.Stubs, c.Stubs)
	next.Summaries, next.Entries, next.Cost = slices.Clone(c.Summaries), slices.Clone(c.Entries), slices.Clone(c.Cost)
	names, made := map[string]string{}, 0
	for _, p := range patches {
		for id, s := range p.Stubs {
			if i := slices.Index(idsOf(next.Entries), id); i >= 0 {
				next.Stubs[id], next.Cost[i] = s, s.Tokens
			}
		}
		for _, rep := range p.Replace {
			id := fmt.Sprintf("S-made-%d-%d", round, made)
			made++
			names[rep.Ref] = id
			covers := len(rep.Entries)
			var of []core.Span
			next.Summaries = slices.DeleteFunc(next.Summaries, func(s core.Summary) bool {
				ends := slices.ContainsFunc(rep.Summaries, func(ref string) bool { return ref == s.ID || names[ref] == s.ID && ref != "" })
				if ends {
					covers, of = covers+s.Covers, append(of, s.Of...)
				}
				return ends
			})
			if n := len(rep.Entries); n > 0 {
				of = append(of, core.Span{Session: new(c.Session), From: next.Entries[0].Seq, To: next.Entries[n-1].Seq + 1})
			}
			next.Summaries = append(next.Summaries, core.Summary{ID: id, Kind: rep.Kind, Text: rep.Text, Tokens: 4 + r.count(rep.Text), Covers: covers, Of: of, Time: c.Now})
			next.Entries, next.Cost = next.Entries[len(rep.Entries):], next.Cost[len(rep.Entries):]
		}
	}
	next.Left = 0
	next.Protected = min(next.Protected, len(next.Entries))
	next.Tokens = 0
	for _, s := range next.Summaries {
		next.Tokens += s.Tokens
	}
	for _, n := range next.Cost {
		next.Tokens += n
	}
	next.Target = next.Tokens / 2
	next.Entries = cloneEntries(next.Entries)
	return next
}

// patchRoundsMax is how many rounds in a row may find something to do.
const patchRoundsMax = 25

func patchRounds(r *compactorRun) string {
	for _, force := range []bool{false, true} {
		c := r.rich(force)
		for round := range patchRoundsMax + 1 {
			r.published = nil
			if len(c.Entries) == 0 {
				break
			}
			patches, text := r.run(c)
			if text == "" {
				text = r.legal(c, patches)
			}
			next := c
			if text == "" {
				next = r.publish(c, patches, round)
				empty := !slices.ContainsFunc(patches, func(p core.Patch) bool { return !p.Empty() })
				switch {
				case empty && patches[len(patches)-1].Reason == "":
					text = "the patch is empty and gives no reason"
				case empty:
					next.Entries = nil
				case next.Tokens > c.Target && c.Tokens > c.Target && !slices.ContainsFunc(patches, func(p core.Patch) bool { return p.Reason != "" }):
					text = fmt.Sprintf("the patch leaves %d of %d tokens, the target is %d, and gives no reason", next.Tokens, c.Tokens, c.Target)
				case next.Tokens >= c.Tokens:
					text = fmt.Sprintf("the patch leaves %d of %d tokens", next.Tokens, c.Tokens)
				case round == patchRoundsMax:
					text = fmt.Sprintf("%d rounds each found something to do", round)
				}
			}
			if text != "" {
				return fmt.Sprintf("round %d, force %v: %s", round+1, force, text)
			}
			c = next
		}
	}
	return ""
}

func patchHonest(r *compactorRun) string {
	for n, mood := range []Mood{Honest, Empty, Lying, Lying, Hostile, Empty} {
		r.set(mood)
		if n == 5 { // results that are shortened although they failed, and one or both of those in a message
			r.pieces = append([]piece{{Calls: 2, Size: 2000}, {Calls: 2, Size: 2000}, {Calls: 2, Size: 3000, Joined: true}, {Calls: 2, Size: 5000, Joined: true}, {Calls: 2, Size: 5000, Joined: true}}, r.pieces...)
		}
		c := r.rich(true)
		if n == 3 {
			c.SummaryTokens = 60
		}
		calls := r.model.Calls()
		patches, text := r.run(c)
		if text == "" {
			text = r.legal(c, patches)
		}
		if text != "" {
			return text
		}
		if mood == Honest {
			if text := r.makers(patches, r.model.Calls() > calls); text != "" {
				return text
			}
		}
		if n != 3 { // where texts are small, not all has room
			if text := r.included(c, patches); text != "" {
				return text
			}
		}
		if text := cmp.Or(stubbed(c, patches), halved(c, patches)); text != "" {
			return text
		}
		for _, p := range patches {
			for _, rep := range p.Replace {
				if window.Blank(rep.Text) || !slices.Contains(summaryKinds, rep.Kind) {
					return fmt.Sprintf("a replacement of %d entries has text %.40q and kind %q, want one that shows something and one of %q", len(rep.Entries), rep.Text, rep.Kind, summaryKinds)
				}
			}
			for _, w := range p.Warnings {
				earlier := slices.ContainsFunc(c.Summaries, func(s core.Summary) bool { return strings.Contains(w, s.Text) })
				if len(marksIn(w)) > 0 || earlier || strings.Contains(w, c.Instructions) || r.model.repeated(w) {
					return fmt.Sprintf("a warning holds content: %.80q", w)
				}
			}
		}
	}
	return ""
}

func patchPublish(r *compactorRun) string {
	// Some publish the pieces of little more than a thousand tokens.
	some := make([]piece, 8)
	for i := range some {
		some[i].Size = 500
	}
	for _, pieces := range [][]piece{r.pieces, some} {
		r.pieces = pieces
		c := r.task(true)
		if _, err := r.compactor.Compact(r.ctx(), c); err != nil {
			return fmt.Sprintf("Compact: error %v, want none", err)
		}
		if len(r.published) == 0 {
			continue
		}
		if text := r.refused(); text != "" {
			return text
		}
	}
	return ""
}

func patchInstructions(r *compactorRun) string {
	c := r.rich(true)
	calls := r.model.Calls()
	if _, text := r.run(c); text != "" {
		return text
	}
	if r.model.Calls() > calls && !r.model.heard(c.Instructions) {
		return fmt.Sprintf("the model was asked %d times, never with the wishes", r.model.Calls()-calls)
	}
	return ""
}

func patchConcurrent(r *compactorRun) string {
	if !r.compactor.OwnsCompaction() {
		return delegatesConcurrent(r)
	}
	return r.besides()
}

// besides asks for several patches one after the other and then at the same time.
func (r *compactorRun) besides() string {
	tasks := make([]core.Compaction, 4)
	want := make([][]core.Patch, len(tasks))
	for i := range tasks {
		c := r.rich(i%2 == 0)
		c.Session, c.Now = sessionOf(i), c.Now.Add(time.Duration(i)*time.Hour)
		c.Instructions, c.Request.Session = []string{richWish, otherWish, ""}[i%3], sessionOf(i)
		n := min(i, len(c.Entries)-1)
		for n > 0 && n < len(c.Entries) && r.groups[c.Entries[n].ID] == r.groups[c.Entries[n-1].ID] {
			n--
		}
		c.Entries, c.Cost, c.Left = c.Entries[n:], c.Cost[n:], 0
		c.Protected = min(c.Protected, len(c.Entries))
		for j := range c.Entries {
			saidFirst(&c.Entries[j], fmt.Sprintf("task %d: ", i))
		}
		tasks[i] = c
		var text string
		if want[i], text = r.answers(r.compactor, c); text != "" {
			return text
		}
	}
	return atOnce(len(tasks), func(i int) string {
		c := tasks[i]
		c.Count = yielding()
		got, text := r.answers(r.compactor, c)
		if text != "" {
			return "beside others: " + text
		}
		if d := r.otherTexts(got, want[i]); d != "" {
			return "Compact beside others: the patch's " + d
		}
		return ""
	})
}
