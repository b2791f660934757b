package recall

import (
	"math"
	"slices"

	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/stats"
)

// result sums up what the arms did, and compares them.
func (r *runner) result(arms []ArmResult) *Result {
	d := r.plan.Dataset
	out := &Result{
		Dataset: DatasetInfo{
			Name: d.Name, Format: d.Format, Digest: r.digest, Conversations: len(d.Conversations), Questions: d.Measured(), Notes: d.Notes,
		},
		Protocol: Protocol{
			Candidates: r.plan.Candidates, Unit: r.plan.Unit, Tokens: tokensRule, Seed: r.plan.Seed, Workers: r.plan.Workers,
		},
		Measures: r.measures, Arms: arms, Comparisons: []Comparison{}, Orders: []OrderComparison{},
	}
	for _, c := range d.Conversations {
		out.Dataset.Messages += c.Messages()
	}
	groups, plain := slices.Clone(d.Groups), len(d.Groups)
	for _, name := range d.Categories() {
		groups = append(groups, questions.Group{Name: name, Categories: []string{name}})
	}
	for i := range arms {
		arms[i].Groups, arms[i].Standing = nil, nil
		if arms[i].Error != "" {
			continue
		}
		for _, budget := range r.plan.Windows {
			for k, g := range groups {
				arms[i].Standing = append(arms[i].Standing, standing(g, k >= plain, budget, arms[i].Windows, stats.Options{Seed: r.plan.Seed}))
			}
		}
		if len(r.plan.Windows) > 0 {
			continue
		}
		for k, g := range groups {
			sum := r.group(g, arms[i].Questions)
			sum.Category = k >= plain
			arms[i].Groups = append(arms[i].Groups, sum)
		}
	}
	for i := range arms {
		if i > 0 && len(r.plan.Windows) == 0 {
			r.compare(out, groups, &arms[0], &arms[i])
		}
	}
	return out
}

// asked is a result of one question.
type asked interface {
	place() (conversation, category string)
}

func (q QuestionResult) place() (conversation, category string) { return q.Conversation, q.Category }
func (q WindowQuestion) place() (conversation, category string) { return q.Conversation, q.Category }

// clustered returns what of picks of the questions of a group, by conversation. What NaN stands for does not count.
func clustered[Q asked](g questions.Group, list []Q, of func(Q) float64) [][]float64 {
	var out [][]float64
	last := ""
	for _, q := range list {
		conversation, category := q.place()
		if !g.Has(category) {
			continue
		}
		v := of(q)
		if math.IsNaN(v) {
			continue
		}
		if out == nil || conversation != last {
			out, last = append(out, nil), conversation
		}
		out[len(out)-1] = append(out[len(out)-1], v)
	}
	return out
}

func (r *runner) group(g questions.Group, list []QuestionResult) GroupResult {
	out := GroupResult{Name: g.Name}
	for _, q := range list {
		if g.Has(q.Category) {
			out.Questions++
			if q.AnswerTokens != nil {
				out.Answers++
			}
		}
	}
	opts := stats.Options{Seed: r.plan.Seed}
	budget := 0
	for i, m := range r.measures {
		one := MeasureResult{Measure: m}
		one.Recall = stats.Mean(clustered(g, list, func(q QuestionResult) float64 { return q.Recall[i] }), opts).Within(0, 1)
		if m.Kind == ByBudget {
			at := budget
			budget++
			answers := stats.Mean(clustered(g, list, func(q QuestionResult) float64 {
				if q.AnswerTokens == nil {
					return math.NaN()
				}
				return q.AnswerTokens[at]
			}), opts).Within(0, 1)
			if answers.N > 0 {
				one.AnswerTokens = &answers
			}
			one.Packed = stats.Mean(clustered(g, list, func(q QuestionResult) float64 { return float64(q.Packed[at]) }), opts).Mean
		}
		out.Measures = append(out.Measures, one)
	}
	return out
}

// compare adds the differences between two arms.
func (r *runner) compare(out *Result, groups []questions.Group, base, other *ArmResult) {
	if base.Error != "" || other.Error != "" {
		return
	}
	same := 0
	for i := range base.Questions {
		if base.Questions[i].Order == other.Questions[i].Order && base.Questions[i].Error == "" && other.Questions[i].Error == "" {
			same++
		}
	}
	out.Orders = append(out.Orders, OrderComparison{Base: base.Name, Other: other.Name, Same: same, Of: len(base.Questions)})
	for _, g := range groups {
		for i, m := range r.measures {
			recall := func(q QuestionResult) float64 { return q.Recall[i] }
			d, err := stats.Difference(clustered(g, base.Questions, recall), clustered(g, other.Questions, recall), stats.Options{Seed: r.plan.Seed})
			if err != nil {
				continue // the same questions have the same shape
			}
			v := stats.Share(1).Judge(base.Name, other.Name, d)
			out.Comparisons = append(out.Comparisons, Comparison{
				Base: base.Name, Other: other.Name, Group: g.Name, Measure: m.Name, Difference: v.Effect, Decision: v.Decision, Verdict: v.Text,
			})
		}
	}
}

// of fills what the calls of questions took.
func (l *Latency) of(list []QuestionResult) {
	times := make([]float64, len(list))
	sum := 0.0
	for i, q := range list {
		times[i] = q.Ms
		sum += q.Ms
	}
	slices.Sort(times)
	if n := len(times); n > 0 {
		l.Mean = sum / float64(n)
		l.P50, l.P95 = times[(n-1)/2], times[int(math.Ceil(0.95*float64(n)))-1]
	}
}
