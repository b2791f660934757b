package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// acting is a compactor that is a function, and owns compaction unless it is told not to.
type acting struct {
	do    func(ctx context.Context, c core.Compaction) (core.Patch, error)
	asks  int
	lends bool
}

func (a *acting) OwnsCompaction() bool { return !a.lends }

func (a *acting) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	a.asks++
	return a.do(ctx, c)
}

// actingFixture is a session of ten messages of 25 tokens each, of which a compaction leaves two alone.
func actingFixture(t *testing.T, a *acting, change ...func(*engine.Config, *engine.Parts)) *fixture {
	t.Helper()
	f := newFixture(t, append(change, func(_ *engine.Config, p *engine.Parts) { p.Compactor = a })...)
	for i := range 5 {
		f.ingest(user(fmt.Sprint("n", 2*i, strings.Repeat(" word", 19))), assistant(fmt.Sprint("n", 2*i+1, strings.Repeat(" word", 19))))
	}
	return f
}

// TestForcedCompactionEndsAtTheBudget: where the compactor does nothing, a forced compaction lets the oldest messages leave, as many as it takes to be at most
// three fifths of the budget; what costs just the budget is left as it is.
func TestForcedCompactionEndsAtTheBudget(t *testing.T) {
	for _, tc := range []struct{ budget, after int }{{251, 250}, {250, 250}, {249, 138}, {248, 113}, {200, 88}, {150, 63}} {
		f := actingFixture(t, &acting{do: func(context.Context, core.Compaction) (core.Patch, error) { return core.Patch{}, nil }})
		res := f.compact(tc.budget)
		if !res.OK || res.Compacted != (tc.after < 250) || res.TokensBefore != 250 || res.TokensAfter != tc.after {
			t.Errorf("budget %d: %+v, want %d tokens of 250", tc.budget, res, tc.after)
		}
	}
}

// TestCompactionSaysWhy: where nothing came of a compaction its reason is one that hosts know: a compactor's own words stand behind it. A compactor that failed is
// named, and what came of it all the same counts.
func TestCompactionSaysWhy(t *testing.T) {
	fault := errors.New("out of paper")
	half := func(c core.Compaction) core.Patch {
		r := core.Replacement{Kind: "summary", Text: "the first half"}
		for _, e := range c.Entries[:5] {
			r.Entries = append(r.Entries, e.ID)
		}
		return core.Patch{Replace: []core.Replacement{r}}
	}
	for name, tc := range map[string]struct {
		patch     func(c core.Compaction) core.Patch
		err       error
		budget    int
		ok, did   bool
		reason    string
		unhealthy bool
	}{
		"nothing":               {budget: 300, ok: true, reason: core.ReasonAlreadyCompacted},
		"own words":             {patch: func(core.Compaction) core.Patch { return core.Patch{Reason: "not today"} }, budget: 300, ok: true, reason: core.ReasonAlreadyCompacted + ": not today"},
		"known words":           {patch: func(core.Compaction) core.Patch { return core.Patch{Reason: "it is " + core.ReasonUnderTarget} }, budget: 300, ok: true, reason: "it is " + core.ReasonUnderTarget},
		"known words, too":      {patch: func(core.Compaction) core.Patch { return core.Patch{Reason: core.ReasonBelowThreshold} }, budget: 300, ok: true, reason: core.ReasonBelowThreshold},
		"something":             {patch: half, budget: 300, ok: true, did: true},
		"something and a fault": {patch: half, err: fault, budget: 300, ok: true, did: true, unhealthy: true},
		"a fault":               {err: fault, budget: 300, reason: fault.Error(), unhealthy: true},
		"a fault, over budget":  {err: fault, budget: 200, ok: true, did: true, unhealthy: true},
		"unasked":               {budget: 200, reason: "newest messages alone exceed the target"},
	} {
		f := actingFixture(t, &acting{do: func(_ context.Context, c core.Compaction) (p core.Patch, err error) {
			if tc.patch != nil {
				p = tc.patch(c)
			}
			return p, tc.err
		}})
		f.assemble(200)
		res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: tc.budget, Force: name != "unasked"})
		if err != nil {
			t.Fatal(err)
		}
		if res.OK != tc.ok || res.Compacted != tc.did || res.Reason != tc.reason {
			t.Errorf("%s: %+v, want OK %t, compacted %t, reason %q", name, res, tc.ok, tc.did, tc.reason)
		}
		if f.problem("compactor") != tc.unhealthy {
			t.Errorf("%s: Health = %+v", name, f.engine.Info().Health)
		}
	}
}

// TestDelegatedCompactionThatFails: a compaction that is the runtime's is asked for once, and what came of it is told as delegated. A caller that has given up is told
// so, whatever the compactor calls it; a runtime that failed is told, and is in Health.
func TestDelegatedCompactionThatFails(t *testing.T) {
	fault := errors.New("the runtime is away")
	var cancel context.CancelFunc
	for name, tc := range map[string]struct {
		do    func() (core.Patch, error)
		early bool
		want  error
		asks  int
		res   core.CompactResult
	}{
		"nothing":               {do: func() (core.Patch, error) { return core.Patch{Reason: "busy"}, nil }, asks: 1, res: core.CompactResult{Reason: "busy", Delegated: true}},
		"a fault":               {do: func() (core.Patch, error) { return core.Patch{}, fault }, want: fault, asks: 1},
		"given up before":       {do: func() (core.Patch, error) { return core.Patch{}, nil }, early: true, want: context.Canceled},
		"given up meanwhile":    {do: func() (core.Patch, error) { cancel(); return core.Patch{}, fault }, want: context.Canceled, asks: 1},
		"done at the last gasp": {do: func() (core.Patch, error) { return core.Patch{Delegated: &core.CompactResult{OK: true}}, nil }, asks: 1, res: core.CompactResult{OK: true, Delegated: true}},
	} {
		a := &acting{lends: true, do: func(context.Context, core.Compaction) (core.Patch, error) { return tc.do() }}
		f := actingFixture(t, a)
		var ctx context.Context
		if ctx, cancel = context.WithCancel(t.Context()); tc.early {
			cancel()
		}
		res, err := f.engine.Compact(ctx, core.CompactRequest{Session: f.id, Force: true})
		cancel()
		if !errors.Is(err, tc.want) || a.asks != tc.asks || res != tc.res {
			t.Errorf("%s: %+v, %v, asked %d times, want %+v, %v, %d times", name, res, err, a.asks, tc.res, tc.want, tc.asks)
		}
		if f.problem("host") != (name == "a fault") {
			t.Errorf("%s: Health = %+v", name, f.engine.Info().Health)
		}
	}
}

// TestCompactionOfACallerThatGaveUp: a caller that gives up while the compactor works is told so: where the compactor failed, where others changed the session
// so that the work has to be done again, and where another compaction is waited for.
func TestCompactionOfACallerThatGaveUp(t *testing.T) {
	all := func(ctx context.Context, c core.Compaction) core.Patch {
		p, _ := retold{}.Compact(ctx, c)
		return p
	}
	t.Run("the compactor failed", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := actingFixture(t, &acting{do: func(context.Context, core.Compaction) (core.Patch, error) {
			cancel()
			return core.Patch{}, errors.New("gone")
		}})
		if res, err := f.engine.Compact(ctx, core.CompactRequest{Session: f.id, Budget: 200, Force: true}); !errors.Is(err, context.Canceled) || f.problem("compactor") {
			t.Errorf("%+v, %v, Health %+v", res, err, f.engine.Info().Health)
		}
	})
	for _, parts := range []bool{false, true} {
		for _, gaveUp := range []bool{false, true} {
			t.Run(fmt.Sprintf("erased meanwhile, parts %t, gave up %t", parts, gaveUp), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var f *fixture
				a := &acting{}
				a.do = func(ctx context.Context, c core.Compaction) (core.Patch, error) {
					if a.asks == 1 {
						f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: f.ids(f.entry("n3").Text())})
						if gaveUp {
							cancel()
						}
					}
					if !parts {
						return all(ctx, c), nil
					}
					if err := c.Publish(ctx, all(ctx, c)); (err == nil) == (a.asks == 1) {
						t.Errorf("call %d: Publish = %v", a.asks, err)
					}
					return core.Patch{}, nil
				}
				f = actingFixture(t, a)
				res, err := f.engine.Compact(ctx, core.CompactRequest{Session: f.id, Budget: 200, Force: true})
				if gaveUp {
					if !errors.Is(err, context.Canceled) || a.asks != 1 {
						t.Errorf("%+v, %v, asked %d times", res, err, a.asks)
					}
				} else if err != nil || !res.Compacted || a.asks != 2 || res.TokensAfter > 200 {
					t.Errorf("%+v, %v, asked %d times, want another try that is published", res, err, a.asks)
				}
			})
		}
	}
	t.Run("another one is waited for", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var f *fixture
		f = actingFixture(t, &acting{do: func(inner context.Context, c core.Compaction) (core.Patch, error) {
			cancel()
			if res, err := f.engine.Compact(ctx, core.CompactRequest{Session: f.id, Budget: 200, Force: true}); !errors.Is(err, context.Canceled) {
				t.Errorf("the second one: %+v, %v", res, err)
			}
			return all(inner, c), nil
		}})
		for range 2 { // nothing is left behind that the next one would wait for
			if res := f.compact(150); !res.OK {
				t.Errorf("%+v", res)
			}
		}
	})
}

// TestQuarantinedCompaction: an engine that is set aside leaves compaction to a runtime that has one, and fails where it has none.
func TestQuarantinedCompaction(t *testing.T) {
	for _, has := range []bool{false, true} {
		host, broken := &compacts{}, &failing{Store: memory.New(), err: errors.New("disk on fire")}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
			if p.Store = broken; has {
				p.Host = host
			}
		})
		for range 3 {
			_, _ = f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true})
		}
		broken.err = nil
		host.asked = 0
		res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true})
		if has && (err != nil || !res.Compacted || !res.Delegated || host.asked != 1) || !has && !errors.Is(err, core.ErrQuarantined) {
			t.Errorf("with a runtime that compacts %t: %+v, %v, asked %d times", has, res, err, host.asked)
		}
	}
}
