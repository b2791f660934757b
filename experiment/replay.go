package experiment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// Replay feeds a conversation message by message through an engine, assembles a prompt wherever a model was called, compacts where that is due, and
// verifies all of it.
//
// An engine that owns compaction is driven standing alone: it gets every message by Ingest. Any other gets the transcript of a simulated
// host, which compacts on request. A broken rule is no error but a Violation in the report; an error means that the replay could not be
// finished, and the report then holds what came before.
func Replay(ctx context.Context, spec Spec) (Report, error) {
	return replay(ctx, spec, nil)
}

func replay(ctx context.Context, spec Spec, m *meter) (rep Report, err error) {
	if err := spec.complete(); err != nil {
		return Report{}, err
	}
	if m == nil {
		m = newMeter(spec.Counter)
	}
	r := &runner{spec: spec, v: newVerifier(m, spec.Session.Format)}
	r.host = NewSimHost(spec.Budget, r.cost)
	r.id = core.SessionID{Agent: spec.Agent, Session: fmt.Sprintf("%s@%d+%s", spec.Session.Name(), spec.Budget, spec.Arm.Name)}
	if spec.Arm.Lasting {
		r.id.Session += "+" + rand.Text()
	}
	r.rep = newReport(spec)
	if r.sub, err = spec.Arm.Open(ctx, r.host, r.id); err != nil {
		return r.rep, fmt.Errorf("experiment: open %q: %w", spec.Arm.Name, err)
	}
	defer func() {
		if r.sub.Close != nil {
			err = errors.Join(err, r.sub.Close(context.WithoutCancel(ctx)))
		}
	}()
	if r.sub.Store == nil {
		if s, ok := r.sub.Engine.(interface{ Store() core.Store }); ok {
			r.sub.Store = s.Store()
		}
	}
	info := r.sub.Engine.Info()
	r.hosted = !info.OwnsCompaction
	r.rep.Engine, r.rep.Parts = info.ID, info.Parts
	if err = r.run(ctx); err == nil {
		err = r.readBack(ctx)
	}
	r.finish()
	if spec.Arm.Lasting && !spec.Keep {
		err = errors.Join(err, r.erase(context.WithoutCancel(ctx)))
	}
	return r.rep, err
}

// runner is one replay under way.
type runner struct {
	spec   Spec
	sub    Subject
	host   *SimHost
	id     core.SessionID
	hosted bool
	v      *verifier
	rep    Report
	ids    []string
	slide  sliding
	// hosting is the same with a host's own compaction.
	hosting hosting
	last    *prompt
	// history is what the messages so far cost; compacted says that something was compacted since the last call.
	history   int
	compacted bool
	// idle is the number of calls to wait after a compaction that changed nothing.
	idle     int
	addition string
	stopped  bool
}

func (r *runner) cost(m message.Message) int {
	msgs, _, err := r.v.meter.prompt([]message.Message{m}, r.spec.Session.Format)
	if err != nil {
		return 0
	}
	n := 0
	for _, s := range msgs {
		n += s.tokens
	}
	return n
}

func (r *runner) run(ctx context.Context) error {
	msgs := r.spec.Session.Messages
	if r.spec.Arm.Redact != nil {
		msgs = slices.Clone(msgs)
		for i := range msgs {
			msgs[i] = r.spec.Arm.Redact(msgs[i])
		}
	}
	jitter := mathrand.New(mathrand.NewPCG(r.spec.Seed, 1))
	fed := 0
	for n, at := range callsOf(msgs) {
		if err := r.feed(ctx, msgs[fed:at.behind]); err != nil {
			return err
		}
		fed = at.behind
		budget := r.spec.Budget
		if r.spec.Jitter > 0 {
			budget = max(int(float64(budget)*(1+r.spec.Jitter*(2*jitter.Float64()-1))), 1)
		}
		r.v.call = n + 1
		if err := r.call(ctx, at, budget); err != nil || r.stopped {
			return err
		}
	}
	r.v.call = 0
	if err := r.feed(ctx, msgs[fed:]); err != nil {
		return err
	}
	return r.sync(ctx)
}

// feed gives messages to the engine, or to the host.
func (r *runner) feed(ctx context.Context, msgs []message.Message) error {
	for _, m := range msgs {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("experiment: %q: %w", r.id, err)
		}
		if err := r.v.tell(m); err != nil {
			return err
		}
		r.history += r.v.cost[len(r.v.cost)-1].tokens
		r.host.Say(m)
		if r.hosted {
			continue
		}
		res, err := r.sub.Engine.Ingest(ctx, core.IngestRequest{Session: r.id, Message: m})
		if err != nil {
			return fmt.Errorf("experiment: %q: ingest message %d: %w", r.id, len(r.v.said)-1, err)
		}
		if len(res.IDs) != 1 {
			return fmt.Errorf("experiment: %q: ingest message %d: %d ids for one message: %w", r.id, len(r.v.said)-1, len(res.IDs), core.ErrInvalid)
		}
		r.ids = append(r.ids, res.IDs[0])
	}
	return nil
}

// sync lets an engine take up what only the host has.
func (r *runner) sync(ctx context.Context) error {
	b, ok := r.sub.Engine.(core.Bootstrapper)
	if !r.hosted || !ok {
		return nil
	}
	if _, err := b.Bootstrap(ctx, core.BootstrapRequest{Session: r.id, Transcript: r.host.Transcript()}); err != nil {
		return fmt.Errorf("experiment: %q: bootstrap: %w", r.id, err)
	}
	return nil
}

// call is one model call: assemble, verify, measure, and compact when it is due.
func (r *runner) call(ctx context.Context, at callAt, budget int) error {
	if r.hosted && r.host.Tokens() > int(hostMark*float64(budget)) {
		if err := r.compact(ctx, budget); err != nil {
			return err
		}
	}
	req := core.AssembleRequest{Session: r.id, Budget: budget, Call: core.CallPrompt}
	req.Settings.Format = r.spec.Session.Format
	if at.loop {
		req.Call = core.CallLoop
	}
	if r.hosted {
		req.Transcript = r.host.Transcript()
	}
	began := time.Now()
	res, err := r.sub.Engine.Assemble(ctx, req)
	r.rep.took(time.Since(began))
	c := Call{Number: r.v.call, Turn: at.turn, Behind: at.behind, Budget: budget, Result: res, Err: err, IDs: r.ids}
	r.rep.Calls++
	r.baseline(budget)
	r.hostPrompt(budget)
	switch {
	case errors.Is(err, core.ErrBudget):
		r.rep.BudgetErrors++
		r.v.refused(err, budget, r.addition)
	case err != nil:
		return fmt.Errorf("experiment: %q: call %d: %w", r.id, r.v.call, err)
	default:
		if err := r.answered(ctx, req, res, at, &c); err != nil {
			return err
		}
	}
	r.stopped = r.spec.Watch != nil && !r.spec.Watch(c)
	if err == nil && !r.hosted && res.CompactionDue && !r.stopped {
		return r.compactWhenIdle(ctx, budget)
	}
	return nil
}

// answered verifies and measures a prompt.
func (r *runner) answered(ctx context.Context, req core.AssembleRequest, res core.AssembleResult, at callAt, c *Call) error {
	p, err := r.v.see(res)
	if err != nil {
		r.v.fail(RulePairs, "the prompt cannot be sent: %v", err)
		return nil
	}
	p.turn = at.turn
	c.Tokens = p.tokens
	r.addition = res.SystemPromptAddition
	if res.Degraded != "" {
		r.rep.Degraded++
	}
	r.rep.sample(r, p, req.Budget)
	if res.Degraded != "" || res.PromptAuthority == core.AuthorityHost {
		// It claims nothing.
		r.v.prev = nil
	} else {
		r.rep.Claims = true
		r.v.check(p, req.Budget, r.compacted)
		if r.spec.Sample > 0 && r.v.call%r.spec.Sample == 0 {
			if err := r.repeat(ctx, req, res, p); err != nil {
				return err
			}
		}
	}
	r.last, r.compacted = p, false
	return nil
}

// repeat makes the same call again, and once more with the engine's own output as the transcript.
func (r *runner) repeat(ctx context.Context, req core.AssembleRequest, res core.AssembleResult, p *prompt) error {
	own := req
	own.Call = core.CallLoop
	own.Transcript = &core.Transcript{Messages: res.Messages}
	for _, again := range []struct {
		what string
		req  core.AssembleRequest
	}{{"the same call", req}, {"the engine's own output", own}} {
		got, err := r.sub.Engine.Assemble(ctx, again.req)
		if err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("experiment: %q: %w", r.id, err)
			}
			r.v.fail(RuleSame, "%s gives an error: %v", again.what, err)
			continue
		}
		q, err := r.v.see(got)
		if err != nil {
			r.v.fail(RuleSame, "%s gives what cannot be sent: %v", again.what, err)
			continue
		}
		if n, _ := common(p.msgs, q.msgs); n != len(p.msgs) || n != len(q.msgs) || p.addition != q.addition {
			r.v.fail(RuleSame, "%s gives %d messages for %d, the first %d of them the same", again.what, len(q.msgs), len(p.msgs), n)
		}
	}
	return nil
}
