package cli

import (
	"fmt"
	"strings"

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
	for _, d := range c.Differences {
		if d.Difference.N == 0 || d.Difference.Mean == 0 && d.Difference.Low == 0 && d.Difference.High == 0 {
			continue
		}
		m := metricOf(d.Metric)
		if tone := toneOf(d.Difference, d.Better); tone != report.Undecided {
			v.Items = append(v.Items, report.Verdict{
				Text: capital(m.Name) + ": " + minus(d.Verdict) + ".", Tone: tone,
				Detail: fmt.Sprintf("%s. %s in %s, at a budget of %s tokens.", capital(meaning(m)), against(c, m, d), count(d.Difference.Clusters, "conversation"), thousands(d.Budget)),
			})
			continue
		}
		if d.Difference.Clusters < 2 {
			undecided(fmt.Sprintf("%s at a budget of %s tokens, as one conversation is too few to tell", d.To, thousands(d.Budget)), fmt.Sprintf("%s %s more", m.Name, m.Format(d.Difference.Mean)))
			continue
		}
		undecided(fmt.Sprintf("%s at a budget of %s tokens", d.To, thousands(d.Budget)), fmt.Sprintf("%s (%s)", m.Name, reason(d.Verdict)))
	}
	for _, s := range c.Identifiers {
		switch {
		case s.Verdict == "":
		case s.Difference.ExcludesZero():
			better := 1
			if s.Difference.Mean < 0 {
				better = -1
			}
			v.Items = append(v.Items, report.Verdict{
				Text: "Identifiers that survive a compaction: " + minus(s.Verdict) + ".", Detail: fmt.Sprintf("%s, asked to keep %s of the tokens.", s.Arm, percent(s.Keep)), Tone: toneOf(s.Difference, better),
			})
		default:
			undecided(s.Arm+" after a compaction", fmt.Sprintf("identifiers when asked to keep %s (%s)", percent(s.Keep), reason(s.Verdict)))
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

// against gives both figures of a difference. A conversation that only one of the two has a figure for makes them differ by more or less than the difference.
func against(c comparison, m compare.Metric, d compare.Difference) string {
	of := func(arm string) string {
		for _, v := range c.Values {
			if v.Budget == d.Budget && v.Metric == d.Metric && v.Arm == arm {
				return m.Format(v.Mean)
			}
		}
		return "?"
	}
	return fmt.Sprintf("%s has %s, %s %s", d.To, of(d.To), d.From, of(d.From))
}

// reason is what a verdict that shows nothing rests on.
func reason(verdict string) string {
	verdict = strings.TrimPrefix(verdict, "no difference: ")
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

func toneOf(d stats.Interval, better int) report.Tone {
	switch {
	case better > 0:
		return report.Better
	case better < 0:
		return report.Worse
	case d.ExcludesZero():
		return report.Neutral
	}
	return report.Undecided
}
