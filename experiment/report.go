package experiment

import (
	"math"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Report is what a replay found and measured. Shares are 0 to 1.
type Report struct {
	// Session is the conversation, Arm the configuration, Engine and Parts what it is made of.
	Session string         `json:"session"`
	Arm     string         `json:"config"`
	Engine  string         `json:"engine"`
	Parts   core.PartNames `json:"parts"`
	Budget  int            `json:"budget"`
	// Sessions is the number of replays that the report adds up.
	Sessions int `json:"sessions"`
	Messages int `json:"messages"`
	Calls    int `json:"calls"`
	// HistoryTokens is the cost of all messages, WindowTokens that of a prompt on average.
	HistoryTokens int     `json:"historyTokens"`
	WindowTokens  float64 `json:"windowTokens"`
	// GroupTokens is the 95th percentile of what a group of an assistant message and its results costs.
	GroupTokens int `json:"groupTokens"`
	// Full is the number of calls after the history first exceeded the budget. The figures that follow are of those.
	Full int `json:"fullCalls"`
	// FillMedian and FillP10 say how much of the budget prompts use.
	FillMedian float64 `json:"fillMedian"`
	FillP10    float64 `json:"fillP10"`
	// RecalledTokens is the recall block's cost on average.
	RecalledTokens float64 `json:"recalledTokens"`
	// Reuse is the share of a prompt's history (recall block and newest turn left out) that the next prompt begins with, in calls without a
	// step or compaction; ReuseAll in all calls; ReuseRaw the share of the whole prompt in all calls.
	Reuse    float64 `json:"reuse"`
	ReuseAll float64 `json:"reuseAll"`
	ReuseRaw float64 `json:"reuseRaw"`
	// Steps is how often the window moved in all calls, StepShare how often in full ones, StepBound what the policy allows in all.
	Steps     int     `json:"steps"`
	StepShare float64 `json:"stepShare"`
	StepBound int     `json:"stepBound"`
	// Compactions changed something; ModelCalls asked a model.
	Compactions int `json:"compactions"`
	ModelCalls  int `json:"modelCalls"`
	// AssembleP50 and AssembleP95 are milliseconds.
	AssembleP50 float64 `json:"assembleP50ms"`
	AssembleP95 float64 `json:"assembleP95ms"`
	// BudgetErrors counts calls that gave a typed budget error, Degraded those that legacy answered.
	BudgetErrors int `json:"budgetErrors"`
	Degraded     int `json:"degraded"`
	// Cached is the share of all prompts' bytes that a prompt cache has. CostNoCache and CostSliding are the prompts' cost relative to the same
	// ones without a cache, and to naive sliding with it.
	Cached      float64 `json:"cachedShare"`
	CostNoCache float64 `json:"costToNoCache"`
	CostSliding float64 `json:"costToSliding"`
	// CostHost is the same relative to a host that compacts by itself: everything until the budget is full, then a summary in front of the newest 20,000 tokens.
	// CostHostCounted counts what its model is sent for summaries, HostFill is the mean size of our prompts relative to its.
	CostHost        float64 `json:"costToHost"`
	CostHostCounted float64 `json:"costToHostCounted"`
	HostFill        float64 `json:"fillToHost"`
	Sliding         Sliding `json:"sliding"`
	// ReadBack says that every message was read back from the store.
	ReadBack bool `json:"readBack"`
	// Claims says that the engine promised something: legacy does not.
	Claims     bool        `json:"claims"`
	Violations []Violation `json:"violations"`
	// Error says why the replay could not be finished.
	Error string `json:"error,omitempty"`
	err   error

	fills, kept, keptAll, raw, times []float64
	groups                           []int
	recalled, window, fullSteps      int
	prompts                          int
	costs, slide, host               tally
	hostAsked, hostTokens, hostCalls int
	slideFills                       []float64
	price                            float64
}

// Err returns why the replay could not be finished, for errors.Is; nil when it was, or when the report was read from JSON.
func (r Report) Err() error { return r.err }

// Sliding is how naive sliding does with the same calls: the newest groups that fit, unclipped, sought anew in every call.
type Sliding struct {
	FillMedian  float64 `json:"fillMedian"`
	FillP10     float64 `json:"fillP10"`
	Cached      float64 `json:"cachedShare"`
	CostNoCache float64 `json:"costToNoCache"`
}

func newReport(s Spec) Report {
	return Report{
		Session: s.Session.Name(), Arm: s.Arm.Name, Budget: s.Budget, Sessions: 1,
		Messages: len(s.Session.Messages), price: s.CachePrice, Violations: []Violation{},
	}
}

func (r *Report) took(d time.Duration) {
	r.times = append(r.times, float64(d.Microseconds())/1000)
}

// sample measures a prompt against the one before it.
func (r *Report) sample(run *runner, p *prompt, budget int) {
	r.prompts++
	r.window += p.tokens
	full := run.history > run.spec.Budget
	if full {
		r.Full++
		r.fills = append(r.fills, float64(p.tokens)/float64(budget))
		r.recalled += p.recalled
	}
	if run.last == nil {
		r.costs.add(p.size, 0)
		return
	}
	o := overlapOf(run.last, p)
	r.costs.add(p.size, o.cached)
	stepped := p.stepped || (p.epoch != run.last.epoch && !run.compacted)
	if stepped {
		r.Steps++
	}
	if !full {
		return
	}
	if stepped {
		r.fullSteps++
	}
	if !stepped && !run.compacted {
		r.kept = append(r.kept, o.kept)
	}
	r.keptAll, r.raw = append(r.keptAll, o.kept), append(r.raw, o.raw)
}

// finish completes the report of a replay.
func (r *runner) finish() {
	rep := &r.rep
	w := r.spec.Arm.Window
	rep.HistoryTokens = r.history
	rep.StepBound = int(math.Ceil(float64(r.history)/((w.High-w.Low)*float64(r.spec.Budget)))) + 1
	rep.groups = groupCosts(r.v.said, r.v.cost)
	rep.slide, rep.slideFills = r.slide.costs, r.slide.fills
	rep.host, rep.hostAsked, rep.hostTokens, rep.hostCalls = r.hosting.costs, r.hosting.asked, r.hosting.tokens, r.hosting.calls
	rep.Violations = append(rep.Violations, r.v.found...)
	rep.derive()
}

// derive computes what follows from samples.
func (r *Report) derive() {
	r.GroupTokens = quantile(r.groups, 0.95)
	r.FillMedian, r.FillP10 = quantile(r.fills, 0.5), quantile(r.fills, 0.1)
	r.Reuse, r.ReuseAll, r.ReuseRaw = mean(r.kept), mean(r.keptAll), mean(r.raw)
	r.AssembleP50, r.AssembleP95 = quantile(r.times, 0.5), quantile(r.times, 0.95)
	r.WindowTokens = ratio(float64(r.window), float64(r.prompts))
	r.RecalledTokens = ratio(float64(r.recalled), float64(r.Full))
	r.StepShare = ratio(float64(r.fullSteps), float64(r.Full))
	r.Cached = ratio(float64(r.costs.Cached), float64(r.costs.Bytes))
	r.CostNoCache = ratio(r.costs.price(r.price), float64(r.costs.Bytes))
	r.CostSliding = ratio(r.costs.price(r.price), r.slide.price(r.price))
	r.CostHost = ratio(r.costs.price(r.price), r.host.price(r.price))
	r.CostHostCounted = ratio(r.costs.price(r.price), r.host.price(r.price)+float64(r.hostAsked))
	r.HostFill = ratio(r.WindowTokens, ratio(float64(r.hostTokens), float64(r.hostCalls)))
	r.Sliding = Sliding{
		FillMedian: quantile(r.slideFills, 0.5), FillP10: quantile(r.slideFills, 0.1),
		Cached:      ratio(float64(r.slide.Cached), float64(r.slide.Bytes)),
		CostNoCache: ratio(r.slide.price(r.price), float64(r.slide.Bytes)),
	}
}

// Merge adds up reports of the same configuration and budget. The result is named after the first, and its violations say which session they
// are of.
func Merge(name string, reports []Report) Report {
	var out Report
	for i, r := range reports {
		if i == 0 {
			out = Report{
				Session: name, Arm: r.Arm, Engine: r.Engine, Parts: r.Parts, Budget: r.Budget, price: r.price,
				ReadBack: true, Violations: []Violation{},
			}
		}
		out.Sessions += r.Sessions
		out.Messages += r.Messages
		out.Calls += r.Calls
		out.HistoryTokens += r.HistoryTokens
		out.Full += r.Full
		out.Steps += r.Steps
		out.StepBound += r.StepBound
		out.Compactions += r.Compactions
		out.ModelCalls += r.ModelCalls
		out.BudgetErrors += r.BudgetErrors
		out.Degraded += r.Degraded
		out.ReadBack = out.ReadBack && r.ReadBack
		out.Claims = out.Claims || r.Claims
		if out.Error == "" {
			out.Error, out.err = r.Error, r.err
		}
		for _, v := range r.Violations {
			if len(reports) > 1 {
				v.Text = r.Session + ": " + v.Text
			}
			out.Violations = append(out.Violations, v)
		}
		out.fills, out.kept, out.keptAll = slices.Concat(out.fills, r.fills), slices.Concat(out.kept, r.kept), slices.Concat(out.keptAll, r.keptAll)
		out.raw, out.times, out.groups = slices.Concat(out.raw, r.raw), slices.Concat(out.times, r.times), slices.Concat(out.groups, r.groups)
		out.recalled += r.recalled
		out.window += r.window
		out.fullSteps += r.fullSteps
		out.prompts += r.prompts
		out.costs.add(r.costs.Bytes, r.costs.Cached)
		out.slide.add(r.slide.Bytes, r.slide.Cached)
		out.host.add(r.host.Bytes, r.host.Cached)
		out.hostAsked, out.hostTokens, out.hostCalls = out.hostAsked+r.hostAsked, out.hostTokens+r.hostTokens, out.hostCalls+r.hostCalls
		out.slideFills = slices.Concat(out.slideFills, r.slideFills)
	}
	out.derive()
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return ratio(sum, float64(len(values)))
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
