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

// health remembers what went wrong. It is bounded: one Problem per part and operation, and mostSessions sessions.
type health struct {
	mu   sync.Mutex
	list []core.Problem
	// whole keeps the engine from everybody, sessions from single sessions.
	whole    trouble
	sessions map[core.SessionID]*trouble
	// struck are the sessions in which an operation failed since it last worked in any.
	struck map[string]map[core.SessionID]bool
}

// trouble is what keeps a session, or everybody, from being served.
type trouble struct {
	// why says of what Assemble rests until then; without an end it is set aside.
	why   string
	until time.Time
	// row is how often each operation failed since it last worked.
	row map[string]int
}

const (
	// restFor is how long Assemble leaves the answers to legacy after a failure before it tries again. Bootstrap ends a rest at once.
	restFor = time.Minute
	// mostInARow is how often in a row an operation may fail in a session before that is set aside, and in how many sessions in a row before the engine is.
	mostInARow = 3
	// mostSessions is how many sessions are remembered as being in trouble.
	mostSessions = 1000
)

// Retrier is an engine that can be set aside, for a session or for all of them: asked to, it tries again.
type Retrier interface {
	// Retry ends what ErrQuarantined says, in every session, and what Info.Health says of it.
	Retry()
}

// Retry lets an engine that was set aside try again, in every session.
func (e *Engine) Retry() { e.health.retry() }

func (h *health) problems() []core.Problem {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// note records a failure and returns how often it happened. Of an operation that is counted, fault says that it will not mend itself: such a one is the
// session's as long as others are served, and what cannot be reached is everybody's.
func (h *health) note(id core.SessionID, part, op, text string, now time.Time, counted, fault bool) (count int, quarantined bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if counted {
		quarantined = h.count(id, op, text, now, fault)
	}
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

// count lets a failure have its consequences, and reports whether legacy answers from now on. The caller holds the lock.
func (h *health) count(id core.SessionID, op, text string, now time.Time, fault bool) bool {
	t := &h.whole
	if fault {
		t = h.of(id)
		if t.row[op]++; t.row[op] >= mostInARow && !t.aside() {
			t.why, t.until = fmt.Sprintf("%s failed %d times in a row: %s", op, t.row[op], text), time.Time{}
		}
		if h.struck[op] == nil {
			h.struck[op] = make(map[core.SessionID]bool)
		}
		if h.struck[op][id] = true; len(h.struck[op]) >= mostInARow && !h.whole.aside() {
			h.whole.why, h.whole.until = fmt.Sprintf("%s failed in %d sessions in a row: %s", op, len(h.struck[op]), text), time.Time{}
		}
	}
	if op == "assemble" && !t.aside() {
		t.why, t.until = text, now.Add(restFor)
	}
	return op == "assemble" || t.aside() || h.whole.aside()
}

// of returns the trouble of a session, which it may make. The caller holds the lock.
func (h *health) of(id core.SessionID) *trouble {
	if h.sessions == nil {
		h.sessions, h.struck = make(map[core.SessionID]*trouble), make(map[string]map[core.SessionID]bool)
	}
	if t := h.sessions[id]; t != nil {
		return t
	}
	for other := range h.sessions {
		if len(h.sessions) < mostSessions {
			break
		}
		delete(h.sessions, other)
	}
	h.sessions[id] = &trouble{row: make(map[string]int)}
	return h.sessions[id]
}

// aside reports whether nothing is tried any more.
func (t *trouble) aside() bool { return t != nil && t.why != "" && t.until.IsZero() }

// rests reports whether Assemble is left to legacy.
func (t *trouble) rests(now time.Time) bool { return t.aside() || t != nil && now.Before(t.until) }

// worked ends a row of failures of a session, and of sessions.
func (h *health) worked(id core.SessionID, op string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.struck, op)
	if t := h.sessions[id]; t != nil {
		if delete(t.row, op); len(t.row) == 0 && t.why == "" {
			delete(h.sessions, id)
		}
	}
}

// resting returns why Assemble of a session is left to legacy, or "".
func (h *health) resting(id core.SessionID, now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range []*trouble{&h.whole, h.sessions[id]} {
		if t.rests(now) {
			return t.why
		}
	}
	return ""
}

// begin ends a rest of a session and of all, but not that they are set aside.
func (h *health) begin(id core.SessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range []*trouble{&h.whole, h.sessions[id]} {
		if t != nil && !t.aside() {
			t.why, t.until = "", time.Time{}
		}
	}
	h.relieve()
}

// retry ends whatever keeps the engine from anybody.
func (h *health) retry() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.whole, h.sessions, h.struck = trouble{}, nil, nil
	h.relieve()
}

// relieve takes back that legacy answers where nobody is kept from being served. The caller holds the lock.
func (h *health) relieve() {
	if h.whole.why != "" {
		return
	}
	for _, t := range h.sessions {
		if t.why != "" {
			return
		}
	}
	for i := range h.list {
		h.list[i].Quarantined = false
	}
}

// quarantined returns an ErrQuarantined where the engine, or a session, is set aside.
func (e *Engine) quarantined(id core.SessionID) error {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	whose, t := "", &e.health.whole
	if !t.aside() {
		whose, t = fmt.Sprintf(" for %q", id), e.health.sessions[id]
	}
	if !t.aside() {
		return nil
	}
	why, _, _ := strings.Cut(t.why, "\n")
	return fmt.Errorf("core: engine %q%s: %s: %w", e.info.ID, whose, why, core.ErrQuarantined)
}

// counts reports whether failures of an operation in a row set a session or the engine aside. The host's own are not the engine's.
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

// failed records an error of the engine, in an operation that sets nothing aside, and returns it.
func (e *Engine) failed(ctx context.Context, part, op string, err error) error {
	return e.failedIn(ctx, core.SessionID{}, part, op, err)
}

// failedIn records an error of the engine in a session and returns it; without one, that the operation worked. What is the caller's business (cancellation, bad input,
// budgets) is not recorded, and what cannot be reached is tried again by itself: neither is in a row.
func (e *Engine) failedIn(ctx context.Context, id core.SessionID, part, op string, err error) error {
	if err == nil {
		e.health.worked(id, op)
		return nil
	}
	for _, own := range []error{
		core.ErrInvalid, core.ErrBudget, core.ErrNeedTranscript, core.ErrClosed, capability.ErrRequirement, core.ErrQuarantined, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, own) {
			return err
		}
	}
	fault := !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrConflict) && !errors.Is(err, core.ErrAuth)
	n, quarantined := e.health.note(id, part, op, err.Error(), e.now(), e.counts(part, op), fault)
	e.log.ErrorContext(ctx, "context engine failed", "engine", e.info.ID, "part", part, "op", op, "err", err, "count", n, "quarantined", quarantined)
	return err
}

// warn records a failure that did not stop the call.
func (e *Engine) warn(ctx context.Context, part, op string, err error) {
	n, _ := e.health.note(core.SessionID{}, part, op, err.Error(), e.now(), false, false)
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
	c = c.Clone()
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
	if err := capability.Require(l.host, "legacy", "compact", capability.Requirement{Capabilities: []capability.Name{capability.DelegateHost}}); err != nil {
		return core.CompactResult{}, err
	}
	res, err := l.host.Compact(ctx, req)
	res.Delegated = true
	return res, err
}
