package experiment

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
)

// hostMark is the share of the budget at which the simulated host compacts, idleCalls how many calls pass after a compaction that changed nothing.
const (
	hostMark  = 0.9
	idleCalls = 8
)

func (r *runner) compactWhenIdle(ctx context.Context, budget int) error {
	if r.idle > 0 {
		r.idle--
		return nil
	}
	before := r.rep.Compactions
	if err := r.compact(ctx, budget); err != nil {
		return err
	}
	if r.rep.Compactions == before {
		r.idle = idleCalls
	}
	return nil
}

// compact asks the engine to compact and verifies what it says: an owning one makes progress or gives a reason, and never asks the runtime; a
// delegating one asks it exactly once.
func (r *runner) compact(ctx context.Context, budget int) error {
	if err := r.sync(ctx); err != nil {
		return err
	}
	asked := r.host.Compactions()
	req := core.CompactRequest{Session: r.id, Budget: budget, Target: core.TargetThreshold, Trigger: "maintain"}
	if r.hosted {
		req.Target, req.Trigger, req.CurrentTokens = core.TargetBudget, "budget", r.host.Tokens()
	}
	res, err := r.sub.Engine.Compact(ctx, req)
	if err != nil {
		return fmt.Errorf("experiment: %q: compact: %w", r.id, err)
	}
	asked = r.host.Compactions() - asked
	switch {
	case r.hosted && asked != 1:
		r.v.fail(RuleCompaction, "a delegating engine asked the runtime %d times", asked)
	case !r.hosted && asked != 0:
		r.v.fail(RuleCompaction, "an engine that owns compaction asked the runtime")
	case res.Compacted && res.TokensAfter >= res.TokensBefore:
		r.v.fail(RuleCompaction, "%d tokens before, %d after", res.TokensBefore, res.TokensAfter)
	case !res.Compacted && res.Reason == "":
		r.v.fail(RuleCompaction, "nothing was compacted, and no reason is given")
	}
	if res.Compacted {
		r.rep.Compactions++
		r.compacted = true
	}
	return nil
}
