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
	mu   sync.Mutex
	list []core.Problem
	// why says of what Assemble rests until then; without an end the engine is set aside.
	why   string
	until time.Time
	// row is how often each operation failed since it last worked.
	row map[string]int
}

const (
	// restFor is how long Assemble leaves the answers to legacy after a failure before it tries again. Bootstrap ends a rest at once.
	restFor = time.Minute
	// mostInARow is how often in a row an operation may fail before the engine is set aside.
	mostInARow = 3
)

// Retrier is an engine that can be set aside: asked to, it tries again.
type Retrier interface {
	// Retry ends what ErrQuarantined says.
	Retry()
}

// Retry lets an engine that was set aside try again.
func (e *Engine) Retry() { e.health.restore(true) }

func (h *health) problems() []core.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// note records a failure and returns how often it happened. Of an operation that is counted, fault says that it will not mend itself.
func (h *health) note(part, op, text string, now time.Time, counted, fault bool) (count int, quarantined bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if counted && op == "assemble" && !h.aside() {
		h.why, h.until = text, now.Add(restFor)
	}
	if counted && fault {
		if h.row == nil {
			h.row = make(map[string]int)
		}
		if h.row[op]++; h.row[op] >= mostInARow && !h.aside() {
			h.why, h.until = fmt.Sprintf("%s failed %d times in a row: %s", op, h.row[op], text), time.Time{}
		}
	}
	quarantined = h.aside() || counted && op == "assemble"
	for i := range h.list {
		if p := &h.list[i]; p.Part == part && p.Op == op {
			p.Text, p.Quarantined = text, p.Quarantined || quarantined
			p.Count++
			return p.Count, quarantined
		}
	}
	h.list = append(h.list, core.Problem{Part: part, Op: op, Text: text, Since: now, Count: 1, Quarantined: quarantined})
	return 1, quarantined
}

// aside reports whether the engine is set aside. The caller holds the lock.
func (h *health) aside() bool { return h.why != "" && h.until.IsZero() }

// worked ends a row of failures.
func (h *health) worked(op string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.row, op)
}

// resting returns why Assemble is left to legacy, or "".
func (h *health) resting(now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.aside() || now.Before(h.until) {
		return h.why
	}
	return ""
}

// restore ends a rest, and where somebody asked for it also that the engine is set aside.
func (h *health) restore(asked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.aside() && !asked {
		return
	}
	h.why, h.until = "", time.Time{}
	if asked {
		clear(h.row)
	}
	for i := range h.list {
		h.list[i].Quarantined = false
	}
}

// quarantined returns an ErrQuarantined where the engine is set aside.
func (e *Engine) quarantined() error {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	if !e.health.aside() {
		return nil
	}
	why, _, _ := strings.Cut(e.health.why, "\n")
	return fmt.Errorf("core: engine %q: %s: %w", e.info.ID, why, core.ErrQuarantined)
}

// counts reports whether failures of an operation in a row set the engine aside. The host's own are not the engine's.
func (e *Engine) counts(part, op string) bool {
	if part == "host" {
		return false
	}
	switch op {
	case "assemble", "bootstrap", "ingest", "commit turn", "after turn", "compact":
		return e.cfg.Failure == FailDegrade
	}
	return false
}

// failed records an error of the engine and returns it; without one, that the operation worked. What is the caller's business (cancellation, bad input, budgets) is not
// recorded, and what cannot be reached is tried again by itself: neither is in a row.
func (e *Engine) failed(ctx context.Context, part, op string, err error) error {
	if err == nil {
		e.health.worked(op)
		return nil
	}
	for _, own := range []error{
		core.ErrInvalid, core.ErrBudget, core.ErrNeedTranscript, core.ErrClosed, core.ErrRequirement, core.ErrQuarantined, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, own) {
			return err
		}
	}
	fault := !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrConflict) && !errors.Is(err, core.ErrAuth)
	n, quarantined := e.health.note(part, op, err.Error(), e.now(), e.counts(part, op), fault)
	e.log.ErrorContext(ctx, "context engine failed", "engine", e.info.ID, "part", part, "op", op, "err", err, "count", n, "quarantined", quarantined)
	return err
}

// warn records a failure that did not stop the call.
func (e *Engine) warn(ctx context.Context, part, op string, err error) {
	n, _ := e.health.note(part, op, err.Error(), e.now(), false, false)
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
