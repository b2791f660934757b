package experiment

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/dataset"
)

// Plan is every conversation with every budget through every arm.
type Plan struct {
	Sessions []dataset.Session
	Budgets  []int
	Arms     []Arm
	// Counter recounts prompts; see Spec.
	Counter core.TokenCounter
	Options
	// Workers is how many replays run at once, GOMAXPROCS when it is 0.
	Workers int
	// Progress is called after each replay with the messages replayed so far and in all; it need not be safe for concurrent use.
	Progress func(done, total int)
}

// Run makes all replays of a plan. The reports are ordered by session, then budget, then arm, whatever order they were made in. A
// replay that could not be finished has its Error set and does not stop the others; Run itself fails only when ctx ends.
func Run(ctx context.Context, plan Plan) ([]Report, error) {
	meter := newMeter(plan.Counter)
	reports := make([]Report, len(plan.Sessions)*len(plan.Budgets)*len(plan.Arms))
	total := 0
	for _, s := range plan.Sessions {
		total += len(s.Messages) * len(plan.Budgets) * len(plan.Arms)
	}
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	workers := plan.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	group.SetLimit(workers)
	i := 0
	for _, session := range plan.Sessions {
		for _, budget := range plan.Budgets {
			for _, arm := range plan.Arms {
				at := i
				i++
				group.Go(func() error {
					if err := ctx.Err(); err != nil {
						return err
					}
					spec := Spec{Session: session, Arm: arm, Budget: budget, Counter: plan.Counter, Options: plan.Options}
					rep, err := replay(ctx, spec, meter)
					if err != nil {
						if ctx.Err() != nil {
							return ctx.Err()
						}
						rep.Session, rep.Arm, rep.Budget, rep.Error, rep.err = session.Name(), arm.Name, budget, err.Error(), err
					}
					reports[at] = rep
					mu.Lock()
					defer mu.Unlock()
					done += len(session.Messages)
					if plan.Progress != nil {
						plan.Progress(done, total)
					}
					return nil
				})
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return reports, nil
}
