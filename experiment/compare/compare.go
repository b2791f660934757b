package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment"
	"github.com/contextengine/contextengine/experiment/stats"
)

// Plan is what to compare.
type Plan struct {
	experiment.Plan
	// Seed makes the intervals repeatable.
	StatsSeed uint64
}

// Result is what a comparison found.
type Result struct {
	// Arms are the names of the configurations; the others are compared with the first.
	Arms          []string `json:"arms"`
	Budgets       []int    `json:"budgets"`
	Conversations int      `json:"conversations"`
	// Values are the means of every metric, by budget, then metric, then arm.
	Values []Value `json:"values"`
	// Differences are those between the first arm and each other, in the same order.
	Differences []Difference `json:"differences"`
	// Reports are those of the single replays, by conversation, then budget, then arm.
	Reports []experiment.Report `json:"reports"`
}

// Value is the mean of a metric over the conversations that every arm has a figure for, so that the differences are those of the values.
type Value struct {
	Budget int    `json:"budget"`
	Metric string `json:"metric"`
	Arm    string `json:"arm"`
	stats.Interval
}

// Difference is what another arm has more than the first, in the same conversations.
type Difference struct {
	Budget     int            `json:"budget"`
	Metric     string         `json:"metric"`
	From       string         `json:"from"`
	To         string         `json:"to"`
	Difference stats.Interval `json:"difference"`
	// Decision is what is shown, Verdict the same in words.
	Decision stats.Decision `json:"decision"`
	Verdict  string         `json:"verdict"`
}

// Run replays and compares. Replays that could not be finished are left out of the figures and joined in the error, which comes with the result.
func Run(ctx context.Context, plan Plan) (Result, error) {
	names := make([]string, len(plan.Arms))
	for i, arm := range plan.Arms {
		if slices.Contains(names[:i], arm.Name) {
			return Result{}, fmt.Errorf("compare: two arms are called %q: %w", arm.Name, core.ErrInvalid)
		}
		names[i] = arm.Name
	}
	reports, err := experiment.Run(ctx, plan.Plan)
	if err != nil {
		return Result{}, err
	}
	return From(reports, names, plan.Budgets, plan.StatsSeed)
}

// From compares reports of single replays that were made before.
func From(reports []experiment.Report, arms []string, budgets []int, seed uint64) (Result, error) {
	res := Result{Arms: arms, Budgets: budgets, Reports: reports}
	var errs []error
	type cell struct {
		session, arm string
		budget       int
	}
	at := make(map[cell]experiment.Report, len(reports))
	var sessions []string
	for _, r := range reports {
		if r.Error != "" {
			errs = append(errs, fmt.Errorf("compare: %s, %s, budget %d: %s", r.Session, r.Arm, r.Budget, r.Error))
		}
		if !slices.Contains(sessions, r.Session) {
			sessions = append(sessions, r.Session)
		}
		at[cell{r.Session, r.Arm, r.Budget}] = r
	}
	res.Conversations = len(sessions)
	o := stats.Options{Seed: seed}
	for _, budget := range budgets {
		for _, m := range Metrics() {
			// values holds for every arm one cluster per conversation, empty where it has no such figure.
			values := make([][][]float64, len(arms))
			for i, arm := range arms {
				values[i] = make([][]float64, len(sessions))
				for c, session := range sessions {
					if v, ok := m.of(at[cell{session, arm, budget}]); ok {
						values[i][c] = []float64{v}
					}
				}
			}
			complete(values)
			for i, arm := range arms {
				res.Values = append(res.Values, Value{Budget: budget, Metric: m.Name, Arm: arm, Interval: m.measure().Mean(stats.Mean(values[i], o))})
			}
			for i := 1; i < len(arms); i++ {
				a, b := paired(values[0], values[i])
				d, err := stats.Difference(a, b, o)
				if err != nil {
					return res, fmt.Errorf("compare: %s: %w", m.Name, err)
				}
				v := m.Judge(arms[0], arms[i], d)
				res.Differences = append(res.Differences, Difference{
					Budget: budget, Metric: m.Name, From: arms[0], To: arms[i], Difference: v.Effect, Decision: v.Decision, Verdict: v.Text,
				})
			}
		}
	}
	return res, errors.Join(errs...)
}

// complete leaves the conversations that every arm has a figure for. An arm without any figure at all takes none away from the others.
func complete(values [][][]float64) {
	none := func(list [][]float64) bool {
		return !slices.ContainsFunc(list, func(v []float64) bool { return len(v) > 0 })
	}
	for c := range values[0] {
		for _, list := range values {
			if len(list[c]) > 0 || none(list) {
				continue
			}
			for i := range values {
				values[i][c] = nil
			}
			break
		}
	}
}

// paired leaves the conversations that both have a figure for.
func paired(a, b [][]float64) (x, y [][]float64) {
	for c := range a {
		if len(a[c]) > 0 && len(b[c]) > 0 {
			x, y = append(x, a[c]), append(y, b[c])
		}
	}
	return x, y
}
