package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// Host is a simulated runtime: it records what it is asked, has a clock of its own, a model, and a compaction of its own. It
// is safe for concurrent use.
type Host struct {
	model *Model

	mu        sync.Mutex
	now       time.Time
	compacts  int
	last      core.CompactResult
	lastErr   error
	fail      bool
	onCompact func(core.CompactRequest) core.CompactResult
}

var _ core.Host = (*Host)(nil)

// NewHost returns a host that offers everything, with a model.
func NewHost(model *Model) *Host { return &Host{model: model, now: epoch} }

// Name returns "conformance".
func (h *Host) Name() string { return "conformance" }

// Capabilities lists all of them.
func (h *Host) Capabilities() []capability.Name {
	return capability.All()
}

// Compact records the call and runs the simulated compaction.
func (h *Host) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.compacts++
	h.last, h.lastErr = core.CompactResult{}, nil
	switch {
	case ctx.Err() != nil:
		h.lastErr = fmt.Errorf("conformance: compact: %w", ctx.Err())
	case h.fail:
		h.lastErr = fmt.Errorf("conformance: compact: injected: %w", core.ErrUnavailable)
	case h.onCompact != nil:
		h.last = h.onCompact(req)
	default:
		h.last = core.CompactResult{OK: true, Reason: core.ReasonBelowThreshold}
	}
	return h.last, h.lastErr
}

// Complete asks the model.
func (h *Host) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	return h.model.Complete(ctx, req)
}

// Now returns the simulated time: it moves only when the suite moves it.
func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Compacts returns how often Compact was called.
func (h *Host) Compacts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.compacts
}

func (h *Host) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *Host) setFail(fail bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = fail
}

func (h *Host) lastCompact() (core.CompactResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.lastErr
}
