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
			if own[i], text = r.ownText(of.messages, of.first); text != "" {
				return text
			}
		}
		for i, what := range []string{1: "more messages", 2: "messages since an earlier day"} {
			if i == 0 || own[i].Text == own[0].Text || own[i].Text == "" {
				continue
			}
			for place := range 2 {
				if text := r.includes(own[0], own[i], place); text != "" {
					return fmt.Sprintf("one of %s: %s", what, text)
				}
			}
		}
		return ""
	})
}

// ownText is the first text that a compactor makes of so many messages, all but the first of them said on the same day; empty where it made none.
func (r *compactorRun) ownText(messages int, first time.Time) (core.Summary, string) {
	r.pieces = make([]piece, messages)
	for i := range r.pieces {
		r.pieces[i].Size = 2
	}
	c := r.task(true)
	c.Protected, c.Target = 0, 1
	for i := range c.Entries {
		c.Entries[i].Time = epoch.AddDate(0, 0, -10)
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

// includes hands two earlier texts over, of which the one at a place is one of two, and compares what stands for them afterwards.
func (r *compactorRun) includes(one, other core.Summary, place int) string {
	tokens := max(one.Tokens, other.Tokens)
	var said [2][]string
	var counted [2]int
	for n, varied := range []core.Summary{one, other} {
		r.pieces = make([]piece, 18)
		for i := range r.pieces {
			r.pieces[i].Size = 60
		}
		c := r.task(true)
		c.Target, c.SummaryTokens = 1, 2000
		c.Summaries = []core.Summary{one, one}
		c.Summaries[place] = varied
		for i := range c.Summaries {
			c.Summaries[i].ID, c.Summaries[i].Tokens = fmt.Sprintf("S-own-%d", i), tokens
			c.Tokens += tokens
			counted[n] += c.Summaries[i].Covers
		}
		patches, text := r.answers(r.compactor, c)
		if text != "" {
			return text
		}
		ended := false
		for _, p := range patches {
			for _, rep := range p.Replace {
				said[n] = append(said[n], rep.Text)
				counted[n] += len(rep.Entries)
				ended = ended || slices.Contains(rep.Summaries, c.Summaries[place].ID)
			}
		}
		if !ended {
			return ""
		}
		if got := said[n][len(said[n])-1]; len(said[n]) == 1 && counts(one) && counts(other) && !slices.Contains(numbersIn(got), counted[n]) {
			return fmt.Sprintf("of kind \"note\", behind %q and %q, which it ends: %q, which is not the number of all messages, %d", c.Summaries[0].Text, c.Summaries[1].Text, got, counted[n])
		}
	}
	if slices.Equal(said[0], said[1]) {
		return fmt.Sprintf("summary %d of two is ended, and whether it says %.120q or %.120q, of %d and of %d messages, the text that includes it is the same: %.120q",
			place+1, one.Text, other.Text, one.Covers, other.Covers, said[1][len(said[1])-1])
	}
	return ""
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
