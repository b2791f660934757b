package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/window"
)

// health remembers what went wrong. It is bounded: one Problem per part and operation.
type health struct {
	mu    sync.Mutex
	list  []core.Problem
	until time.Time
	why   string
}

// quarantineFor is how long a quarantined engine leaves the answers to legacy before it tries again. Bootstrap ends a quarantine at once.
const quarantineFor = time.Minute

func (h *health) problems() []core.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// note records a failure and returns how often it happened.
func (h *health) note(part, op, text string, now time.Time, quarantine bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if quarantine {
		h.until, h.why = now.Add(quarantineFor), text
	}
	for i := range h.list {
		if p := &h.list[i]; p.Part == part && p.Op == op {
			p.Text, p.Quarantined = text, p.Quarantined || quarantine
			p.Count++
			return p.Count
		}
	}
	h.list = append(h.list, core.Problem{Part: part, Op: op, Text: text, Since: now, Count: 1, Quarantined: quarantine})
	return 1
}

// quarantine returns why the engine is quarantined, or "".
func (h *health) quarantine(now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why == "" || now.After(h.until) {
		return ""
	}
	return h.why
}

// restore ends a quarantine.
func (h *health) restore() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why = ""
	for i := range h.list {
		h.list[i].Quarantined = false
	}
}

// failed records an error of the engine and returns it. What is the caller's business (cancellation, bad input, budgets) is not recorded.
func (e *Engine) failed(ctx context.Context, part, op string, err error) error {
	if err == nil {
		return nil
	}
	for _, own := range []error{core.ErrInvalid, core.ErrBudget, core.ErrNeedTranscript, core.ErrClosed, core.ErrRequirement, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, own) {
			return err
		}
	}
	quarantine := op == "assemble" && e.cfg.Failure == FailDegrade
	n := e.health.note(part, op, err.Error(), e.now(), quarantine)
	e.log.ErrorContext(ctx, "context engine failed", "engine", e.info.ID, "part", part, "op", op, "err", err, "count", n, "quarantined", quarantine)
	return err
}

// warn records a failure that did not stop the call.
func (e *Engine) warn(ctx context.Context, part, op string, err error) {
	n := e.health.note(part, op, err.Error(), e.now(), false)
	e.log.WarnContext(ctx, "context engine part failed", "engine", e.info.ID, "part", part, "op", op, "err", err, "count", n)
}

// degraded lets legacy answer, loudly.
func (e *Engine) degraded(ctx context.Context, req core.AssembleRequest, why string) (core.AssembleResult, error) {
	res, err := e.legacy.Assemble(ctx, req)
	if err != nil {
		return res, err
	}
	why, _, _ = strings.Cut(why, "\n")
	res.Degraded = why
	e.log.WarnContext(ctx, "turn answered by legacy", "engine", e.info.ID, "session", req.Session.String(), "reason", why)
	return res, nil
}

// grace is how long a compactor that was told to stop may take to hand over what it has. One that does not return even then is left behind.
const grace = 5 * time.Second

// guarded calls a part. A panic is the part's failure and not the engine's: what it says may be from a conversation, so only its kind is told; where it
// happened is logged.
func (e *Engine) guarded(ctx context.Context, part string, call func(context.Context) error) (err error) {
	ctx, end := e.begin(ctx, part, core.SessionID{})
	defer func() { end(err) }()
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		err = fmt.Errorf("core: the %s panicked (%T): %w", part, r, core.ErrUnavailable)
		if own, ok := r.(runtime.Error); ok {
			err = fmt.Errorf("core: the %s panicked: %s: %w", part, own.Error(), core.ErrUnavailable)
		}
		e.log.ErrorContext(ctx, "context engine part panicked", "engine", e.info.ID, "part", part, "stack", string(debug.Stack()))
	}()
	return call(ctx)
}

// askCompactor runs the compactor. What it returns when its time is over is used, as long as it comes soon.
func (e *Engine) askCompactor(ctx context.Context, c core.Compaction) (core.Patch, error) {
	type answer struct {
		patch core.Patch
		err   error
	}
	ch := make(chan answer, 1)
	e.work.Go(func() {
		var a answer
		a.err = e.guarded(ctx, "compactor", func(ctx context.Context) (err error) {
			a.patch, err = e.compactor.Compact(ctx, c)
			return err
		})
		ch <- a
	})
	select {
	case a := <-ch:
		return a.patch, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case a := <-ch:
		return a.patch, a.err
	case <-late.C:
		return core.Patch{}, fmt.Errorf("core: compact %q: the compactor does not return: %w", c.Session, context.Cause(ctx))
	}
}

// Legacy is the engine that changes nothing: it hands back the host's own messages, stores nothing, and leaves compaction to the runtime. It
// keeps none of the promises about budget and memory; it is what answers when an engine must not.
type Legacy struct{ host core.Host }

var _ core.ContextEngine = (*Legacy)(nil)

// NewLegacy returns the pass-through engine. A nil host is NoHost.
func NewLegacy(host core.Host) *Legacy {
	if host == nil {
		host = core.NoHost{}
	}
	return &Legacy{host: host}
}

// Info describes the engine: it does not own compaction.
func (l *Legacy) Info() core.Info {
	return core.Info{
		ID: "legacy", Name: "Legacy context engine", Version: "1.0.0",
		CurrentTurnFence: CurrentTurnFence, TurnIdempotency: TurnIdempotency,
	}
}

// Ingest stores nothing.
func (l *Legacy) Ingest(context.Context, core.IngestRequest) (core.IngestResult, error) {
	return core.IngestResult{}, nil
}

// Assemble returns the host's messages as they are. Without a transcript there is nothing to return, which is ErrInvalid.
func (l *Legacy) Assemble(_ context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	if req.Transcript == nil {
		return core.AssembleResult{}, invalid("legacy", "transcript", "legacy keeps no messages: hand over the host's")
	}
	if req.Transcript.Skipped > 0 {
		return core.AssembleResult{}, core.ErrNeedTranscript
	}
	res := core.AssembleResult{Messages: req.Transcript.Messages, PromptAuthority: core.AuthorityHost}
	for i := range res.Messages {
		res.Choices = append(res.Choices, window.Choice{Message: i, Count: 1, Reason: window.ReasonTail})
	}
	return res, nil
}

// Compact asks the runtime, once.
func (l *Legacy) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if err := core.Require(l.host, "legacy", "compact", core.Requirement{Capabilities: []capability.Name{capability.DelegateHost}}); err != nil {
		return core.CompactResult{}, err
	}
	res, err := l.host.Compact(ctx, req)
	res.Delegated = true
	return res, err
}
