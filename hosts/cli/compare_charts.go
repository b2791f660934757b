package cli

import (
	"fmt"
	"math"
	"slices"

	"github.com/contextengine/contextengine/experiment/compare"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// compareChart is a metric that has a chart of its own.
type compareChart struct{ metric, title, caption string }

var compareCharts = []compareChart{
	{"fill", "How full prompts are", "Median share of the budget that a prompt uses, in conversations whose history exceeds it. More is better."},
	{"reuse all", "How much of a prompt stays", "Share of a prompt's history that the next prompt begins with, in conversations that exceed the budget: what a prompt cache can use again. More is better."},
	{"cost", "What prompts cost", "Cost of all prompts with a prompt cache, relative to none. Less is better."},
}

// metricOf returns a metric by its name.
func metricOf(name string) compare.Metric {
	all := compare.Metrics()
	return all[slices.IndexFunc(all, func(m compare.Metric) bool { return m.Name == name })]
}

// meaning says what a metric is without leaning on the one before it.
func meaning(m compare.Metric) string {
	switch m.Name {
	case "fill p10":
		return "10th percentile of the share of the budget that a prompt uses, once the history exceeds it"
	case "reuse all":
		return "share of a prompt's history that the next prompt begins with, in all calls"
	case "cost to sliding":
		return "cost of all prompts with a prompt cache, relative to a window that slides by a message at a time"
	}
	return m.Doc
}

// valueOf is a value of a metric in the unit that a report shows.
func valueOf(m compare.Metric, v compare.Value) report.Value {
	scale := 1.0
	if m.Unit == "share" {
		scale = 100
	}
	return report.Value{Value: v.Mean * scale, Low: v.Low * scale, High: v.High * scale}
}

// glance is the table that a report begins with: a line for each configuration and budget, with what people look for first, and what was decided about it.
func glance(c comparison) report.Section {
	metrics := []string{"fill", "reuse all", "cost", "recalled", "compactions", "model calls"}
	t := report.Table{
		Title: "At a glance", Caption: "Means over conversations. The last columns count what is shown to be better or worse than " + c.Arms[0] + ", of all metrics; below are the intervals.",
		Columns: []report.Column{{Name: "Budget", Unit: "tokens"}, {Name: "Configuration"}},
	}
	for _, name := range metrics {
		unit := map[string]string{"share": "%", "tokens": "tokens"}[metricOf(name).Unit]
		t.Columns = append(t.Columns, report.Column{Name: capital(name), Unit: unit})
	}
	t.Columns = append(t.Columns, report.Column{Name: "Better"}, report.Column{Name: "Worse"})
	for _, budget := range c.Budgets {
		for i, arm := range c.Arms {
			row := []report.Cell{report.Count(budget), report.Text(arm)}
			for _, name := range metrics {
				row = append(row, glanceCell(c, budget, name, arm))
			}
			if i == 0 {
				t.Rows = append(t.Rows, append(row, report.Number(math.NaN(), 0), report.Number(math.NaN(), 0)))
				continue
			}
			decided := make(map[stats.Decision]int)
			for _, d := range c.Differences {
				if d.Budget == budget && d.To == arm {
					decided[d.Decision]++
				}
			}
			t.Rows = append(t.Rows, append(row, report.Count(decided[stats.Better]), report.Count(decided[stats.Worse])))
		}
	}
	return t
}

func glanceCell(c comparison, budget int, metric, arm string) report.Cell {
	m := metricOf(metric)
	for _, v := range c.Values {
		if v.Budget == budget && v.Metric == metric && v.Arm == arm && v.N > 0 {
			return report.Number(valueOf(m, v).Value, map[string]int{"share": 1, "": 1}[m.Unit])
		}
	}
	return report.Number(math.NaN(), 0)
}

// bars shows one metric, with the budgets as groups.
func bars(c comparison, chart compareChart) report.Section {
	m := metricOf(chart.metric)
	b := report.BarChart{
		Title: chart.title, Caption: chart.caption + " n counts conversations; the whiskers are 95 % intervals over them.", Label: m.Name, Unit: "%", Arms: c.Arms,
	}
	for _, budget := range c.Budgets {
		g := report.BarGroup{Name: "budget " + thousands(budget)}
		for _, v := range c.Values {
			if v.Budget == budget && v.Metric == m.Name {
				g.Count = max(g.Count, v.Clusters)
				one := valueOf(m, v)
				if v.N == 0 {
					one.Value = math.NaN() // no conversation has one
				}
				g.Values = append(g.Values, one)
			}
		}
		b.Groups = append(b.Groups, g)
	}
	return b
}

// latency shows the first budget.
func latency(c comparison) report.Section {
	l := report.Latency{Title: "Time to assemble a prompt", Caption: fmt.Sprintf("At a budget of %s tokens: the median and the 95th percentile of a conversation's calls, each a mean over conversations.", thousands(c.Budgets[0]))}
	for _, arm := range c.Arms {
		one := report.ArmLatency{Arm: arm}
		for _, v := range c.Values {
			if v.Budget == c.Budgets[0] && v.Arm == arm {
				switch v.Metric {
				case "assemble p50":
					one.P50 = v.Mean
				case "assemble p95":
					one.P95 = v.Mean
				}
			}
		}
		l.Arms = append(l.Arms, one)
	}
	return l
}

func figuresTable(c comparison) report.Section {
	t := report.Table{
		Title: "All figures", Caption: "Means over conversations, with 95 % intervals. Some metrics exist only where the history exceeds the budget.",
		Columns: []report.Column{{Name: "Budget", Unit: "tokens"}, {Name: "Metric"}, {Name: "Configuration"}, {Name: "Mean"}, {Name: "Conversations"}},
	}
	for _, v := range c.Values {
		if v.N == 0 {
			continue
		}
		m := metricOf(v.Metric)
		name, decimals := m.Name, 2
		switch m.Unit {
		case "share":
			name, decimals = m.Name+" (%)", 1
		case "tokens":
			name, decimals = m.Name+" (tokens)", 0
		case "ms":
			name = m.Name + " (ms)"
		}
		t.Rows = append(t.Rows, []report.Cell{report.Count(v.Budget), report.Text(name), report.Text(v.Arm), report.Estimate(valueOf(m, v), decimals), report.Count(v.Clusters)})
	}
	return t
}

func identifierSections(c comparison) []report.Section {
	b := report.BarChart{Title: "Identifiers that survive a compaction", Caption: "Share of the identifiers used later that the prompt still says, byte for byte. n counts identifiers. More is better.", Label: "survived", Unit: "%"}
	t := report.Table{Title: "What a compaction keeps", Columns: []report.Column{
		{Name: "Asked to keep", Unit: "%"}, {Name: "Configuration"}, {Name: "Kept", Unit: "% of tokens"}, {Name: "Survived", Unit: "%"}, {Name: "Without the index", Unit: "%"}, {Name: "Index", Unit: "% of tokens"}}}
	for _, s := range c.Identifiers {
		if !slices.Contains(b.Arms, s.Arm) {
			b.Arms = append(b.Arms, s.Arm)
		}
		name := "asked to keep " + percent(s.Keep)
		if n := len(b.Groups); n == 0 || b.Groups[n-1].Name != name {
			b.Groups = append(b.Groups, report.BarGroup{Name: name, Count: s.Needed})
		}
		g := &b.Groups[len(b.Groups)-1]
		g.Values = append(g.Values, report.Value{Value: 100 * s.Survived, Low: 100 * s.Survived, High: 100 * s.Survived})
		t.Rows = append(t.Rows, []report.Cell{
			report.Number(100*s.Keep, 0), report.Text(s.Arm), report.Number(100*s.Kept, 1), report.Number(100*s.Survived, 1), report.Number(100*s.Bare, 1), report.Number(100*s.Index, 1),
		})
	}
	return []report.Section{b, t}
}
