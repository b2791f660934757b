package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/contextengine/contextengine/core"
)

// ownershipChecks ask who compacts, and what a compactor passes on that leaves it to the runtime.
func ownershipChecks() []Check {
	delegate := []Need{NeedDelegate}
	return []Check{
		{ID: "patch.owns", Promise: 3, Suite: SuiteCompactor, compactor: patchOwns,
			Rule: "OwnsCompaction never changes"},
		{ID: "patch.whole", Promise: 3, Suite: SuiteCompactor, compactor: patchWhole, Needs: delegate,
			Rule: "a delegating compactor passes the request and the result on with every field"},
		{ID: "patch.host-fails", Promise: 3, Suite: SuiteCompactor, compactor: patchHostFails, Needs: delegate,
			Rule: "a runtime that fails fails the compaction, with its error, asked once; one whose time is over is not waited for"},
		{ID: "patch.runtime", Promise: 3, Suite: SuiteCompactor, compactor: patchRuntime, Needs: delegate, once: true,
			Rule: "a runtime has the time that the caller's context has, no less, and what it answers is passed back, also where that context ended just before"},
	}
}

func patchOwns(r *compactorRun) string {
	first := r.compactor.OwnsCompaction()
	for n, mood := range []Mood{Honest, Failing, Honest, Honest} {
		r.model.Set(mood)
		r.host.setFail(n%3 == 1)
		_, _ = r.compactor.Compact(r.ctx(), r.task(n%2 == 0))
		if got := r.compactor.OwnsCompaction(); got != first {
			return fmt.Sprintf("OwnsCompaction() = %v, then %v", first, got)
		}
	}
	return r.ownsStill()
}

// ownsStill lets models and the runtime fail often. Every call is looked at, see eachCall.
func (r *compactorRun) ownsStill() string {
	if r.pieces = enoughPieces(); !r.compactor.OwnsCompaction() {
		r.pieces = r.pieces[:1]
	}
	r.host.setFail(true)
	defer r.host.setFail(false)
	for _, mood := range []Mood{Failing, Empty, Lying} {
		r.model.Set(mood)
		for range manyFailures {
			_, _ = r.compactor.Compact(r.ctx(), r.task(true))
		}
	}
	return ""
}

func patchWhole(r *compactorRun) string {
	var want core.CompactResult
	filled(&want)
	want.Summary, want.Reason = " \n"+want.Summary+" \n", "\t"+want.Reason+" " // as they are
	var asked core.CompactRequest
	r.host.onCompact = func(req core.CompactRequest) core.CompactResult {
		asked = core.Compaction{Request: req}.Clone().Request // the compactor may write to its own afterwards
		return want
	}
	for n, compacted := range []bool{true, false, true, true, false, false, false, true} {
		want.OK, want.Compacted = compacted, compacted
		switch n { // what a runtime says little of, nobody adds to
		case 5:
			want = core.CompactResult{OK: true}
		case 6:
			want = core.CompactResult{}
		case 7:
			want = core.CompactResult{OK: true, Compacted: true}
		}
		c := r.rich(compacted)
		if n == 2 {
			c.Target = 2 * c.Tokens // forced, below every mark
		}
		calls := r.host.Compacts()
		asking := func(id core.SessionID) (req core.CompactRequest) {
			filled(&req)
			req.Instructions = "\n" + req.Instructions + "  "
			switch n {
			case 3:
				req.Force, c.Force = false, false
			case 4:
				req = core.CompactRequest{} // what a host does not say, nobody adds
			}
			req.Session = id
			return req
		}
		c.Request = asking(c.Session)
		if n == 0 {
			c.Entries, c.Cost, c.Protected, c.Left = c.Entries[:1], c.Cost[:1], 0, 0
		}
		sent := asking(c.Session)
		p, err := r.compactor.Compact(r.ctx(), c)
		if err != nil {
			return fmt.Sprintf("Compact: error %v, want none", err)
		}
		if d := differs(asked, sent); d != "" {
			return "the request that reached the runtime: " + d
		}
		if p.Delegated == nil {
			return "the patch does not hold the runtime's result"
		}
		got := *p.Delegated
		got.Delegated = want.Delegated
		if d := differs(got, want); d != "" {
			return "the runtime's result in the patch: " + d
		}
		if n := r.host.Compacts() - calls; n != 1 {
			return fmt.Sprintf("the runtime, which answers compacted %v, was asked %d times, want once", compacted, n)
		}
		if d := differs(p, core.Patch{Delegated: p.Delegated}); d != "" || len(r.published) > 0 {
			return fmt.Sprintf("the patch holds more than the runtime's result: %s, and %d were published before", d, len(r.published))
		}
	}
	return ""
}

func patchHostFails(r *compactorRun) string {
	r.host.setFail(true)
	calls := r.host.Compacts()
	p, err := r.compactor.Compact(r.ctx(), r.task(true))
	if !errors.Is(err, core.ErrUnavailable) || p.Delegated != nil && p.Delegated.Compacted {
		return fmt.Sprintf("Compact where the runtime fails: error %v, result %+v, want the runtime's error", err, p.Delegated)
	}
	if n := r.host.Compacts() - calls; n != 1 {
		return fmt.Sprintf("a runtime that fails was asked %d times, want once", n)
	}
	r.host.setFail(false)
	for _, want := range runtimeErrors() {
		host := &failingHost{Host: r.host, err: want}
		c := r.task(true)
		c.Host = host
		p, err := r.compactor.Compact(r.ctx(), c)
		if !errors.Is(err, want) || p.Delegated != nil && p.Delegated.Compacted {
			return fmt.Sprintf("Compact where the runtime fails with %q: error %v, result %+v, want the runtime's error", want, err, p.Delegated)
		}
		if n := host.asked.Load(); n != 1 {
			return fmt.Sprintf("a runtime that fails with %q was asked %d times, want once", want, n)
		}
	}
	ctx, cancel := cancellable(r.ctx())
	defer cancel()
	late := &lateHost{Host: r.host, asked: cancel}
	c := r.task(true)
	c.Host = late
	if _, err := r.compactor.Compact(ctx, c); !errors.Is(err, context.Canceled) && err != nil {
		return fmt.Sprintf("Compact whose time was over while the runtime worked: error %v, want context.Canceled", err)
	}
	return ""
}

// runtimeErrors are what a runtime may fail with: what core names, what a runtime's own time and connections end in, and what nobody knows.
func runtimeErrors() []error {
	return append(coreErrors(), context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, errors.New("conformance: of the runtime's own"))
}

// failingHost fails with one error.
type failingHost struct {
	*Host
	err   error
	asked atomic.Int64
}

func (h *failingHost) Compact(context.Context, core.CompactRequest) (core.CompactResult, error) {
	h.asked.Add(1)
	return core.CompactResult{}, fmt.Errorf("conformance: compact: injected: %w", h.err)
}

// lateHost answers when its caller's time is over.
type lateHost struct {
	*Host
	asked func()
}

func (h *lateHost) Compact(ctx context.Context, _ core.CompactRequest) (core.CompactResult, error) {
	h.asked()
	<-ctx.Done()
	return core.CompactResult{}, fmt.Errorf("conformance: compact: %w", ctx.Err())
}
