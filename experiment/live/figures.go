package live

import (
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/stats"
)

// The figures of a session that the engine gives. Those of calls count from when the session joined the arm.
const (
	MetricTurns = "turns per session"
	// MetricBreaks counts how often what was sent before was no longer the beginning of what is sent: steps, compactions, resets.
	MetricBreaks    = "cache breaks per 100 turns"
	MetricSummaries = "summaries"
	// MetricTokens is what a prompt costs, MetricCost the same where what a prompt cache has from the call before is paid at Source.CachePrice.
	MetricTokens  = "tokens per call"
	MetricCost    = "cost per call in tokens"
	MetricLatency = "ms to assemble a call"
	// MetricRecalled is the share of turns for which something was recalled, MetricUsed the share of those whose answer says some of it; see core.Tally.
	MetricRecalled = "turns with recall"
	MetricUsed     = "recall used"
	// MetricDegraded counts calls that a part failed in, MetricErrors those without an answer.
	MetricDegraded = "degradations per 100 turns"
	MetricErrors   = "errors per 100 turns"
)

// measures say what the engine's figures are. Of an outcome nothing is known but its values.
var measures = map[string]stats.Measure{
	MetricTurns: stats.Amount("", 0), MetricSummaries: stats.Amount("", 0), MetricBreaks: stats.Amount("", -1),
	MetricTokens: stats.Amount("tokens", 0), MetricCost: stats.Amount("tokens", -1), MetricLatency: stats.Amount("ms", -1),
	MetricRecalled: stats.Share(0), MetricUsed: stats.Share(1),
	MetricDegraded: stats.Amount("", -1), MetricErrors: stats.Amount("", -1),
}

// MeasureOf is the measure of a metric, of which these are the values.
func MeasureOf(name string, outcome bool, figures ...[]float64) stats.Measure {
	if m, ok := measures[name]; ok && !outcome {
		return m
	}
	return stats.MeasureOf(figures...)
}

// take adds a session.
func (v *values) take(view *core.View, cachePrice float64) {
	v.arm.Sessions++
	v.arm.Turns += int(view.Turns)
	v.arm.Messages += view.Len()
	v.add(MetricTurns, float64(view.Turns))
	v.add(MetricSummaries, float64(len(view.Summaries)))
	t := view.Tally
	if calls := float64(t.Calls); calls > 0 {
		v.add(MetricTokens, float64(t.Tokens)/calls)
		v.add(MetricCost, (float64(t.Tokens-t.Cached)+cachePrice*float64(t.Cached))/calls)
		v.add(MetricLatency, float64(t.Took)/float64(time.Millisecond)/calls)
	}
	if turns := float64(view.Turns); turns > 0 {
		v.add(MetricBreaks, 100*float64(view.Epoch)/turns)
		if t != (core.Tally{}) {
			v.add(MetricRecalled, min(float64(t.Recalled)/turns, 1))
			v.add(MetricDegraded, 100*float64(t.Degraded)/turns)
			v.add(MetricErrors, 100*float64(t.Errors)/turns)
		}
	}
	if t.Recalled > 0 {
		v.add(MetricUsed, min(float64(t.Used)/float64(t.Recalled), 1))
	}
}
