package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/report"
)

// recalls is the table of all recalls.
func (p *evaluationPage) recalls() report.Section {
	t := report.Table{
		Title: "Every recall", Caption: "With 95 % intervals. Answer words are those of the gold answers that stand in what was packed.",
		Columns: []report.Column{
			{Name: "Configuration"}, {Name: "Questions about"}, {Name: "Questions"}, {Name: "Measure"}, {Name: "Evidence recall", Unit: "%"},
			{Name: "Answer words", Unit: "%"}, {Name: "Packed", Unit: "tokens"},
		},
	}
	for _, arm := range p.good {
		for _, g := range arm.Groups {
			for _, m := range g.Measures {
				answer, packed := report.Number(math.NaN(), 0), report.Number(math.NaN(), 0)
				if m.AnswerTokens != nil {
					answer = report.Estimate(points(*m.AnswerTokens), 1)
				}
				name := m.Name
				if m.Kind == recall.ByBudget {
					packed, name = report.Number(m.Packed, 0), m.Name+" tokens"
				}
				t.Rows = append(t.Rows, []report.Cell{
					report.Text(arm.Name), report.Text(words(g.Name)), report.Count(g.Questions), report.Text(name), report.Estimate(points(m.Recall), 1), answer, packed,
				})
			}
		}
	}
	return t
}

// costs is the table of what the configurations cost, with a column for each key that a sweep set.
func (p *evaluationPage) costs() report.Section {
	t := report.Table{Title: "Every configuration", Columns: []report.Column{{Name: "Configuration"}}}
	var keys []string
	for _, arm := range p.good {
		for key := range arm.Settings {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		t.Columns = append(t.Columns, report.Column{Name: key})
	}
	var at []int
	for i, m := range p.Measures {
		if slices.Contains(p.names, m.Name) {
			at = append(at, i)
			t.Columns = append(t.Columns, report.Column{Name: m.Name, Unit: "%"})
		}
	}
	t.Columns = append(t.Columns, []report.Column{
		{Name: "p50", Unit: "ms"}, {Name: "p95", Unit: "ms"}, {Name: "First call", Unit: "ms"}, {Name: "Late calls"},
		{Name: "Store", Unit: "MB"}, {Name: "Indexes", Unit: "MB"}, {Name: "Import", Unit: "s"}, {Name: "Degraded"}, {Name: "Failed"},
	}...)
	for _, arm := range p.good {
		row := []report.Cell{report.Text(arm.Name)}
		for _, key := range keys {
			row = append(row, setting(arm.Settings[key]))
		}
		for _, i := range at {
			row = append(row, report.Estimate(points(arm.Groups[0].Measures[i].Recall), 1))
		}
		t.Rows = append(t.Rows, append(row, report.Number(arm.Latency.P50, 2), report.Number(arm.Latency.P95, 2), report.Number(arm.Latency.Cold, 1), report.Count(arm.Latency.Late),
			report.Number(megabytes(stored(arm.Index)), 1), report.Number(megabytes(arm.Index.Memory), 1), report.Number(arm.Index.ImportSeconds, 2),
			report.Count(arm.Degraded), report.Count(arm.Failed)))
	}
	t.Caption = fmt.Sprintf("Recall of %q. Late calls took longer than the engine would have waited; during degraded questions a part went on without another; failed ones count as nothing found.", p.good[0].Groups[0].Name)
	return t
}

// setting is a value of a sweep, sorted as a number where it is one.
func setting(text string) report.Cell {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return report.Text(text)
	}
	_, frac, _ := strings.Cut(text, ".")
	return report.Number(v, len(frac))
}

// troubled reports whether something casts doubt on the figures.
func (p *evaluationPage) troubled() bool {
	return slices.ContainsFunc(p.Arms, func(a recall.ArmResult) bool { return len(troubles(a)) > 0 })
}

// glance is the table that a report of several configurations begins with: a line for each, with the measures that get verdicts.
func (p *evaluationPage) glance() report.Section {
	g := p.good[0].Groups[0]
	t := report.Table{Title: "At a glance", Caption: fmt.Sprintf("%s of %q. %s", many(g.Questions, "question"), words(g.Name), basis(g)), Columns: []report.Column{{Name: "Configuration"}}}
	for _, name := range p.names {
		t.Columns = append(t.Columns, report.Column{Name: name, Unit: "%"})
	}
	for _, arm := range p.good {
		row := []report.Cell{report.Text(arm.Name)}
		for _, name := range p.names {
			at := slices.IndexFunc(p.Measures, func(m recall.Measure) bool { return m.Name == name })
			row = append(row, report.Estimate(points(arm.Groups[0].Measures[at].Recall), 1))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
