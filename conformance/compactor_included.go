package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/contextengine/contextengine/core"
)

// includingChecks look at what becomes of a compactor's own texts.
func includingChecks() []Check {
	return []Check{
		{ID: "patch.included", Suite: SuiteCompactor, compactor: patchIncluded, Needs: []Need{NeedOwner}, once: true,
			Rule: "a text that ends earlier ones of the compactor includes what each of them says, how many messages it stands for and since when, as the first one said it"},
	}
}

// fewOwn and manyOwn are how many messages earlier texts stand for: numbers with as many digits that no time of day has.
const (
	fewOwn  = 71
	manyOwn = 94
)

// patchIncluded hands a compactor its own texts back, as earlier summaries that differ in one thing: what is made of two that differ must differ, wherever one stands.
func patchIncluded(r *compactorRun) string {
	return r.inMoods(func() string {
		since := epoch.AddDate(0, 0, -20)
		var own [3]core.Summary
		for i, of := range []struct {
			messages int
			first    time.Time
		}{{fewOwn, since}, {manyOwn, since}, {fewOwn, since.AddDate(0, 0, -40)}} {
			var text string
			if own[i], text = r.ownText(of.messages, of.first, ""); text != "" {
				return text
			}
		}
		for i, what := range []string{1: "more messages", 2: "messages since an earlier day"} {
			if i == 0 || own[i].Text == own[0].Text || own[i].Text == "" {
				continue
			}
			for place := range 2 {
				if text := r.includes([]core.Summary{own[0], own[0]}, own[i], place, scarce); text != "" {
					return fmt.Sprintf("one of %s: %s", what, text)
				}
			}
		}
		return inTurn(func() string { return r.givenBack(own[0], own[1]) }, r.manyIncluded)
	})
}

// ownText is the first text that a compactor makes of so many messages, all but the first of them said on the same day, each behind the same words; empty where it made none.
func (r *compactorRun) ownText(messages int, first time.Time, words string) (core.Summary, string) {
	r.pieces = make([]piece, messages)
	for i := range r.pieces {
		r.pieces[i].Size = 2
		if words != "" { // of a few something is said
			r.pieces[i].Size = 40
		}
	}
	c := r.task(true)
	c.Protected, c.Target = 0, 1
	for i := range c.Entries {
		c.Entries[i].Time = epoch.AddDate(0, 0, -10)
		if words != "" {
			saidFirst(&c.Entries[i], words)
		}
	}
	c.Entries[0].Time = first
	patches, text := r.answers(r.compactor, c)
	if text != "" {
		return core.Summary{}, text
	}
	made := r.publish(c, patches, 0).Summaries
	if len(made) == 0 {
		return core.Summary{}, ""
	}
	return made[0], ""
}

// room is what is left for texts that include earlier ones.
type room int

const (
	// scarce room makes a compactor put together whatever it can.
	scarce room = iota
	// ample room is enough for all that the earlier ones say.
	ample
)

// including is what became of earlier texts.
type including struct {
	earlier []core.Summary
	patches []core.Patch
	// said are the texts that stand there now, counted is how many messages all of it stands for.
	said    []string
	counted int
}

// ends reports whether the earlier text at a place has ended.
func (i including) ends(place int) bool {
	return slices.ContainsFunc(i.patches, func(p core.Patch) bool {
		return slices.ContainsFunc(p.Replace, func(rep core.Replacement) bool { return slices.Contains(rep.Summaries, i.earlier[place].ID) })
	})
}

// behind hands earlier texts over, with messages behind them.
func (r *compactorRun) behind(earlier []core.Summary, tokens int, has room) (including, string) {
	r.pieces = make([]piece, 18)
	for i := range r.pieces {
		r.pieces[i].Size = 60
	}
	c := r.task(true)
	out := including{earlier: slices.Clone(earlier)}
	for i := range out.earlier {
		s := &out.earlier[i]
		s.ID, s.Tokens = fmt.Sprintf("S-own-%d", i), tokens
		c.Tokens += tokens
		out.counted += s.Covers
	}
	c.Summaries = slices.Clone(out.earlier)
	if c.Target, c.SummaryTokens = 1, 2000; has == ample {
		c.Target, c.SummaryTokens = c.Tokens/2, max(2000, 4*tokens*len(earlier))
	}
	var text string
	if out.patches, text = r.answers(r.compactor, c); text != "" {
		return out, text
	}
	for _, p := range out.patches {
		for _, rep := range p.Replace {
			out.said = append(out.said, rep.Text)
			out.counted += len(rep.Entries)
		}
	}
	return out, ""
}

// includes hands earlier texts over, and once more with another one at a place, and compares what stands for them afterwards.
func (r *compactorRun) includes(earlier []core.Summary, other core.Summary, place int, has room) string {
	one, tokens := earlier[place], other.Tokens
	for _, s := range earlier {
		tokens = max(tokens, s.Tokens)
	}
	var of [2]including
	for n, varied := range []core.Summary{one, other} {
		these := slices.Clone(earlier)
		these[place] = varied
		var text string
		if of[n], text = r.behind(these, tokens, has); text != "" || !of[n].ends(place) {
			return text
		}
		said := of[n].said
		if got := said[len(said)-1]; len(said) == 1 && !slices.ContainsFunc(these, func(s core.Summary) bool { return !counts(s) }) && !slices.Contains(numbersIn(got), of[n].counted) {
			return fmt.Sprintf("of kind \"note\", behind %d that it ends, the first %q and the last %q: %q, which is not the number of all messages, %d", len(these), these[0].Text, these[len(these)-1].Text, got, of[n].counted)
		}
	}
	if slices.Equal(of[0].said, of[1].said) {
		return fmt.Sprintf("summary %d of %d is ended, and whether it says %.120q or %.120q, of %d and of %d messages, the text that includes it is the same: %.120q",
			place+1, len(earlier), one.Text, other.Text, one.Covers, other.Covers, of[1].said[len(of[1].said)-1])
	}
	return ""
}

// givenBack hands a text over of which the newest messages were given back to the window since: it says how many it was made of, and stands for fewer. Whether what includes
// it counts messages at all shows where nothing was given back.
func (r *compactorRun) givenBack(few, many core.Summary) string {
	const newest = 18
	less := few
	less.Covers -= newest
	tokens := max(few.Tokens, many.Tokens)
	for _, last := range []core.Summary{few, many, less} {
		got, text := r.behind([]core.Summary{few, last}, tokens, scarce)
		if text != "" || !got.ends(0) || !got.ends(1) {
			return text
		}
		counted := slices.ContainsFunc(got.said, func(s string) bool { return slices.Contains(numbersIn(s), got.counted) })
		switch {
		case counted:
		case last.Covers != less.Covers: // it counts none, or in another way
			return ""
		default:
			return fmt.Sprintf("one that was made of %d messages, of which %d are in the window again: %q includes it, and does not say %d, which is how many it stands for", few.Covers, newest,
				got.said[len(got.said)-1], got.counted)
		}
	}
	return ""
}

// fewWords is how many messages each of the many texts is made of.
const fewWords = 3

// manyIncluded hands over one text of the compactor's own, and several, of which each says something else.
func (r *compactorRun) manyIncluded() string {
	const most = 7
	own, text := r.ownTexts(most + 1)
	if text != "" || len(own) == 0 {
		return text
	}
	other := own[most]
	if other.Text == own[0].Text { // it does not say what messages do
		if other, text = r.ownText(fewWords, epoch.AddDate(0, 0, -60), subject(most)); text != "" || other.Text == own[0].Text {
			return text
		}
	}
	for _, n := range []int{1, 3, most} {
		for _, place := range slices.Compact([]int{0, n / 2, n - 1}) {
			if text := r.includes(own[:n], other, place, ample); text != "" {
				return text
			}
		}
	}
	return ""
}

// subject are words that only the nth of many texts is about.
func subject(n int) string {
	return fmt.Sprintf("%s: about %s ", markOf(earlierMarks, n), markOf(earlierMarks+1, n))
}

// ownTexts are n texts of a compactor, each of a few messages that are about something else; none where it made none of one of them.
func (r *compactorRun) ownTexts(n int) ([]core.Summary, string) {
	out := make([]core.Summary, n)
	for i := range out {
		var text string
		if out[i], text = r.ownText(fewWords, epoch.AddDate(0, 0, -20), subject(i)); text != "" || out[i].Text == "" {
			return nil, text
		}
	}
	return out, ""
}

var numberPattern = regexp.MustCompile(`[0-9]+`)

// numbersIn are the numbers that a text holds.
func numbersIn(text string) []int {
	var out []int
	for _, s := range numberPattern.FindAllString(text, -1) {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// counts reports whether a note says how many entries it stands for.
func counts(s core.Summary) bool {
	return s.Kind == "note" && slices.Contains(numbersIn(s.Text), s.Covers)
}
