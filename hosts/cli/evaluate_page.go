package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// pageArms is how many configurations the charts of a report show; more cannot be told apart. Its tables show all.
const pageArms = 6

// evaluatePage writes the report of an evaluation.
func (a *app) evaluatePage(f evaluateFlags, command string, r *recall.Result) error {
	p := evaluationPage{Result: r, names: f.measures}
	for _, arm := range r.Arms {
		if arm.Error == "" {
			p.good = append(p.good, arm)
		}
	}
	page := report.Report{
		Title: "Recall on " + r.Dataset.Name,
		Subtitle: fmt.Sprintf("%s, asked %s about %s: how much of what answers them is found, at what cost.",
			count(len(r.Arms), "configuration"), many(r.Dataset.Questions, "question"), count(r.Dataset.Conversations, "conversation")),
		Facts: []report.Fact{
			{Name: "Data set", Value: fmt.Sprintf("%s (%s, %s)", r.Dataset.Name, r.Dataset.Format, many(r.Dataset.Messages, "message"))},
			{Name: "Conversations", Value: strconv.Itoa(r.Dataset.Conversations)}, {Name: "Questions", Value: thousands(r.Dataset.Questions)},
			{Name: "Seed", Value: strconv.FormatUint(r.Protocol.Seed, 10)}, {Name: "Program", Value: revision()}, {Name: "Command", Value: command},
		},
	}
	// What a person takes in first, then what it rests on. Trouble goes before everything.
	if len(p.good) > 1 && !p.troubled() {
		p.choose()
		page.Sections = append(page.Sections, p.glance(), p.curve(recall.ByBudget), p.verdicts(), p.curve(recall.ByDepth))
	} else {
		page.Sections = append(page.Sections, p.verdicts())
		if len(p.good) > 0 {
			p.choose()
			page.Sections = append(page.Sections, p.curve(recall.ByBudget), p.curve(recall.ByDepth))
		}
	}
	if len(p.good) > 0 {
		page.Sections = append(page.Sections, p.categories()...)
		page.Sections = append(page.Sections, p.latency(), p.sizes(), p.recalls(), p.costs())
	}
	page.Sections = append(page.Sections, p.method())
	return a.writePage(f.out("--html", f.html), page)
}

// evaluationPage makes the sections of a report.
type evaluationPage struct {
	*recall.Result
	// names are the measures with a verdict.
	names []string
	// good are the arms that were measured, shown those among them that the charts show.
	good, shown []recall.ArmResult
}

// choose picks what the charts show: where there are many arms the first, which the others are compared with, and the best.
func (p *evaluationPage) choose() {
	if p.shown = p.good; len(p.good) <= pageArms {
		return
	}
	at := p.measured(recall.ByDepth, recall.ByBudget)
	best := slices.Clone(p.good[1:])
	slices.SortStableFunc(best, func(a, b recall.ArmResult) int {
		x, y := a.Groups[0].Measures[at].Recall.Mean, b.Groups[0].Measures[at].Recall.Mean
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	p.shown = append([]recall.ArmResult{p.good[0]}, best[:pageArms-1]...)
}

// few says which arms a chart shows, if not all.
func (p *evaluationPage) few() string {
	if len(p.shown) == len(p.good) {
		return ""
	}
	return fmt.Sprintf(" Shown are the first configuration and the best %d of the other %d by %s; the tables have all.",
		pageArms-1, len(p.good)-1, p.Measures[p.measured(recall.ByDepth, recall.ByBudget)].Name)
}

// measured returns the place of a measure of one of the kinds: the first of those with a verdict, else the first there is, else -1.
func (p *evaluationPage) measured(kinds ...string) int {
	of := func(m recall.Measure) bool { return slices.Contains(kinds, m.Kind) }
	if at := slices.IndexFunc(p.Measures, func(m recall.Measure) bool { return of(m) && slices.Contains(p.names, m.Name) }); at >= 0 {
		return at
	}
	return slices.IndexFunc(p.Measures, of)
}

// measureName says in words what recall is measured at.
func measureName(m recall.Measure) string {
	if m.Kind == recall.ByBudget {
		return fmt.Sprintf("within %s tokens", thousands(m.At))
	}
	return fmt.Sprintf("among the first %s candidates", thousands(m.At))
}

// thousands writes a number as the figures of a report have it, with thin spaces that do not break.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// many is count with thousands set apart.
func many(n int, noun string) string {
	return thousands(n) + strings.TrimPrefix(count(n, noun), strconv.Itoa(n))
}

// basis says what the intervals of a group are over.
func basis(g recall.GroupResult) string {
	if len(g.Measures) == 0 {
		return ""
	}
	switch i := g.Measures[0].Recall; i.Basis {
	case stats.OverConversations:
		return fmt.Sprintf("95 %% intervals over %s.", count(i.Clusters, "conversation"))
	case stats.OverQuestions:
		return "95 % intervals over the questions of one conversation: they say nothing about others."
	}
	return "Too few questions for intervals."
}

// points is an interval in percent.
func points(i stats.Interval) report.Value {
	if i.N == 0 {
		return report.Value{Value: math.NaN()}
	}
	return report.Value{Value: 100 * i.Mean, Low: 100 * i.Low, High: 100 * i.High}
}

// curve shows recall at all budgets or depths.
func (p *evaluationPage) curve(kind string) report.Section {
	g := p.good[0].Groups[0]
	c := report.LineChart{
		Title: "Recall against budget", XLabel: "tokens packed", LogX: true, YLabel: "evidence recall", YUnit: "%",
		Caption: "Share of the messages with the answer that fit a budget of tokens, in the order of the retriever. ",
	}
	if kind == recall.ByDepth {
		c.Title, c.XLabel = "Recall against candidates", "first candidates"
		c.Caption = "Share of the messages with the answer among the first candidates. "
	}
	c.Caption += fmt.Sprintf("%s of %q; the bands are ", many(g.Questions, "question"), g.Name) + basis(g) + p.few()
	if g.Measures[0].Recall.Basis == "" {
		c.Caption = strings.Replace(c.Caption, "the bands are Too", "too", 1)
	}
	for _, arm := range p.shown {
		s := report.Series{Name: arm.Name}
		for _, m := range arm.Groups[0].Measures {
			if v := points(m.Recall); m.Kind == kind {
				s.Points = append(s.Points, report.Point{X: float64(m.At), Y: v.Value, Low: v.Low, High: v.High})
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// categories shows the groups and categories of the data set, at a depth and at a budget.
func (p *evaluationPage) categories() []report.Section {
	var out []report.Section
	for _, kind := range []string{recall.ByDepth, recall.ByBudget} {
		at := p.measured(kind)
		if at < 0 {
			continue
		}
		m := p.Measures[at]
		b := report.BarChart{
			Title: "Recall by category, " + measureName(m), Label: "evidence recall", Unit: "%",
			Caption: "The whiskers are 95 % intervals over conversations; those of small categories are wide." + p.few(),
		}
		for _, arm := range p.shown {
			b.Arms = append(b.Arms, arm.Name)
		}
		for g, group := range p.shown[0].Groups {
			one := report.BarGroup{Name: words(group.Name), Count: group.Questions}
			for _, arm := range p.shown {
				one.Values = append(one.Values, points(arm.Groups[g].Measures[at].Recall))
			}
			b.Groups = append(b.Groups, one)
		}
		out = append(out, b)
	}
	return out
}

// words makes a name of a data set's file readable.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

func (p *evaluationPage) latency() report.Section {
	l := report.Latency{Title: "Time to retrieve", Caption: "One call of the retriever as the engine makes it, the index being built." + p.few()}
	if p.Protocol.Workers > 1 && len(p.good) > 1 {
		l.Caption += fmt.Sprintf(" Up to %d configurations were measured at once and slowed each other down: compare times with --workers 1.", p.Protocol.Workers)
	}
	for _, arm := range p.shown {
		if arm.Resumed && !strings.Contains(l.Caption, "earlier run") {
			l.Caption += " Some times are those of an earlier run (--resume)."
		}
		l.Arms = append(l.Arms, report.ArmLatency{Arm: arm.Name, P50: arm.Latency.P50, P95: arm.Latency.P95, Count: len(arm.Questions)})
	}
	return l
}

// stored returns the bytes that a store takes, on its medium or else in memory.
func stored(i recall.Index) int64 {
	if i.StoreBytes > 0 {
		return i.StoreBytes
	}
	return i.StoreMemory
}

// megabytes is a number of bytes; one that could not be told is none.
func megabytes(n int64) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return float64(n) / 1e6
}

// sizes shows what the stores and indexes take.
func (p *evaluationPage) sizes() report.Section {
	b := report.BarChart{
		Title: "Size of store and index", Label: "size", Unit: "MB",
		Caption: fmt.Sprintf("What %s take: the store on its medium or else in memory, the indexes in memory, about.%s", many(p.good[0].Index.Entries, "message"), p.few()),
		Groups:  []report.BarGroup{{Name: "Store"}, {Name: "Indexes in memory"}},
	}
	for _, arm := range p.shown {
		b.Arms = append(b.Arms, arm.Name)
		for g, n := range []int64{stored(arm.Index), arm.Index.Memory} {
			v := megabytes(n)
			b.Groups[g].Values = append(b.Groups[g].Values, report.Value{Value: v, Low: v, High: v})
		}
	}
	return b
}

// method says how was measured.
func (p *evaluationPage) method() report.Section {
	n := report.Note{Title: "How it was measured", Paragraphs: []string{
		"Each conversation is imported into the configured store through the engine, and the engine's retriever is asked every question, as of the time of the last message. " +
			"Evidence recall is the share of the messages with the answer that are found. Means are over questions.",
	}}
	unit := "What is packed is the whole message."
	if p.Protocol.Unit == questions.Passage {
		unit = "What is packed is the passage that the retriever quotes; a message counts as found when one of its passages is."
	}
	n.Paragraphs = append(n.Paragraphs, fmt.Sprintf("%s A token is %s. The retriever is asked for %s candidates.", unit, p.Protocol.Tokens, thousands(p.Protocol.Candidates)),
		"Intervals have a confidence of 95 % and are over conversations, because questions about the same conversation are not independent of each other. Differences are paired: the same questions under both configurations.")
	for _, note := range p.Dataset.Notes {
		n.Paragraphs = append(n.Paragraphs, "Data set: "+note+".")
	}
	for _, arm := range p.Arms {
		if arm.Resumed {
			n.Paragraphs = append(n.Paragraphs, arm.Name+": taken from the file of finished results.")
		}
	}
	return n
}
