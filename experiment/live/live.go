// Package live says how the arms of a running experiment do: the sessions each has, what their windows cost, what came of recall, what
// failed, and the outcomes that hosts and people gave them.
//
//	status, err := live.Read(ctx, live.Source{Stores: stores, Agents: []string{"main"}})
//	for _, d := range status.Differences { fmt.Println(d.Verdict) }
//
// It reads what engines keep anyway (views and outcomes, see engine.Armed and core.Scorer) and changes nothing. A session is the unit: of an
// arm's figures each session gives one value, and differences between arms come with intervals over sessions. Arms are not paired here, since a session
// belongs to one arm only.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/experiment/stats"
)

// Source is where sessions are.
type Source struct {
	// Stores are the stores of the arms, each once.
	Stores []core.Store
	// Agents limits it to these; all when empty.
	Agents []string
	// Arms are the names of the configured arms, in their order: an arm without sessions is listed, too. The first one with sessions is what the
	// others are compared with.
	Arms []string
	// CachePrice is what a token that a prompt cache has costs, relative to one that it has not: 0 to 1.
	CachePrice float64
}

// Status is the state of an experiment.
type Status struct {
	Arms []Arm `json:"arms"`
	// Unassigned is the number of sessions that belong to no arm: they began before it.
	Unassigned int `json:"unassigned"`
	// Differences are those of every metric between the first arm and each other.
	Differences []Difference `json:"differences,omitempty"`
}

// Arm is what is known of an arm.
type Arm struct {
	Name     string `json:"name"`
	Sessions int    `json:"sessions"`
	Turns    int    `json:"turns"`
	Messages int    `json:"messages"`
	// Metrics are means over sessions with their intervals, by name in alphabetical order.
	Metrics []Metric `json:"metrics,omitempty"`
}

// Metric is one figure of an arm.
type Metric struct {
	Name string `json:"name"`
	// Outcome says that a host or a person gave it; otherwise the engine did.
	Outcome bool `json:"outcome,omitempty"`
	stats.Interval
}

// Difference is what another arm has more than the first one.
type Difference struct {
	Metric   string         `json:"metric"`
	From     string         `json:"from"`
	To       string         `json:"to"`
	Interval stats.Interval `json:"difference"`
	// Decision is what is shown, Verdict the same in words.
	Decision stats.Decision `json:"decision"`
	Verdict  string         `json:"verdict"`
}

// values are the figures of an arm, a value for every session that has one.
type values struct {
	arm     Arm
	figures map[string][]float64
	given   map[string]bool
}

// Read collects the state of an experiment.
func Read(ctx context.Context, src Source) (Status, error) {
	var st Status
	arms := make(map[string]*values)
	of := func(name string) *values {
		if arms[name] == nil {
			arms[name] = &values{arm: Arm{Name: name}, figures: make(map[string][]float64), given: make(map[string]bool)}
		}
		return arms[name]
	}
	for _, name := range src.Arms {
		of(name)
	}
	for _, store := range src.Stores {
		views, ok := core.As[core.ViewStore](store)
		if !ok {
			return st, fmt.Errorf("live: a store keeps no views, so it does not know which arm a session belongs to: %w", errors.ErrUnsupported)
		}
		agents := make(map[string]map[core.SessionID]string)
		err := eachView(ctx, views, src.Agents, func(v *core.View) {
			if core.Reserved(v.Session.Session) || v.Len() == 0 && v.Turns == 0 {
				return // nothing was said in it
			}
			if agents[v.Session.Agent] == nil {
				agents[v.Session.Agent] = make(map[core.SessionID]string)
			}
			if v.Arm == "" {
				st.Unassigned++
				return
			}
			agents[v.Session.Agent][v.Session] = v.Arm
			of(v.Arm).take(v, src.CachePrice)
		})
		if err != nil {
			return st, fmt.Errorf("live: %w", err)
		}
		for agent, sessions := range agents {
			outcomes, err := engine.OutcomesIn(ctx, store, agent)
			if err != nil {
				return st, fmt.Errorf("live: %w", err)
			}
			for id, scores := range bySession(outcomes) {
				if arm := sessions[id]; arm != "" {
					of(arm).score(scores)
				}
			}
		}
	}
	for _, v := range arms {
		st.Arms = append(st.Arms, v.summary())
	}
	slices.SortFunc(st.Arms, func(a, b Arm) int {
		return cmp.Or(cmp.Compare(place(src.Arms, a.Name), place(src.Arms, b.Name)), cmp.Compare(a.Name, b.Name))
	})
	st.compare(arms)
	return st, nil
}

func place(names []string, name string) int {
	if at := slices.Index(names, name); at >= 0 {
		return at
	}
	return len(names)
}

func eachView(ctx context.Context, views core.ViewStore, agents []string, visit func(*core.View)) error {
	if len(agents) == 0 {
		agents = []string{""}
	}
	for _, agent := range agents {
		q := core.ViewQuery{Agent: agent, Limit: core.MaxPage}
		for {
			ids, err := views.ListViews(ctx, q)
			if err != nil {
				return err
			}
			for _, id := range ids {
				v, err := views.LoadView(ctx, id)
				if errors.Is(err, core.ErrNotFound) {
					continue // it was dropped meanwhile
				}
				if err != nil {
					return err
				}
				visit(&v)
			}
			if len(ids) < q.Limit {
				break
			}
			q.After = ids[len(ids)-1]
		}
	}
	return nil
}

func (v *values) add(name string, x float64) { v.figures[name] = append(v.figures[name], x) }

// score adds the outcomes of one session: of each metric the one given to the session, else the mean of its turns.
func (v *values) score(outcomes []engine.Outcome) {
	sums := make(map[string][]float64)
	whole := make(map[string]float64)
	for _, o := range outcomes {
		if o.Turn == 0 {
			whole[o.Name] = o.Value
		} else {
			sums[o.Name] = append(sums[o.Name], o.Value)
		}
	}
	for name, turns := range sums {
		if _, ok := whole[name]; !ok {
			total := 0.0
			for _, x := range turns {
				total += x
			}
			whole[name] = total / float64(len(turns))
		}
	}
	for name, x := range whole {
		v.add(name, x)
		v.given[name] = true
	}
}

func bySession(outcomes []engine.Outcome) map[core.SessionID][]engine.Outcome {
	out := make(map[core.SessionID][]engine.Outcome)
	for _, o := range outcomes {
		out[o.Session] = append(out[o.Session], o)
	}
	return out
}

func (v *values) summary() Arm {
	arm := v.arm
	for name, figures := range v.figures {
		arm.Metrics = append(arm.Metrics, Metric{Name: name, Outcome: v.given[name], Interval: MeasureOf(name, v.given[name], figures).Mean(stats.Independent(figures))})
	}
	slices.SortFunc(arm.Metrics, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return arm
}

func (st *Status) compare(arms map[string]*values) {
	first := slices.IndexFunc(st.Arms, func(a Arm) bool { return a.Sessions > 0 })
	if first < 0 {
		return
	}
	base := st.Arms[first]
	for _, other := range st.Arms[first+1:] {
		for _, m := range base.Metrics {
			a, b := arms[base.Name].figures[m.Name], arms[other.Name].figures[m.Name]
			if len(b) == 0 {
				continue
			}
			v := MeasureOf(m.Name, m.Outcome, a, b).Judge(base.Name, other.Name, stats.Unpaired(a, b))
			st.Differences = append(st.Differences, Difference{
				Metric: m.Name, From: base.Name, To: other.Name, Interval: v.Effect, Decision: v.Decision, Verdict: v.Text,
			})
		}
	}
}
