package cli

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// pageVerdicts is from how many verdicts on a report leaves out those that show no difference.
const pageVerdicts = 16

// verdicts says what follows from the figures, what casts doubt on them first.
func (p *evaluationPage) verdicts() report.Section {
	v := report.Verdicts{Title: "What was found"}
	for _, arm := range p.Arms {
		v.Items = append(v.Items, troubles(arm)...)
	}
	if len(p.good) == 0 {
		return v
	}
	g := p.good[0].Groups[0]
	v.Caption = fmt.Sprintf("%s of %q. %s", many(g.Questions, "question"), words(g.Name), basis(g))
	if len(p.Comparisons) == 0 {
		v.Items = append(v.Items, p.findings(p.good[0])...)
		return v
	}
	v.Caption += " Compared with " + p.good[0].Name + ", question by question."
	var items []report.Verdict
	shown, alike := 0, 0
	for _, c := range p.Comparisons {
		if c.Group != g.Name || !slices.Contains(p.names, c.Measure) {
			continue
		}
		shown++
		items = append(items, p.verdict(c))
	}
	if len(items) > pageVerdicts {
		items = slices.DeleteFunc(items, func(i report.Verdict) bool {
			if i.Tone == report.Undecided {
				alike++
			}
			return i.Tone == report.Undecided
		})
	}
	v.Items = append(v.Items, items...)
	if alike > 0 {
		v.Items = append(v.Items, report.Verdict{Text: fmt.Sprintf("%s of %d show no difference.", count(alike, "other comparison"), shown), Tone: report.Undecided})
	}
	if shown > 10 {
		v.Items = append(v.Items, report.Verdict{
			Text:   fmt.Sprintf("Of %s without any difference about one in twenty is shown as one.", count(shown, "comparison")),
			Detail: "Check what a sweep finds on data that it did not see.", Tone: report.Warning,
		})
	}
	for _, o := range p.Orders {
		if o.Same == o.Of {
			v.Items = append(v.Items, report.Verdict{Text: fmt.Sprintf("%s and %s rank alike: the same candidates in the same order for all of %s.", o.Base, o.Other, many(o.Of, "question"))})
		}
	}
	return v
}

// verdict is one comparison in words, with both figures.
func (p *evaluationPage) verdict(c recall.Comparison) report.Verdict {
	at := slices.IndexFunc(p.Measures, func(m recall.Measure) bool { return m.Name == c.Measure })
	of := func(name string) string {
		i := slices.IndexFunc(p.good, func(a recall.ArmResult) bool { return a.Name == name })
		return stats.Points(p.good[i].Groups[0].Measures[at].Recall.Mean) + " %"
	}
	return report.Verdict{
		Text: sentence(minus(c.Verdict)), Detail: fmt.Sprintf("%s: %s finds %s, %s %s.", sentence(measureName(p.Measures[at])), c.Other, of(c.Other), c.Base, of(c.Base)), Tone: toneOf(c.Decision),
	}
}

// sentence begins with a capital where it begins with one of our words. Names of configurations stay as they are.
func sentence(s string) string {
	for from, to := range map[string]string{"no ": "No ", "nothing ": "Nothing ", "too ": "Too ", "among ": "Among ", "within ": "Within "} {
		if len(s) > len(from) && s[:len(from)] == from {
			return to + s[len(from):]
		}
	}
	return s
}

// findings says what one configuration found.
func (p *evaluationPage) findings(arm recall.ArmResult) []report.Verdict {
	var out []report.Verdict
	for _, m := range arm.Groups[0].Measures {
		if !slices.Contains(p.names, m.Name) || m.Recall.N == 0 {
			continue
		}
		text := fmt.Sprintf("%s %% of the evidence is found %s", stats.Points(m.Recall.Mean), measureName(m.Measure))
		if m.Recall.Basis != "" {
			text += fmt.Sprintf(", 95 %% %s to %s", stats.Points(m.Recall.Low), stats.Points(m.Recall.High))
		}
		out = append(out, report.Verdict{Text: text + ".", Detail: arm.Name})
	}
	return out
}

// troubles are what must be known before the figures of an arm are believed.
func troubles(arm recall.ArmResult) []report.Verdict {
	if arm.Error != "" {
		return []report.Verdict{{Text: arm.Name + " could not be measured.", Detail: arm.Error, Tone: report.Warning}}
	}
	var out []report.Verdict
	warn := func(detail, format string, args ...any) {
		out = append(out, report.Verdict{Text: arm.Name + ": " + fmt.Sprintf(format, args...), Detail: detail, Tone: report.Warning})
	}
	all := len(arm.Questions)
	detail := ""
	for _, w := range arm.Warnings {
		line := fmt.Sprintf("%s, %s", w.Text, countOf(w.Count, "time", "times"))
		if w.Example != "" {
			line += ", such as: " + w.Example
		}
		if detail != "" {
			detail += " · "
		}
		detail += line
	}
	switch {
	case arm.Degraded > 0:
		warn(detail, "degraded: %d of %s were answered without a part of the configuration. The figures are not those of all of it.", arm.Degraded, many(all, "question"))
	case detail != "":
		warn(detail, "a part gave a warning.")
	}
	if arm.Failed > 0 {
		at := slices.IndexFunc(arm.Questions, func(q recall.QuestionResult) bool { return q.Error != "" })
		example := ""
		if at >= 0 {
			example = arm.Questions[at].Error
		}
		warn(example, "%d of %s failed and count as nothing found.", arm.Failed, many(all, "question"))
	}
	if arm.Latency.Late > 0 {
		warn("recall.deadline in the configuration says how long that is.", "%d of %s took longer than the engine waits: live, their finds would be missing.", arm.Latency.Late, many(all, "question"))
	}
	return out
}
