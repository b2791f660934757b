package cost

import (
	"context"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/survival"
)

// Row is what one configuration costs at one budget.
type Row struct {
	experiment.Report
	// Needed counts the identifiers that answers took from before, Shown those that the prompt said.
	Needed, Shown int
}

// Evidence is the share of what was needed that stood in the prompt; 0 when nothing was needed.
func (r Row) Evidence() float64 {
	if r.Needed == 0 {
		return 0
	}
	return float64(r.Shown) / float64(r.Needed)
}

// String is a line of the table whose head is Head.
func (r Row) String() string {
	return fmt.Sprintf("| %s | %d | %.2f | %.2f / %.2f | %.2f | %.2f | %.2f | %.1f %% | %.2f / %.2f | %.3f |", r.Arm, r.Budget, r.CostSliding,
		r.CostHost, r.CostHostCounted, r.HostFill, r.FillMedian, r.FillP10, 100*r.StepShare, r.Cached, r.CostNoCache, r.Evidence())
}

// Head is the head of the table.
const Head = "| configuration | budget | cost to sliding | to a host's compaction, with its summaries | window to its | fill p50 | p10 | steps | cached, cost to none | evidence |\n" +
	"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"

// most bounds the identifiers that count of one answer, and longest the arguments that are references and not texts, in bytes.
const (
	most    = 20
	longest = 200
)

// Measure replays conversations through one arm.
func Measure(ctx context.Context, sessions []dataset.Session, arm experiment.Arm, budget int, counter core.TokenCounter) (Row, error) {
	var reports []experiment.Report
	row := Row{}
	for _, s := range sessions {
		spec := experiment.Spec{Session: s, Arm: arm, Budget: budget, Counter: counter, Options: experiment.Options{Sample: -1}}
		spec.Watch = func(c experiment.Call) bool {
			if c.Err == nil {
				row.look(s.Messages, c)
			}
			return true
		}
		rep, err := experiment.Replay(ctx, spec)
		if err != nil {
			return Row{}, fmt.Errorf("cost: %w", err)
		}
		reports = append(reports, rep)
	}
	row.Report = experiment.Merge(arm.Name, reports)
	return row, nil
}

// look compares what the answer behind a call refers to with the prompt of the call.
func (r *Row) look(msgs []message.Message, c experiment.Call) {
	if c.Behind >= len(msgs) {
		return
	}
	var wanted []string
	for _, call := range msgs[c.Behind].Calls() {
		for _, arg := range survival.Arguments(call.Args) {
			if len(arg) <= longest {
				wanted = append(wanted, survival.Identifiers(arg)...)
			}
		}
	}
	if len(wanted) == 0 {
		return
	}
	before, now := text(msgs[:c.Behind]), text(c.Result.Messages)
	for _, id := range wanted[:min(len(wanted), most)] {
		if strings.Contains(before, id) {
			r.Needed++
			if strings.Contains(now, id) {
				r.Shown++
			}
		}
	}
}

// text is everything that messages say.
func text(msgs []message.Message) string {
	var b strings.Builder
	for i := range msgs {
		for j := range msgs[i].Parts {
			p := &msgs[i].Parts[j]
			b.WriteString(p.Text)
			b.WriteString(p.Args)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
