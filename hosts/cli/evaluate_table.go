package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/samber/lo"

	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/stats"
	"github.com/contextengine/contextengine/internal/columns"
)

const evaluateColumns = `The columns of the second table:
  p50, p95    milliseconds of a call of the retriever as the engine makes it (recall.candidates), the index being built
  cold        milliseconds of the first call of a conversation, which builds the index; with --wide
  late        calls that took longer than recall.deadline
  store       bytes of the store, on its medium or else in memory; index: memory of the indexes, about; with --wide
  packed      tokens packed at each budget, on average; answer: percent of the gold answers' words among them
With --window, percent of the messages that hold an answer:
  whole       stand in the window with at least nine of ten words; touched: stand there at least in part
  not found   are not among the candidates; not packed: were, without room; cut: are quoted in part
  recalled    percent of the budget that recall took; filled: that the window took; with --wide
  degraded    questions during which a part went on without another; failed: questions that got an error; with --wide, and as warnings`

// manyArms is from how many arms on only the headline groups are printed.
const manyArms = 5

// writeEvaluation prints a result. Verdicts are given for the measures named.
func writeEvaluation(w io.Writer, width int, r *recall.Result, verdicts []string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %s, %s, %s with evidence\n", r.Dataset.Name, count(r.Dataset.Conversations, "conversation"),
		count(r.Dataset.Messages, "message"), count(r.Dataset.Questions, "question"))
	for _, note := range r.Dataset.Notes {
		fmt.Fprintln(out, "note: "+note)
	}
	var good []recall.ArmResult
	for _, arm := range r.Arms {
		if arm.Error == "" {
			good = append(good, arm)
		}
	}
	if len(good) > 0 {
		hidden := 0
		for g := range good[0].Groups {
			if good[0].Groups[g].Category && len(good) >= manyArms {
				hidden++
				continue
			}
			writeGroup(out, width, r.Measures, good, g)
		}
		writeStanding(out, width, good)
		if hidden > 0 {
			fmt.Fprintf(out, "\n%s are left out here; --json has them\n", countOf(hidden, "category", "categories"))
		}
		if len(good[0].Standing) == 0 {
			writeCosts(out, width, good)
		}
	}
	writeVerdicts(out, r, verdicts)
	if n := lo.CountBy(r.Arms, func(arm recall.ArmResult) bool { return arm.Resumed }); n > 0 {
		fmt.Fprintf(out, "note: %d of %s taken from the file of finished results\n", n, count(len(r.Arms), "result"))
	}
	for _, arm := range r.Arms {
		writeTroubles(out, arm)
	}
	return out.Flush()
}

// writeGroup prints the recall of all arms in one group.
func writeGroup(w io.Writer, width int, measures []recall.Measure, arms []recall.ArmResult, g int) {
	first := arms[0].Groups[g]
	over := ""
	if n := len(first.Measures); n > 0 {
		switch i := first.Measures[0].Recall; i.Basis {
		case stats.OverConversations:
			over = ", ± over " + count(i.Clusters, "conversation")
		case stats.OverQuestions:
			over = ", ± over the questions of one conversation"
		}
	}
	fmt.Fprintf(w, "\n%s: %s%s\n", first.Name, count(first.Questions, "question"), over)
	table := armsTable()
	for _, m := range measures {
		table.Columns = append(table.Columns, columns.Column{Name: m.Name})
	}
	for i, arm := range arms {
		cells := []string{strconv.Itoa(i + 1), arm.Name}
		for _, m := range arm.Groups[g].Measures {
			cells = append(cells, interval(m.Recall))
		}
		table.Add(cells...)
	}
	table.Print(w, width)
}

// writeStanding prints what stands in windows, of the groups of the data set.
func writeStanding(w io.Writer, width int, arms []recall.ArmResult) {
	for k, first := range arms[0].Standing {
		if first.Category {
			continue
		}
		fmt.Fprintf(w, "\n%s, a window of %s tokens: %s\n", first.Group, short(float64(first.Budget)), count(first.Questions, "question"))
		table := armsTable(columns.Column{Name: "whole"}, columns.Column{Name: "touched"}, columns.Column{Name: "not found"}, columns.Column{Name: "not packed"},
			columns.Column{Name: "cut"}, columns.Column{Name: "recalled", Wide: true}, columns.Column{Name: "filled", Wide: true})
		for i, arm := range arms {
			s := arm.Standing[k]
			table.Add(strconv.Itoa(i+1), arm.Name, interval(s.Whole), interval(s.Touched), stats.Points(s.NotFound), stats.Points(s.NotPacked),
				stats.Points(s.Cut), stats.Points(s.Recalled), stats.Points(s.Filled))
		}
		table.Print(w, width)
	}
}

// interval writes a mean and half its interval in percent.
func interval(i stats.Interval) string {
	if i.N == 0 {
		return "-"
	}
	if i.Basis == "" {
		return stats.Points(i.Mean)
	}
	return stats.Points(i.Mean) + " ±" + stats.Points(max(i.High-i.Mean, i.Mean-i.Low))
}

// writeCosts prints what the arms cost.
func writeCosts(w io.Writer, width int, arms []recall.ArmResult) {
	table := armsTable(columns.Column{Name: "p50"}, columns.Column{Name: "p95"}, columns.Column{Name: "cold", Wide: true}, columns.Column{Name: "late"},
		columns.Column{Name: "store"}, columns.Column{Name: "index", Wide: true})
	for _, m := range arms[0].Groups[0].Measures {
		if m.Kind == recall.ByBudget {
			table.Columns = append(table.Columns, columns.Column{Name: "packed " + m.Name}, columns.Column{Name: "answer"})
		}
	}
	table.Columns = append(table.Columns, columns.Column{Name: "degraded", Wide: true}, columns.Column{Name: "failed", Wide: true}) // warnings say so, too
	for i, arm := range arms {
		store := arm.Index.StoreBytes
		if store == 0 {
			store = arm.Index.StoreMemory
		}
		cells := []string{
			strconv.Itoa(i + 1), arm.Name, fine(arm.Latency.P50), fine(arm.Latency.P95), ms(arm.Latency.Cold), strconv.Itoa(arm.Latency.Late),
			size(store), size(arm.Index.Memory),
		}
		for _, m := range arm.Groups[0].Measures {
			if m.Kind != recall.ByBudget {
				continue
			}
			answer := "-"
			if m.AnswerTokens != nil {
				answer = stats.Points(m.AnswerTokens.Mean)
			}
			cells = append(cells, strconv.FormatFloat(m.Packed, 'f', 0, 64), answer)
		}
		table.Add(append(cells, strconv.Itoa(arm.Degraded), strconv.Itoa(arm.Failed))...)
	}
	fmt.Fprintf(w, "\n%s:\n", arms[0].Groups[0].Name)
	table.Print(w, width)
}

// armsTable is a table with a line for each arm, by number and name.
func armsTable(more ...columns.Column) columns.Table {
	return columns.Table{Keys: 2, Columns: append([]columns.Column{{}, {Name: "configuration", Left: true}}, more...)}
}

// fine writes milliseconds where a hundredth matters.
func fine(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return ms(v)
}

// writeVerdicts compares the arms with the first one.
func writeVerdicts(w io.Writer, r *recall.Result, measures []string) {
	if len(r.Comparisons) == 0 {
		return
	}
	fmt.Fprintln(w)
	place := make(map[string]int)
	for _, arm := range r.Arms {
		if arm.Error == "" {
			place[arm.Name] = len(place) + 1
		}
	}
	shown := 0
	for _, c := range r.Comparisons {
		if slices.Contains(measures, c.Measure) && c.Group == headline(r) {
			fmt.Fprintf(w, "%d and %d at %s: %s\n", place[c.Base], place[c.Other], c.Measure, c.Verdict)
			shown++
		}
	}
	if shown > 10 {
		fmt.Fprintf(w, "note: of %s without any difference about one in twenty is shown as one\n", count(shown, "comparison"))
	}
	for _, o := range r.Orders {
		fmt.Fprintf(w, "%d and %d: the same candidates in the same order for %d of %s\n", place[o.Base], place[o.Other], o.Same, count(o.Of, "question"))
	}
}

// headline returns the name of the first group.
func headline(r *recall.Result) string {
	for _, arm := range r.Arms {
		if len(arm.Groups) > 0 {
			return arm.Groups[0].Name
		}
	}
	return ""
}

// writeTroubles says what went wrong without stopping the measurement: figures must not pass for those of a configuration that was not there.
func writeTroubles(w io.Writer, arm recall.ArmResult) {
	if arm.Error != "" {
		return // the command ends with it
	}
	if arm.Degraded > 0 {
		fmt.Fprintf(w, "warning: %s: degraded: %d of %s were answered without a part of the configuration\n", arm.Name, arm.Degraded, count(len(arm.Questions), "question"))
	}
	if arm.Failed > 0 {
		at := slices.IndexFunc(arm.Questions, func(q recall.QuestionResult) bool { return q.Error != "" })
		fmt.Fprintf(w, "warning: %s: %d of %s failed and count as nothing found: %s\n", arm.Name, arm.Failed, count(len(arm.Questions), "question"), arm.Questions[at].Error)
	}
	for _, one := range arm.Warnings {
		fmt.Fprintf(w, "warning: %s: %s, %s", arm.Name, one.Text, countOf(one.Count, "time", "times"))
		if one.Example != "" {
			fmt.Fprintf(w, ", such as: %s", one.Example)
		}
		fmt.Fprintln(w)
	}
}

// countOf is count for nouns with a plural of their own.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
