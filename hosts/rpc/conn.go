package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core/capability"

	"github.com/creachadair/jrpc2"
)

// conn is a connection to a client. The library matches frames with handlers and answers; order, bounds and deadlines are kept here.
//
// The library's Stop is never called: when it comes between a frame and its handling, the library panics. A connection ends by closing
// its wire, which the library notices between two frames.
type conn struct {
	s    *Server
	wire *wire
	rpc  *jrpc2.Server
	// base is the context of every call.
	base   context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// inflight counts the calls that were begun or wait; changed is closed and renewed when it falls.
	inflight, refused int
	// unanswered counts the requests whose answer has not been written.
	unanswered   int
	changed      chan struct{}
	closing      bool
	client       *client // set by initialize
	initializing chan struct{}
	callbacks    atomic.Uint64
	// drained is closed when all calls that came before the end of the input have ended.
	drained chan struct{}
}

// endFrame stands for the end of the input, behind all requests.
const (
	endMethod = "rpc.end"
	endFrame  = `{"jsonrpc":"2.0","method":"` + endMethod + `"}`
)

// client is what a client said about itself.
type client struct {
	host   Program
	format string
	can    []capability.Name
	log    slog.Level
}

// logOff is beyond all levels.
const logOff = slog.Level(100)

// slack is how many refused calls may wait for their answer to be read before no more frames are taken.
const slack = 64

func newConn(ctx context.Context, s *Server, w *wire, linger bool) *conn {
	c := &conn{s: s, wire: w, changed: make(chan struct{}), drained: make(chan struct{})}
	c.base, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.refuse, w.gate, w.answered = c.refuse, c.gate, c.answered
	if linger {
		w.last, w.linger = []byte(endFrame), c.linger
	}
	c.rpc = jrpc2.NewServer(c, &jrpc2.ServerOptions{
		AllowPush: true, DisableBuiltin: true, Concurrency: 1 << 30, // slots bound it
		NewContext: func() context.Context { return c.base },
	})
	return c
}

func (c *conn) start() { c.rpc.Start(c.wire) }

// wait returns when the connection has ended and all its calls have, but does not wait for ever for an engine that ignores its context.
func (c *conn) wait() error {
	ended := make(chan jrpc2.ServerStatus, 1)
	go func() {
		ended <- c.rpc.WaitStatus()
		c.cancel()
		c.s.leave(c)
	}()
	var status jrpc2.ServerStatus
	select {
	case status = <-ended:
	case <-c.base.Done():
		timer := time.NewTimer(c.s.cfg.ShutdownTimeout)
		defer timer.Stop()
		select {
		case status = <-ended:
		case <-timer.C:
			_ = c.wire.Close()
			return fmt.Errorf("rpc: serve: calls do not end: %w", context.DeadlineExceeded)
		}
	}
	_ = c.wire.Close()
	if status.Err != nil {
		return fmt.Errorf("rpc: serve: %w", status.Err)
	}
	return nil
}

// end takes no more calls, waits for those under way within Config.ShutdownTimeout and ctx, and ends the connection.
func (c *conn) end(ctx context.Context) {
	c.drain(ctx)
	c.cancel()
	_ = c.wire.Close()
}

// refuse answers what could not be read as a request.
func (c *conn) refuse(bad error) {
	e := fail(CodeInvalidRequest, "rpc: "+bad.Error())
	if errors.Is(bad, errTooLarge) {
		e = fail(CodeFrameTooLarge, fmt.Sprintf("rpc: frame of more than %d bytes", c.s.cfg.MaxFrame))
		e.Data.Limit = c.s.cfg.MaxFrame
	}
	c.notify(slog.LevelWarn, "frame refused", "code", e.Code.String())
	frame, err := encode(struct {
		V     string       `json:"jsonrpc"`
		ID    any          `json:"id"`
		Error *jrpc2.Error `json:"error"`
	}{"2.0", nil, e.wireError()})
	if err == nil {
		_ = c.wire.Send(frame)
	}
}

// Assign finds the handler of a request. The library calls it in the order of arrival, so that this is where calls take their places.
func (c *conn) Assign(ctx context.Context, name string) jrpc2.Handler {
	req := jrpc2.InboundRequest(ctx)
	if req.IsNotification() {
		switch {
		case name == NotifyCancel:
			return c.cancelRequest
		case name == endMethod && c.wire.over():
			return c.inputEnded
		}
		return nil // nobody could be told of its outcome
	}
	call := &call{conn: c, method: name, id: json.RawMessage(req.ID()), arrived: time.Now(), done: make(chan struct{})}
	var params json.RawMessage
	_ = req.UnmarshalParams(&params) // cannot fail
	call.bytes = int64(len(params))
	m, err := c.admit(call)
	if err == nil && m.key != nil {
		if key, ok := m.key(params); ok {
			call.ticket = c.s.queues.enter(key)
			call.session = key
		}
	}
	// Calls that are cancelled before they begin never reach their handler.
	context.AfterFunc(ctx, call.abandon)
	return func(ctx context.Context, _ *jrpc2.Request) (any, error) {
		if !call.state.CompareAndSwap(assigned, started) {
			return nil, describe(ctx, name, context.Cause(ctx)).wireError()
		}
		defer call.release()
		var out []byte
		if err == nil {
			out, err = c.run(ctx, m, call, params)
		}
		if err != nil {
			e := describe(ctx, name, err)
			c.s.access(ctx, call, 0, e.Code)
			return nil, e.wireError()
		}
		c.s.access(ctx, call, len(out), 0)
		return held{p: &c.wire.payloads, b: out, last: name == MethodShutdown}, nil
	}
}

// frameOverhead is the room for what stands around a result.
const frameOverhead = 1 << 10

// run runs a method. A panic of an engine ends the call, not the process.
func (c *conn) run(ctx context.Context, m method, call *call, params json.RawMessage) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.log.ErrorContext(ctx, "rpc: panic", slog.String("method", call.method), slog.String("stack", string(debug.Stack())))
			c.notify(slog.LevelWarn, "an engine panicked", "method", call.method)
			out, err = nil, fail(CodeInternal, "the engine panicked")
		}
	}()
	out, err = m.run(context.WithValue(ctx, callKey{}, call), call, params)
	if err == nil && len(out) > c.s.cfg.MaxFrame-frameOverhead {
		e := fail(CodeFrameTooLarge, fmt.Sprintf("answer of %d bytes", len(out)))
		e.Data.Limit = c.s.cfg.MaxFrame
		return nil, e
	}
	return out, err
}

// cancelRequest ends a request of the client.
func (c *conn) cancelRequest(_ context.Context, req *jrpc2.Request) (any, error) {
	var p cancelParams
	if err := req.UnmarshalParams(&p); err != nil {
		return nil, err
	}
	c.rpc.CancelRequest(string(p.ID))
	return nil, nil
}

// opened returns what the client said at initialize; nil before.
func (c *conn) opened() *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// notify tells the client's operator something, if they want to know. The text is constant, the attributes hold no contents.
func (c *conn) notify(level slog.Level, text string, attributes ...string) {
	cl := c.opened()
	if cl == nil || level < cl.log {
		return
	}
	p := LogParams{Level: "info", Message: text}
	if level >= slog.LevelWarn {
		p.Level = "warn"
	}
	for i := 0; i+1 < len(attributes); i += 2 {
		if p.Attributes == nil {
			p.Attributes = make(map[string]string)
		}
		p.Attributes[attributes[i]] = attributes[i+1]
	}
	_ = c.rpc.Notify(c.base, NotifyLog, p)
}
