package compare

import (
	"strconv"

	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/stats"
)

// Metric is a figure that every replay has.
type Metric struct {
	// Name is shown, Doc says in a sentence what it is.
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Unit is "share" (0 to 1, told in points of a hundred), "tokens", "ms" or "" for a number.
	Unit string `json:"unit,omitempty"`
	// Better is 1 where more is better, -1 where less is, 0 where neither is.
	Better int `json:"better"`
	of     func(experiment.Report) (value float64, ok bool)
}

// full is a figure of the calls after the history first exceeded the budget; a conversation that never did has none.
func full(f func(experiment.Report) float64) func(experiment.Report) (float64, bool) {
	return func(r experiment.Report) (float64, bool) { return f(r), r.Full > 0 && r.Error == "" }
}

// shown is a figure of the prompts that fitted; a conversation without any has none.
func shown(f func(experiment.Report) float64) func(experiment.Report) (float64, bool) {
	return func(r experiment.Report) (float64, bool) { return f(r), r.Calls > r.BudgetErrors && r.Error == "" }
}

func every(f func(experiment.Report) float64) func(experiment.Report) (float64, bool) {
	return func(r experiment.Report) (float64, bool) { return f(r), r.Calls > 0 && r.Error == "" }
}

const overSliding = "cost to sliding"

// Metrics are the figures of replays, in the order in which they are shown.
func Metrics() []Metric {
	return []Metric{
		{"fill", "median share of the budget that a prompt uses, once the history exceeds it", "share", 1, full(func(r experiment.Report) float64 { return r.FillMedian })},
		{"fill p10", "10th percentile of the same", "share", 1, full(func(r experiment.Report) float64 { return r.FillP10 })},
		{"reuse", "share of a prompt's history that the next prompt begins with, without steps and compactions", "share", 1, full(func(r experiment.Report) float64 { return r.Reuse })},
		{"reuse all", "the same in all calls", "share", 1, full(func(r experiment.Report) float64 { return r.ReuseAll })},
		{"steps", "share of calls in which the window moved", "share", -1, full(func(r experiment.Report) float64 { return r.StepShare })},
		{"cached", "share of all prompts' bytes that a prompt cache has", "share", 1, shown(func(r experiment.Report) float64 { return r.Cached })},
		{"cost", "cost of all prompts with a prompt cache, relative to none", "share", -1, shown(func(r experiment.Report) float64 { return r.CostNoCache })},
		{overSliding, "the same, relative to a window that slides by a message at a time", "share", -1, shown(func(r experiment.Report) float64 { return r.CostSliding })},
		{"window", "tokens of a prompt, on average", "tokens", 0, shown(func(r experiment.Report) float64 { return r.WindowTokens })},
		{"recalled", "tokens recalled, on average", "tokens", 0, full(func(r experiment.Report) float64 { return r.RecalledTokens })},
		{"compactions", "compactions that changed something", "", 0, every(func(r experiment.Report) float64 { return float64(r.Compactions) })},
		{"model calls", "calls of a model for compaction", "", -1, every(func(r experiment.Report) float64 { return float64(r.ModelCalls) })},
		{"budget errors", "calls in which system prompt and newest messages did not fit", "", -1, every(func(r experiment.Report) float64 { return float64(r.BudgetErrors) })},
		{"violations", "broken promises", "", -1, every(func(r experiment.Report) float64 { return float64(len(r.Violations)) })},
		{"assemble p50", "time to assemble a prompt, median", "ms", -1, every(func(r experiment.Report) float64 { return r.AssembleP50 })},
		{"assemble p95", "time to assemble a prompt, 95th percentile", "ms", -1, every(func(r experiment.Report) float64 { return r.AssembleP95 })},
	}
}

// measure says what range the metric has. A prompt may cost more than one of a sliding window does.
func (m Metric) measure() stats.Measure {
	if m.Unit == "share" && m.Name != overSliding {
		return stats.Share(m.Better)
	}
	return stats.Amount(m.Unit, m.Better)
}

// Judge says what a difference (b minus a) shows.
func (m Metric) Judge(a, b string, d stats.Interval) stats.Verdict { return m.measure().Judge(a, b, d) }

// number writes a value without its unit.
func (m Metric) number(v float64) string {
	switch m.Unit {
	case "share":
		return stats.Points(v)
	case "tokens":
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Format writes a value of the metric with its unit.
func (m Metric) Format(v float64) string {
	switch m.Unit {
	case "share":
		return m.number(v) + " %"
	case "":
		return m.number(v)
	}
	return m.number(v) + " " + m.Unit
}
