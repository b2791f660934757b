package compare

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/dataset"
	"github.com/contextengine/contextengine/experiment/stats"
	"github.com/contextengine/contextengine/experiment/survival"
)

// IdentifierPlan asks how many of the identifiers that an agent needs later are still in the prompt after a compaction (see experiment/survival).
type IdentifierPlan struct {
	Sessions []dataset.Session
	Arms     []survival.Arm
	// Keep are the shares of the history that are to stay, 0.1 to 0.9.
	Keep      []float64
	Counter   core.TokenCounter
	Workers   int
	StatsSeed uint64
	// Progress is called after each conversation; it need not be safe for concurrent use.
	Progress func(done, total int)
}

// Survival is what survived of the identifiers needed later.
type Survival struct {
	Arm  string  `json:"arm"`
	Keep float64 `json:"keep"`
	// Needed counts them, in all conversations and at all cuts.
	Needed int `json:"needed"`
	// Survived is the share that the prompt still says, Bare the share without what an index of identifiers says.
	Survived float64 `json:"survived"`
	Bare     float64 `json:"withoutIndex"`
	// Kept and Index are what the prompt and its index cost, as shares of the history's tokens.
	Kept  float64 `json:"kept"`
	Index float64 `json:"index"`
	// Difference is to the first arm, over conversations; zero for the first.
	Difference stats.Interval `json:"difference,omitzero"`
	// Decision is what is shown, Verdict the same in words; both are empty for the first.
	Decision stats.Decision `json:"decision,omitempty"`
	Verdict  string         `json:"verdict,omitempty"`
}

// Identifiers measures all arms. Conversations in which nothing is needed later do not count; without any the result is empty.
func Identifiers(ctx context.Context, plan IdentifierPlan) ([]Survival, error) {
	rows := make([][]survival.Row, len(plan.Sessions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(plan.Workers, 1))
	done := make(chan struct{}, len(plan.Sessions))
	for i, s := range plan.Sessions {
		group.Go(func() error {
			var err error
			rows[i], err = survival.Measure(ctx, survival.Spec{Session: s, Arms: plan.Arms, Keep: plan.Keep, Counter: plan.Counter})
			if err != nil {
				return fmt.Errorf("compare: identifiers of %s: %w", s.Name(), err)
			}
			done <- struct{}{}
			if plan.Progress != nil {
				plan.Progress(len(done), len(plan.Sessions))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []Survival
	for _, total := range survival.Add(slices.Concat(rows...)) {
		if total.Needed == 0 {
			continue
		}
		s := Survival{
			Arm: total.Arm, Keep: total.Keep, Needed: total.Needed, Survived: total.Survival() / 100, Bare: total.WithoutIndex() / 100,
			Kept: total.KeptShare() / 100, Index: total.IndexShare() / 100,
		}
		if first := plan.Arms[0].Name; total.Arm != first {
			d, err := stats.Difference(shares(rows, first, total.Keep), shares(rows, total.Arm, total.Keep), stats.Options{Seed: plan.StatsSeed})
			if err != nil {
				return nil, fmt.Errorf("compare: identifiers: %w", err)
			}
			v := stats.Share(1).Judge(first, total.Arm, d)
			s.Difference, s.Decision, s.Verdict = v.Effect, v.Decision, v.Text
		}
		out = append(out, s)
	}
	return out, nil
}

// shares returns for every conversation a value for each identifier that is needed at one of its cuts: 1 where it survived, else 0. Their mean is the share that is
// told, so that a difference is that of the shares.
func shares(rows [][]survival.Row, arm string, keep float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i, of := range rows {
		for _, r := range of {
			if r.Arm == arm && r.Keep == keep && r.Needed > 0 {
				for n := range r.Needed {
					survived := 0.0
					if n < r.Survived {
						survived = 1
					}
					out[i] = append(out[i], survived)
				}
			}
		}
	}
	return out
}
