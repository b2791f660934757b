package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/samber/lo"

	"github.com/contextengine/contextengine/experiment/live"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// statusPage writes the report of a running experiment.
func (a *app) statusPage(out outFile, command string, st live.Status, weights map[string]string) error {
	sessions, turns := 0, 0
	for _, arm := range st.Arms {
		sessions += arm.Sessions
		turns += arm.Turns
	}
	names := lo.Map(st.Arms, func(arm live.Arm, _ int) string { return arm.Name })
	r := report.Report{
		Title:    fmt.Sprintf("A running experiment with %d arms", len(st.Arms)),
		Subtitle: strings.Join(names, ", ") + ": " + count(sessions, "session") + " with " + count(turns, "turn") + " so far.",
		Facts: []report.Fact{
			{Name: "Sessions", Value: strconv.Itoa(sessions)}, {Name: "In no arm", Value: strconv.Itoa(st.Unassigned)},
			{Name: "Program", Value: revision()}, {Name: "Command", Value: command},
		},
	}
	r.Sections = append(r.Sections, statusGlance(st, weights))
	metrics := statusMetrics(st)
	if len(metrics) > 0 {
		r.Sections = append(r.Sections, statusBars(st, names, metrics[0]))
	}
	r.Sections = append(r.Sections, statusVerdicts(st))
	for _, name := range metrics[min(len(metrics), 1):] {
		r.Sections = append(r.Sections, statusBars(st, names, name))
	}
	return a.writePage(out, r)
}

// statusMetrics are the metrics of an experiment: what people said first, then what a call costs, then the others.
func statusMetrics(st live.Status) []string {
	rank := func(m live.Metric) int {
		switch {
		case m.Outcome:
			return 0
		case m.Name == live.MetricCost:
			return 1
		}
		return 2
	}
	var all []live.Metric
	for _, arm := range st.Arms {
		all = append(all, arm.Metrics...)
	}
	slices.SortStableFunc(all, func(a, b live.Metric) int { return rank(a) - rank(b) })
	return lo.Uniq(lo.Map(all, func(m live.Metric, _ int) string { return m.Name }))
}

func metricIn(arm live.Arm, name string) (live.Metric, bool) {
	return lo.Find(arm.Metrics, func(m live.Metric) bool { return m.Name == name })
}

func statusGlance(st live.Status, weights map[string]string) report.Section {
	t := report.Table{
		Title: "At a glance", Caption: "Means over sessions, with 95 % intervals.",
		Columns: []report.Column{{Name: "Arm"}, {Name: "Weight"}, {Name: "Sessions"}, {Name: "Turns"}, {Name: "Messages"}},
	}
	metrics := statusMetrics(st)
	for _, name := range metrics {
		t.Columns = append(t.Columns, report.Column{Name: capital(name)})
	}
	for _, arm := range st.Arms {
		row := []report.Cell{report.Text(arm.Name), report.Text(dash(weights[arm.Name], weights[arm.Name] != "")), report.Count(arm.Sessions), report.Count(arm.Turns), report.Count(arm.Messages)}
		for _, name := range metrics {
			m, ok := metricIn(arm, name)
			if !ok {
				row = append(row, report.Number(math.NaN(), 0))
				continue
			}
			row = append(row, report.Estimate(estimated(m), 2))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// estimated is the mean of a metric, with its interval where there is one.
func estimated(m live.Metric) report.Value {
	if m.Basis == "" {
		return report.Value{Value: m.Mean}
	}
	return report.Value{Value: m.Mean, Low: m.Low, High: m.High}
}

func statusBars(st live.Status, names []string, metric string) report.Section {
	b := report.BarChart{Title: capital(metric), Caption: "n counts the sessions of the largest arm; the whiskers are 95 % intervals over sessions.", Label: metric, Arms: names}
	g := report.BarGroup{Name: "all sessions"}
	for _, arm := range st.Arms {
		v := report.Value{Value: math.NaN()}
		if m, ok := metricIn(arm, metric); ok {
			v = estimated(m)
			g.Count = max(g.Count, m.N)
		}
		g.Values = append(g.Values, v)
	}
	b.Groups = []report.BarGroup{g}
	return b
}

// statusVerdicts says what differs, what is shown first.
func statusVerdicts(st live.Status) report.Section {
	v := report.Verdicts{Title: "What differs", Caption: "Arms are not paired: each session belongs to one."}
	for _, d := range st.Differences {
		if d.Decision.Shown() {
			v.Items = append(v.Items, report.Verdict{Text: capital(d.Metric) + ": " + minus(d.Verdict) + ".", Detail: d.To + " against " + d.From + ".", Tone: toneOf(d.Decision)})
		}
	}
	for _, arm := range st.Arms { // what is undecided is told together
		var open []string
		from := ""
		for _, d := range st.Differences {
			if d.To == arm.Name && !d.Decision.Shown() {
				open, from = append(open, d.Metric+": "+reason(d.Verdict)), d.From
			}
		}
		if len(open) > 0 {
			v.Items = append(v.Items, report.Verdict{Text: fmt.Sprintf("No difference shown: %s against %s.", arm.Name, from), Detail: capital(strings.Join(open, "; ")) + ".", Tone: report.Undecided})
		}
	}
	if len(v.Items) == 0 {
		v.Items = append(v.Items, report.Verdict{Text: fmt.Sprintf("Nothing to compare yet: %d sessions of each arm are needed.", stats.Fewest), Tone: report.Undecided})
	}
	return v
}
