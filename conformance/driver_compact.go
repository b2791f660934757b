package conformance

import (
	"context"
	"errors"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// compaction is one call of Compact with what must hold for it.
type compaction struct {
	d     *driver
	t     *track
	req   core.CompactRequest
	res   core.CompactResult
	err   error
	owns  bool
	calls int
}

// compact asks for a compaction, sometimes again and again.
func (d *driver) compact(t *track, o op) {
	req := core.CompactRequest{
		Session: t.id, Budget: d.plan.Budget, Force: o.N%2 == 0, Trigger: "manual",
		Target: []core.CompactionTarget{core.TargetThreshold, core.TargetBudget}[o.N/2%2],
	}
	if d.plan.Managed && !t.open && o.N%3 == 0 {
		req.Transcript = d.handed(t)
	}
	d.env.Host.setFail(o.N%9 == 8)
	d.troubled = d.troubled || o.N%9 == 8
	c, excused := d.compactOnce(t, req)
	d.env.Host.setFail(false)
	if excused || d.failed != "" || !c.owns || c.err != nil || o.N%4 != 0 {
		return
	}
	d.converge(c)
}

func (d *driver) compactOnce(t *track, req core.CompactRequest) (*compaction, bool) {
	c := &compaction{d: d, t: t, req: req, owns: d.engine.Info().OwnsCompaction}
	calls := d.env.Host.Compacts()
	excused, err := d.call("compact", true, func(ctx context.Context) (err error) {
		c.res, err = d.engine.Compact(ctx, req)
		return err
	})
	c.err, c.calls = err, d.env.Host.Compacts()-calls
	t.outgrew, t.moved = true, true
	if c.owns {
		t.compacted = true
	}
	if excused {
		t.prev = nil
		if c.owns && c.calls != 0 {
			d.fail("compact.owner", "compact asked the runtime %d times", c.calls)
		}
		return c, true
	}
	if errors.Is(err, core.ErrNeedTranscript) && req.Transcript == nil {
		return c, false
	}
	for _, check := range compactChecks {
		if _, ok := d.checks[check.ID]; !ok {
			continue
		}
		if applies := compactApplies[check.ID]; applies == nil || applies(c) {
			d.saw(check.ID)
		}
		if text := check.compact(c); text != "" {
			d.fail(check.ID, "%s (result %+v, error %v)", text, c.res, err)
		}
	}
	return c, false
}

// compactRounds is how many compactions in a row may find something to do.
const compactRounds = 25

// converge repeats a forced compaction until nothing is left to do. Each round must begin where the one before ended.
func (d *driver) converge(c *compaction) {
	d.saw("compact.converges")
	req := c.req
	req.Force = true
	last := c
	for range compactRounds {
		next, excused := d.compactOnce(c.t, req)
		if excused || next.err != nil || d.failed != "" {
			return
		}
		if last.res.TokensAfter > 0 && next.res.TokensBefore > last.res.TokensAfter {
			d.fail("compact.converges", "a compaction ended at %d tokens, the next begins at %d", last.res.TokensAfter, next.res.TokensBefore)
			return
		}
		if !next.res.Compacted {
			return
		}
		last = next
	}
	d.fail("compact.converges", "%d compactions in a row each found something to do, the last from %d to %d tokens",
		compactRounds, last.res.TokensBefore, last.res.TokensAfter)
}

// compactChecks look at every call of Compact that no fault excuses.
var compactChecks = []Check{
	{ID: "compact.owner", Promise: 3, Suite: SuiteEngine, compact: compactOwner, Needs: []Need{NeedOwner},
		Rule: "an engine that owns compaction never asks the runtime to compact"},
	{ID: "compact.exactly-once", Promise: 3, Suite: SuiteEngine, compact: compactExactlyOnce, Needs: []Need{NeedDelegate},
		Rule: "a delegating engine asks the runtime exactly once per compact, and never else"},
	{ID: "compact.passed-through", Promise: 3, Suite: SuiteEngine, compact: compactPassedThrough, Needs: []Need{NeedDelegate},
		Rule: "a delegating engine passes the runtime's result through, failures included"},
	{ID: "compact.silent", Promise: 3, Suite: SuiteEngine, compact: compactSilent,
		Rule: "no engine answers a forced compact over budget with a silent no-op"},
	{ID: "compact.progress", Promise: 4, Suite: SuiteEngine, compact: compactProgress, Needs: []Need{NeedOwner},
		Rule: "a compaction that did something leaves fewer tokens than before, one that did not says why, in words that hosts know where all is well"},
	{ID: "compact.fallback", Promise: 4, Suite: SuiteEngine, compact: compactFallback, Needs: []Need{NeedOwner},
		Rule: "a model that fails, hangs, lies or says nothing does not fail a compaction"},
}

// compactApplies says when a rule has something to look at in a compaction; those that are not named always have.
var compactApplies = map[string]func(*compaction) bool{
	"compact.silent":   func(c *compaction) bool { return c.req.Force && c.err == nil && !c.res.Compacted },
	"compact.fallback": func(c *compaction) bool { return c.d.env.Model.current() != Honest },
}

func compactOwner(c *compaction) string {
	if c.calls == 0 && !c.res.Delegated {
		return ""
	}
	return "the runtime was asked"
}

func compactExactlyOnce(c *compaction) string {
	switch c.calls {
	case 1:
		return ""
	case 0:
		return "the runtime was not asked"
	}
	return "the runtime was asked more than once"
}

func compactPassedThrough(c *compaction) string {
	want, wantErr := c.d.env.Host.lastCompact()
	if c.calls == 0 {
		return ""
	}
	if wantErr != nil {
		if c.err == nil && c.res.OK {
			return "the runtime failed, the engine says it did not"
		}
		return ""
	}
	got := c.res
	got.Delegated, want.Delegated = false, false
	if c.err != nil || got != want {
		return "the runtime's result was another one"
	}
	return ""
}

func compactSilent(c *compaction) string {
	if !c.req.Force || c.err != nil || c.res.Compacted {
		return ""
	}
	if c.res.Reason == "" {
		return "nothing was compacted and no reason given"
	}
	if c.owns && c.req.Budget > 0 && c.res.TokensBefore > c.req.Budget && strings.Contains(c.res.Reason, core.ReasonBelowThreshold) {
		return "over budget is not below any threshold"
	}
	return ""
}

func compactProgress(c *compaction) string {
	switch {
	case c.err != nil || c.res.Delegated:
	case c.res.Compacted && c.res.TokensAfter >= c.res.TokensBefore:
		return "compacted to no less than before"
	case c.res.Compacted && !c.res.OK:
		return "compacted, but not ok"
	case !c.res.Compacted && c.res.Reason == "":
		return "not compacted, without a reason"
	case !c.res.Compacted && c.res.OK && !benign(c.res.Reason):
		return "not compacted, for a reason that hosts do not know"
	}
	return ""
}

func compactFallback(c *compaction) string {
	if c.err != nil {
		return "a compaction without any fault in the store fails"
	}
	return ""
}
