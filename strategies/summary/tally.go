package summary

import (
	"slices"
	"strconv"
	"strings"
)

// tally adds up what a summary took.
type tally struct {
	prompt              string
	models, causes      []string
	calls, usable       int
	inTokens, outTokens int
}

func tallyOf(prompt string) tally { return tally{prompt: prompt} }

func (t *tally) add(o outcome) {
	t.calls += o.calls
	t.inTokens += o.inTokens
	t.outTokens += o.outTokens
	if o.cause != "" {
		if !slices.Contains(t.causes, o.cause) {
			t.causes = append(t.causes, o.cause)
		}
		return
	}
	t.usable++
	if o.model != "" && !slices.Contains(t.models, o.model) {
		t.models = append(t.models, o.model)
	}
}

// kind is "summary" when a model had a part in the text.
func (t *tally) kind() string {
	if t.usable > 0 {
		return kindSummary
	}
	return kindFallback
}

// meta is what is stored with the summary. Calls and tokens include those of answers that were dropped.
func (t *tally) meta(f findings) map[string]string {
	m := map[string]string{
		"prompt": t.prompt, "calls": strconv.Itoa(t.calls),
		"inputTokens": strconv.Itoa(t.inTokens), "outputTokens": strconv.Itoa(t.outTokens),
	}
	if len(t.models) > 0 {
		m["model"] = strings.Join(t.models, ", ")
	}
	if len(t.causes) > 0 {
		m["cause"] = strings.Join(t.causes, ", ")
	}
	f.meta(m)
	return m
}
