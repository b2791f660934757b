package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/samber/lo"

	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/internal/columns"
)

const tableHelp = `The columns:
  window      tokens of a prompt, on average
  fill        share of the budget that prompts use, median *
  reuse       share of a prompt's history that the next prompt begins with, without steps and compactions *
  steps       how often the window moved, and the share of calls *; "!" when it is more than ceil(history / ((high - low) budget)) + 1
  broken      violations of promises
  /sliding    cost of all prompts with a prompt cache, relative to naive sliding with the same cache, which is the last line of each budget
With --wide, too:
  calls       model calls
  p10         the 10th percentile of fill *
  recall      tokens recalled, on average *
  all         reuse in all calls *
  compact     compactions that changed something
  model       calls of a model for compaction
  p50, p95    milliseconds to assemble a prompt
  errors      typed budget errors: system prompt and newest messages did not fit
  cost        cost of all prompts with a prompt cache, relative to none
  * after the history first exceeded the budget`

// replayColumns are the columns of the table; those that are Wide are not needed to see how a configuration does.
func replayColumns() []columns.Column {
	wide := func(name string) columns.Column { return columns.Column{Name: name, Wide: true} }
	return []columns.Column{
		{Name: "budget"}, {Name: "configuration", Left: true}, wide("calls"), {Name: "window"}, {Name: "fill"}, wide("p10"), wide("recall"), {Name: "reuse"}, wide("all"), {Name: "steps"},
		wide("compact"), wide("model"), wide("p50"), wide("p95"), wide("errors"), {Name: "broken"}, wide("cost"), {Name: "/sliding"},
	}
}

// writeTable prints reports, grouped by session.
func writeTable(w io.Writer, width int, reports []experiment.Report) error {
	out := bufio.NewWriter(w)
	for i, group := range groupBy(reports, func(r experiment.Report) string { return r.Session }) {
		if i > 0 {
			fmt.Fprintln(out)
		}
		first := group[0]
		fmt.Fprintf(out, "%s: %s, %s", first.Session, count(first.Sessions, "session"), count(first.Messages, "message"))
		if done, ok := lo.Find(group, func(r experiment.Report) bool { return r.Error == "" }); ok {
			fmt.Fprintf(out, ", %s tokens in the history", short(float64(done.HistoryTokens)))
			if done.GroupTokens > 0 {
				fmt.Fprintf(out, ", 95 %% of the model's steps cost at most %s", short(float64(done.GroupTokens)))
			}
		}
		fmt.Fprintln(out)
		table := columns.Table{Columns: replayColumns(), Keys: 2}
		for _, budget := range groupBy(group, func(r experiment.Report) string { return strconv.Itoa(r.Budget) }) {
			for _, r := range budget {
				table.Add(row(r)...)
			}
			table.Add(slidingRow(budget[0])...)
		}
		table.Print(out, width)
	}
	details(out, reports)
	return out.Flush()
}

func groupBy(reports []experiment.Report, key func(experiment.Report) string) [][]experiment.Report {
	var out [][]experiment.Report
	last := ""
	for _, r := range reports {
		if k := key(r); len(out) == 0 || k != last {
			out, last = append(out, nil), k
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

func row(r experiment.Report) []string {
	if r.Error != "" {
		return append([]string{short(float64(r.Budget)), r.Arm, "failed"}, dashes(len(replayColumns())-3)...)
	}
	full := r.Full > 0
	steps := strconv.Itoa(r.Steps)
	if full {
		steps += " " + percent(r.StepShare)
	}
	if r.Steps > r.StepBound {
		steps += "!"
	}
	cells := []string{
		short(float64(r.Budget)), r.Arm, strconv.Itoa(r.Calls), dash(short(r.WindowTokens), r.Calls > r.BudgetErrors),
		share(r.FillMedian, full), share(r.FillP10, full), dash(short(r.RecalledTokens), full),
		exact(r.Reuse, full), exact(r.ReuseAll, full), steps,
		strconv.Itoa(r.Compactions), strconv.Itoa(r.ModelCalls),
		ms(r.AssembleP50), ms(r.AssembleP95),
		strconv.Itoa(r.BudgetErrors), strconv.Itoa(len(r.Violations)),
		share(r.CostNoCache, r.Calls > r.BudgetErrors), share(r.CostSliding, r.BudgetErrors == 0),
	}
	if !r.Claims {
		cells[15] = "-" // it promises nothing that could be broken
	}
	return cells
}

// slidingRow shows what configurations are compared with.
func slidingRow(r experiment.Report) []string {
	full := r.Full > 0
	cells := append([]string{short(float64(r.Budget)), "(naive sliding)"}, dashes(len(replayColumns())-2)...)
	cells[2] = strconv.Itoa(r.Calls)
	cells[4], cells[5] = share(r.Sliding.FillMedian, full), share(r.Sliding.FillP10, full)
	there := r.Sliding.CostNoCache > 0
	cells[16], cells[17] = share(r.Sliding.CostNoCache, there), dash("1.00", there)
	return cells
}

func dashes(n int) []string {
	return lo.Times(n, func(int) string { return "-" })
}

func dash(text string, there bool) string {
	if there {
		return text
	}
	return "-"
}

func share(v float64, there bool) string { return dash(strconv.FormatFloat(v, 'f', 2, 64), there) }

// exact writes a share so that 1.000 means all of it.
func exact(v float64, there bool) string {
	if v < 1 {
		v = min(v, 0.9994)
	}
	return dash(strconv.FormatFloat(v, 'f', 3, 64), there)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + "%" }

func ms(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// shown is how many violations of a report are printed.
const shown = 10

// details prints violations, what could not be verified, and the sum.
func details(w io.Writer, reports []experiment.Report) {
	fmt.Fprintln(w)
	violations, calls := 0, 0
	for _, r := range reports {
		violations += len(r.Violations)
		if r.Claims {
			calls += r.Calls
		}
		for _, v := range r.Violations[:min(len(r.Violations), shown)] {
			fmt.Fprintf(w, "broken: %s, %s, budget %d: %v\n", r.Session, r.Arm, r.Budget, v)
		}
		if n := len(r.Violations) - shown; n > 0 {
			fmt.Fprintf(w, "broken: %s, %s, budget %d: %d more; --json has all\n", r.Session, r.Arm, r.Budget, n)
		}
		if r.Degraded > 0 {
			fmt.Fprintf(w, "note: %s, %s, budget %d: legacy answered %s because the engine failed\n", r.Session, r.Arm, r.Budget, count(r.Degraded, "call"))
		}
		if r.Claims && !r.ReadBack && r.Error == "" {
			fmt.Fprintf(w, "note: %s, %s, budget %d: the engine gives no access to its store: messages were not read back\n", r.Session, r.Arm, r.Budget)
		}
	}
	for _, text := range cautions(reports) {
		fmt.Fprintln(w, "note: "+text)
	}
	failed := lo.CountBy(reports, func(r experiment.Report) bool { return r.Error != "" })
	claimed := lo.SomeBy(reports, func(r experiment.Report) bool { return r.Claims })
	switch {
	case failed == 0 && !claimed:
		fmt.Fprintln(w, "nothing was verified: the engine promises nothing")
	case failed == len(reports):
		fmt.Fprintf(w, "nothing was verified: %s\n", failedReplays(failed, len(reports)))
	case failed > 0:
		fmt.Fprintf(w, "%s in %s; %s\n", count(violations, "violation"), count(calls, "call"), failedReplays(failed, len(reports)))
	default:
		fmt.Fprintf(w, "%s in %s\n", count(violations, "violation"), count(calls, "call"))
	}
}

// cautions say what a table does not show although it looks as if it did.
func cautions(reports []experiment.Report) []string {
	var out []string
	for _, group := range groupBy(reports, func(r experiment.Report) string { return r.Session + "\x00" + strconv.Itoa(r.Budget) }) {
		group = lo.Filter(group, func(r experiment.Report, _ int) bool { return r.Error == "" && r.Claims })
		compactors := lo.UniqBy(group, func(r experiment.Report) string { return r.Parts.Compactor })
		idle := lo.CountBy(group, func(r experiment.Report) bool { return r.Compactions == 0 })
		if len(compactors) > 1 && idle > 0 {
			out = append(out, fmt.Sprintf("%s, budget %d: %d of %s compacted nothing, so their compactors are not told apart: a smaller --budget does", group[0].Session, group[0].Budget, idle, count(len(group), "configuration")))
		}
		for _, r := range group {
			if r.Full > 0 && r.RecalledTokens == 0 && r.Parts.Retriever != "" && r.Parts.Retriever != recallsNothing {
				out = append(out, fmt.Sprintf("%s, %s, budget %d: nothing was recalled: the budget leaves recall no room, or no turn asked for anything", r.Session, r.Arm, r.Budget))
			}
		}
	}
	for _, r := range reports {
		switch {
		case r.Error != "" || r.BudgetErrors == 0:
		case r.Calls == r.BudgetErrors:
			out = append(out, fmt.Sprintf("%s, %s, budget %d: no prompt fits, so none was verified", r.Session, r.Arm, r.Budget))
		default:
			out = append(out, fmt.Sprintf("%s, %s, budget %d: %d of %s had no prompt: system prompt and newest messages did not fit", r.Session, r.Arm, r.Budget, r.BudgetErrors, count(r.Calls, "call")))
		}
	}
	return out
}

// recallsNothing is the retriever that shows the newest messages alone.
const recallsNothing = "recent"

func failedReplays(failed, of int) string {
	if failed == of {
		return count(failed, "replay") + " failed"
	}
	return fmt.Sprintf("%d of %s failed", failed, count(of, "replay"))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
