package recall

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Run measures all arms of a plan. An arm that cannot be measured has its Error set and does not stop the others; Run itself fails when the plan
// is not valid, when the journal fails, or when ctx ends.
func Run(ctx context.Context, plan Plan) (*Result, error) {
	if err := plan.complete(); err != nil {
		return nil, err
	}
	r := runner{plan: &plan, measures: plan.measures(), digest: plan.Dataset.Digest()}
	arms := make([]ArmResult, len(plan.Arms))
	var open []int
	for i, a := range plan.Arms {
		found, err := r.resume(a, &arms[i])
		if err != nil {
			return nil, err
		}
		if !found {
			open = append(open, i)
		}
	}
	r.total = len(open) * plan.Dataset.Measured() * max(len(plan.Windows), 1)
	group, work := errgroup.WithContext(ctx)
	group.SetLimit(plan.Workers)
	for _, i := range open {
		group.Go(func() error { return r.arm(work, plan.Arms[i], &arms[i]) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return r.result(arms), nil
}

// runner is a run under way.
type runner struct {
	plan     *Plan
	measures []Measure
	digest   string
	quiet    sync.RWMutex

	mu          sync.Mutex
	done, total int
}

// resume looks for a finished result in the journal.
func (r *runner) resume(a Arm, out *ArmResult) (bool, error) {
	if r.plan.Journal == nil || a.Digest == "" {
		return false, nil
	}
	found, err := r.plan.Journal.Lookup(r.plan.key(a, r.digest), out)
	if err != nil {
		return false, fmt.Errorf("recall: resume %q: %w", a.Name, err)
	}
	if found {
		out.Name, out.Settings, out.Resumed = a.Name, a.Settings, true
	}
	return found, nil
}

// arm measures one arm and records it.
func (r *runner) arm(ctx context.Context, a Arm, out *ArmResult) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := cell{plan: r.plan, arm: a, measures: r.measures, quiet: &r.quiet, asked: r.asked}
	if err := c.measure(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		*out = ArmResult{Name: a.Name, Config: a.Digest, Parts: a.Parts, Searchers: a.Searchers, Settings: a.Settings, Error: err.Error()}
		return nil
	}
	c.out.Latency.of(c.out.Questions)
	*out = c.out
	if r.plan.Journal == nil || a.Digest == "" || !worthKeeping(out) {
		return nil
	}
	if err := r.plan.Journal.Record(r.plan.key(a, r.digest), out); err != nil {
		return fmt.Errorf("recall: record %q: %w", a.Name, err)
	}
	return nil
}

// worthKeeping reports whether a result says what the configuration does: what an outage did is measured again.
func worthKeeping(out *ArmResult) bool { return out.Failed == 0 && out.Degraded == 0 }

func (r *runner) asked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if r.plan.Progress != nil {
		r.plan.Progress(r.done, r.total)
	}
}
