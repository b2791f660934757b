package cli

import (
	"fmt"
	"strings"

	"github.com/samber/lo"

	"github.com/contextengine/contextengine/experiment/compare"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// verdicts says what differs, the differences that are shown first.
func verdicts(c comparison) report.Section {
	v := report.Verdicts{Title: "What differs", Caption: "Compared with " + c.Arms[0] + ", conversation by conversation; 95 % intervals over conversations."}
	v.Items = append(v.Items, unfinished(c)...)
	n := len(v.Items)
	open := make(map[string][]string) // what is undecided, by where
	var places []string
	undecided := func(place, what string) {
		if len(open[place]) == 0 {
			places = append(places, place)
		}
		open[place] = append(open[place], what)
	}
	type place struct {
		metric   string
		budget   int
		decision stats.Decision
	}
	shownAt := make(map[place][]compare.Difference)
	for _, d := range c.Differences {
		if d.Difference.Zero() || d.Difference.N == 0 {
			continue
		}
		m := metricOf(d.Metric)
		if !d.Decision.Shown() {
			undecided(fmt.Sprintf("%s at a budget of %s tokens", d.To, thousands(d.Budget)), fmt.Sprintf("%s: %s", m.Name, reason(d.Verdict)))
			continue
		}
		shownAt[place{d.Metric, d.Budget, d.Decision}] = append(shownAt[place{d.Metric, d.Budget, d.Decision}], d)
	}
	for _, d := range c.Differences {
		at := place{d.Metric, d.Budget, d.Decision}
		if group := shownAt[at]; len(group) > 0 {
			v.Items = append(v.Items, differing(c, group))
			delete(shownAt, at) // they are told together, where the first of them stands
		}
	}
	for _, s := range c.Identifiers {
		switch {
		case s.Verdict == "" || s.Difference.Zero():
		case s.Decision.Shown():
			v.Items = append(v.Items, report.Verdict{
				Text: "Identifiers that survive a compaction: " + minus(s.Verdict) + ".", Detail: fmt.Sprintf("%s, asked to keep %s of the tokens.", s.Arm, percent(s.Keep)), Tone: toneOf(s.Decision),
			})
		default:
			undecided(s.Arm+" after a compaction", fmt.Sprintf("identifiers when asked to keep %s: %s", percent(s.Keep), reason(s.Verdict)))
		}
	}
	shown := len(v.Items) > n
	for _, place := range places {
		v.Items = append(v.Items, report.Verdict{Text: "No difference shown: " + place + ".", Detail: minus(capital(strings.Join(open[place], "; "))) + ".", Tone: report.Undecided})
	}
	if !shown && len(places) == 0 {
		v.Items = append(v.Items, report.Verdict{Text: "No difference: the same in every figure.", Tone: report.Undecided})
	}
	return v
}

// unfinished says which replays are not among the figures.
func unfinished(c comparison) []report.Verdict {
	failed, first := 0, ""
	for _, r := range c.Reports {
		if r.Error != "" {
			if failed++; first == "" {
				first = fmt.Sprintf("%s under %s: %s", r.Session, r.Arm, r.Error)
			}
		}
	}
	if failed == 0 {
		return nil
	}
	return []report.Verdict{{
		Text:   fmt.Sprintf("%d of %s could not be finished and are left out of the figures.", failed, count(len(c.Reports), "replay")),
		Detail: "Such as " + first, Tone: report.Warning,
	}}
}

// differing tells differences of one metric at one budget that go the same way.
func differing(c comparison, group []compare.Difference) report.Verdict {
	d, m := group[0], metricOf(group[0].Metric)
	of := func(arm string) string {
		for _, v := range c.Values {
			if v.Budget == d.Budget && v.Metric == d.Metric && v.Arm == arm {
				return m.Format(v.Mean)
			}
		}
		return "?"
	}
	over := fmt.Sprintf("in %s, at a budget of %s tokens", count(d.Difference.Clusters, "conversation"), thousands(d.Budget))
	if len(group) == 1 {
		return report.Verdict{
			Text: capital(m.Name) + ": " + minus(d.Verdict) + ".", Tone: toneOf(d.Decision),
			Detail: fmt.Sprintf("%s. %s has %s, %s %s %s.", capital(meaning(m)), d.To, of(d.To), d.From, of(d.From), over),
		}
	}
	word := map[stats.Decision]string{stats.Better: "better than", stats.Worse: "worse than"}[d.Decision]
	if word == "" {
		word = "not like"
	}
	each := lo.Map(group, func(d compare.Difference, _ int) string {
		return fmt.Sprintf("%s has %s, %s", d.To, of(d.To), minus(d.Verdict))
	})
	return report.Verdict{
		Text: fmt.Sprintf("%s: %d configurations are %s %s.", capital(m.Name), len(group), word, d.From), Tone: toneOf(d.Decision),
		Detail: fmt.Sprintf("%s. %s has %s %s; %s.", capital(meaning(m)), d.From, of(d.From), over, strings.Join(each, "; ")),
	}
}

// reason is what a verdict that shows nothing rests on.
func reason(verdict string) string {
	if _, in, ok := strings.Cut(verdict, "no difference shown ("); ok {
		verdict = strings.TrimSuffix(in, ")")
	}
	return minus(verdict)
}

// minus writes negative numbers with the sign that is as wide as a plus.
func minus(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(" "+s, " -", " \u2212"))
	return strings.ReplaceAll(s, "(-", "(\u2212")
}

// capital begins a sentence.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// toneOf shows a decision, and nothing stronger.
func toneOf(d stats.Decision) report.Tone {
	switch d {
	case stats.Better:
		return report.Better
	case stats.Worse:
		return report.Worse
	case stats.Differs:
		return report.Neutral
	}
	return report.Undecided
}
