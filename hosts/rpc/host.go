package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
)

// Host is the runtime of all clients of a Server, for the engines it drives. It is made before them; as long as nobody is
// connected it offers what core.NoHost does. It is safe for concurrent use.
//
// Compact and Complete go to the client whose call is under way, which their context tells, and to no other.
type Host struct {
	mu    sync.Mutex
	conns []*conn // the newest last
	none  core.NoHost
}

var _ core.Host = (*Host)(nil)

// NewHost returns a host without clients.
func NewHost() *Host { return &Host{} }

// Name returns the name of the runtime that connected last, "standalone" when there is none.
func (h *Host) Name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.conns); n > 0 {
		if cl := h.conns[n-1].opened(); cl != nil && cl.host.Name != "" {
			return cl.host.Name
		}
	}
	return h.none.Name()
}

// Capabilities returns what any of the clients announced, besides what needs no runtime. Where after-turn is announced and maintain is not, there is no maintenance.
func (h *Host) Capabilities() []capability.Name {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.none.Capabilities()
	var said []capability.Name
	for _, c := range h.conns {
		said = append(said, c.opened().can...)
	}
	if slices.Contains(said, capability.AfterTurn) && !slices.Contains(said, capability.Maintain) {
		out = slices.DeleteFunc(out, func(c capability.Name) bool { return c == capability.Maintain })
	}
	for _, can := range said {
		if !slices.Contains(out, can) {
			out = append(out, can)
		}
	}
	return out
}

// Now returns the system time.
func (h *Host) Now() time.Time { return h.none.Now() }

// join and leave tell the host who is connected.
func (h *Host) join(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = append(h.conns, c)
}

func (h *Host) leave(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns = slices.DeleteFunc(h.conns, func(o *conn) bool { return o == c })
}

// Compact asks the client for its runtime's own compaction. Without capability.DelegateHost the error is a *capability.RequirementError.
func (h *Host) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	k, err := callFor(ctx, "compact", capability.DelegateHost)
	if err != nil {
		return core.CompactResult{}, err
	}
	var res core.CompactResult
	err = k.ask(ctx, MethodHostCompact, func(id string, ms int64) any {
		return HostCompactParams{
			RequestID: id, Call: k.id, Session: req.Session, DeadlineMs: ms, Budget: req.Budget, CurrentTokens: req.CurrentTokens,
			Target: req.Target, Force: req.Force, Instructions: req.Instructions, Trigger: req.Trigger,
		}
	}, &res)
	return res, err
}

// Complete asks the client's model. Without capability.Complete the error is a *capability.RequirementError.
func (h *Host) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	k, err := callFor(ctx, "complete", capability.Complete)
	if err != nil {
		return core.Completion{}, err
	}
	var res HostCompleteResult
	err = k.ask(ctx, MethodHostComplete, func(id string, ms int64) any {
		return HostCompleteParams{
			RequestID: id, Call: k.id, DeadlineMs: ms, System: req.System, Prompt: req.Prompt, MaxTokens: req.MaxTokens,
			Purpose: req.Purpose, Model: req.Model,
		}
	}, &res)
	return core.Completion{
		Text: res.Text, Model: res.Model, InputTokens: res.InputTokens, OutputTokens: res.OutputTokens, StopReason: res.StopReason,
	}, err
}

// callFor returns the call under way, if its client has the capability.
func callFor(ctx context.Context, op string, need capability.Name) (*call, error) {
	k, _ := ctx.Value(callKey{}).(*call)
	if k == nil || k.over() {
		return nil, &capability.RequirementError{Engine: "rpc", Operation: op, Missing: []capability.Name{need}}
	}
	if cl := k.conn.opened(); cl == nil || !slices.Contains(cl.can, need) {
		var have []capability.Name
		if cl != nil {
			have = cl.can
		}
		return nil, &capability.RequirementError{Engine: "rpc", Operation: op, Missing: []capability.Name{need}, Have: have}
	}
	return k, nil
}

// ask sends a request to the client and waits for its answer. When ctx ends first, the client is told that it is not wanted any more.
func (k *call) ask(ctx context.Context, name string, params func(id string, ms int64) any, result any) error {
	c := k.conn
	id := "h-" + strconv.FormatUint(c.callbacks.Add(1), 10)
	var ms int64
	if end, ok := ctx.Deadline(); ok {
		ms = max(time.Until(end).Milliseconds(), 1)
	}
	b, err := encode(params(id, ms))
	if err != nil {
		return fmt.Errorf("rpc: %s: %w", name, err)
	}
	if len(b) > c.s.cfg.MaxFrame-frameOverhead {
		return fmt.Errorf("rpc: %s: request of %d bytes is more than a frame holds: %w", name, len(b), core.ErrInvalid)
	}
	k.pause()
	rsp, err := c.rpc.Callback(ctx, name, c.wire.hold(b))
	switch {
	case ctx.Err() != nil:
		_ = c.rpc.Notify(c.base, NotifyHostCancel, HostCancelParams{RequestID: id})
		return fmt.Errorf("rpc: %s: %w", name, ctx.Err())
	case errors.Is(err, jrpc2.ErrConnClosed):
		return fmt.Errorf("rpc: %s: the client is gone: %w", name, core.ErrUnavailable)
	case err != nil:
		return hostError(name, err)
	}
	if err := json.Unmarshal([]byte(rsp.ResultString()), result); err != nil {
		return fmt.Errorf("rpc: %s: the client's answer is not of the listed form: %w", name, core.ErrUnavailable)
	}
	return nil
}

// hostError turns a client's error into one of the framework. Its text is the client's.
func hostError(name string, err error) error {
	j, ok := errors.AsType[*jrpc2.Error](err)
	if !ok {
		return fmt.Errorf("rpc: %s: %w: %w", name, err, core.ErrUnavailable)
	}
	e := fail(Code(j.Code), j.Message)
	is := e.Unwrap()
	switch e.Code {
	case CodeCancelled, CodeDeadline, CodeUnavailable, CodeConflict, CodeNotFound, CodeNotAuthorized, CodeUnsupported, CodeBudget:
	case CodeMethodNotFound, CodeMissingCapability:
		is = errors.ErrUnsupported
	default:
		is = core.ErrUnavailable
	}
	return fmt.Errorf("rpc: %s: %s: %w", name, e.Message, is)
}
