package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
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
