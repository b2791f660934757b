package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/compare"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/report"
	"github.com/contextengine/contextengine/experiment/stats"
)

// pageCalls is how many calls of a conversation a report shows, spread evenly.
const pageCalls = 60

// comparePage writes the report of a comparison.
func (a *app) comparePage(ctx context.Context, f compareFlags, c comparison, sessions []dataset.Session, arms []experiment.Arm, budgets []int, counter core.TokenCounter) error {
	r := report.Report{
		Title: "Comparison of " + strings.Join(c.Arms, " and "), Subtitle: count(c.Conversations, "conversation") + ", compared with " + c.Arms[0],
		Facts: []report.Fact{{Name: "Price of a cached token", Value: fmt.Sprint(f.cachePrice)}, {Name: "Seed", Value: fmt.Sprint(f.seed)}},
	}
	r.Sections = append(r.Sections, verdicts(c))
	for _, name := range []string{"fill", "reuse all", "cost"} {
		r.Sections = append(r.Sections, bars(c, name))
	}
	r.Sections = append(r.Sections, latency(c), figuresTable(c))
	if len(c.Identifiers) > 0 {
		r.Sections = append(r.Sections, identifierSections(c)...)
	}
	windows, err := a.windows(ctx, f, sessions, arms, budgets[0], counter)
	if err != nil {
		return err
	}
	r.Sections = append(r.Sections, windows...)
	return writePage(f.html, r)
}

// writePage writes a report, all of it or nothing.
func writePage(name string, r report.Report) error {
	tmp := name + ".part"
	file, err := os.Create(tmp)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	_, err = r.WriteTo(file)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, name)
	}
	if err != nil {
		_ = os.Remove(tmp) // the cause is told
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

func verdicts(c comparison) report.Section {
	v := report.Verdicts{Title: "What differs", Caption: "Differences over conversations, with 95 % intervals."}
	for _, d := range c.Differences {
		if d.Difference.N == 0 || d.Difference.Mean == 0 && d.Difference.Low == 0 && d.Difference.High == 0 {
			continue
		}
		v.Items = append(v.Items, report.Verdict{
			Text: d.Verdict, Detail: fmt.Sprintf("%s of %s at a budget of %d tokens", d.Metric, d.To, d.Budget), Tone: toneOf(d.Difference, d.Better),
		})
	}
	for _, s := range c.Identifiers {
		if s.Verdict != "" {
			better := 0
			if s.Difference.ExcludesZero() {
				better = sign(s.Difference.Mean)
			}
			v.Items = append(v.Items, report.Verdict{Text: s.Verdict, Detail: fmt.Sprintf("identifiers that survive, %s, keeping %s", s.Arm, percent(s.Keep)), Tone: toneOf(s.Difference, better)})
		}
	}
	if len(v.Items) == 0 {
		v.Items = append(v.Items, report.Verdict{Text: "no difference: the same in every figure"})
	}
	return v
}

func sign(v float64) int {
	if v < 0 {
		return -1
	}
	return 1
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

func valueOf(v compare.Value, scale float64) report.Value {
	return report.Value{Value: v.Mean * scale, Low: v.Low * scale, High: v.High * scale}
}

// bars shows one metric, with the budgets as groups.
func bars(c comparison, name string) report.Section {
	m := compare.Metrics()[slices.IndexFunc(compare.Metrics(), func(m compare.Metric) bool { return m.Name == name })]
	b := report.BarChart{Title: strings.ToUpper(name[:1]) + name[1:], Caption: m.Doc + ".", Label: m.Name, Unit: "%", Arms: c.Arms}
	for _, budget := range c.Budgets {
		g := report.BarGroup{Name: short(float64(budget)) + " tokens"}
		for _, v := range c.Values {
			if v.Budget == budget && v.Metric == name {
				g.Count = max(g.Count, v.N)
				g.Values = append(g.Values, valueOf(v, 100))
			}
		}
		b.Groups = append(b.Groups, g)
	}
	return b
}

func latency(c comparison) report.Section {
	l := report.Latency{Title: "Time to assemble a prompt", Caption: fmt.Sprintf("At a budget of %d tokens; mean over conversations.", c.Budgets[0])}
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
	t := report.Table{Title: "All figures", Columns: []report.Column{{Name: "Budget", Unit: "tokens"}, {Name: "Metric"}, {Name: "Configuration"}, {Name: "Mean"}, {Name: "Conversations"}}}
	for _, v := range c.Values {
		if v.N == 0 {
			continue
		}
		m := compare.Metrics()[slices.IndexFunc(compare.Metrics(), func(m compare.Metric) bool { return m.Name == v.Metric })]
		scale, name := 1.0, m.Name
		if m.Unit == "share" {
			scale, name = 100, m.Name+" (%)"
		} else if m.Unit != "" {
			name += " (" + m.Unit + ")"
		}
		t.Rows = append(t.Rows, []report.Cell{report.Count(v.Budget), report.Text(name), report.Text(v.Arm), report.Estimate(valueOf(v, scale), 2), report.Count(v.Clusters)})
	}
	return t
}

func identifierSections(c comparison) []report.Section {
	b := report.BarChart{Title: "Identifiers that survive a compaction", Caption: "Share of the identifiers used later that the prompt still says, byte for byte.", Label: "survived", Unit: "%"}
	t := report.Table{Title: "What a compaction keeps", Columns: []report.Column{
		{Name: "Asked to keep", Unit: "%"}, {Name: "Configuration"}, {Name: "Kept", Unit: "% of tokens"}, {Name: "Survived", Unit: "%"}, {Name: "Without the index", Unit: "%"}, {Name: "Index", Unit: "% of tokens"}}}
	for _, s := range c.Identifiers {
		if !slices.Contains(b.Arms, s.Arm) {
			b.Arms = append(b.Arms, s.Arm)
		}
		name := "keeping " + percent(s.Keep)
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

// windows replays one conversation again and shows the windows of its calls, and its last turn under the first two configurations.
func (a *app) windows(ctx context.Context, f compareFlags, sessions []dataset.Session, arms []experiment.Arm, budget int, counter core.TokenCounter) ([]report.Section, error) {
	chosen := sessions[0]
	for _, s := range sessions {
		if f.session == s.Name() {
			chosen = s
			break
		}
		if f.session == "" && len(s.Messages) > len(chosen.Messages) {
			chosen = s
		}
	}
	if f.session != "" && chosen.Name() != f.session {
		var names []string
		for _, s := range sessions {
			names = append(names, s.Name())
		}
		return nil, unknownName("conversation", f.session, names)
	}
	calls := 0
	for _, m := range chosen.Messages {
		if m.Role == message.Assistant {
			calls++
		}
	}
	every := max(calls/pageCalls, 1)
	var out []report.Section
	var last []report.Turn
	for _, arm := range arms {
		section := report.WindowComposition{
			Title:   "The window under " + arm.Name,
			Caption: fmt.Sprintf("%s at a budget of %d tokens: what is in each prompt and why, what it costs, and what is out.", chosen.Name(), budget),
		}
		turn := report.Turn{Arm: arm.Name, Budget: budget}
		watch := func(call experiment.Call) bool {
			if call.Err != nil {
				return ctx.Err() == nil
			}
			lookup := lookupIn(chosen, call.IDs)
			if call.Number%every == 0 {
				section.Calls = append(section.Calls, report.WindowFrom(call.Number, call.Turn, call.Budget, call.Result, lookup))
			}
			turn.Result, turn.IDs, turn.Lookup = call.Result, slices.Clone(call.IDs), lookup
			return ctx.Err() == nil
		}
		_, err := experiment.Replay(ctx, experiment.Spec{Session: chosen, Arm: arm, Budget: budget, Counter: counter, Options: experiment.Options{Watch: watch, Sample: -1}})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", chosen.Name(), arm.Name, err)
		}
		if len(section.Calls) > 0 {
			out = append(out, section)
			last = append(last, turn)
		}
	}
	if len(last) > 1 {
		out = append(out, report.CompareTurns("The last turn of "+chosen.Name()+", side by side", last[0], last[1]))
	}
	return out, nil
}

// lookupIn finds the messages of a conversation by the ids that an engine gave them.
func lookupIn(s dataset.Session, ids []string) report.Lookup {
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	return func(entry string) (message.Message, bool) {
		i, ok := at[entry]
		if !ok || i >= len(s.Messages) {
			return message.Message{}, false
		}
		return s.Messages[i], true
	}
}
