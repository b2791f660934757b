package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creachadair/jrpc2"

	"github.com/contextengine/contextengine/core"
)

// Client drives a server from Go. Make one with NewClient or Dial, and call Initialize first. It is safe for concurrent use; calls of one
// session are served in the order in which they were made.
//
// The deadline of a call's context goes to the server with it, and its cancellation too. Errors are *Error, in which errors.Is finds
// what the server's engine meant; when the connection is gone they wrap core.ErrUnavailable.
type Client struct {
	rpc  *jrpc2.Client
	wire *wire

	mu    sync.Mutex
	hosts map[string]context.CancelFunc // requests of the server, by their requestId

	// answers counts the answers that came, finished the calls that are over.
	answers, finished atomic.Int64
}

// ClientOptions are what a client answers its server. All of it is optional.
type ClientOptions struct {
	// Compact answers host.compact, Complete host.complete. An *Error crosses as it is.
	Compact  func(ctx context.Context, p HostCompactParams) (core.CompactResult, error)
	Complete func(ctx context.Context, p HostCompleteParams) (HostCompleteResult, error)
	// Log gets the server's notifications, one at a time. It must not wait for calls of the client.
	Log func(p LogParams)
	// MaxFrame bounds the server's frames in bytes; 64 MiB when 0.
	MaxFrame int
}

// NewClient starts a client that reads from r and writes to w. Close closes both, if they can be closed.
func NewClient(r io.Reader, w io.Writer, opts ClientOptions) *Client {
	if opts.MaxFrame == 0 {
		opts.MaxFrame = DefaultConfig().MaxFrame
	}
	closeBoth := func() error {
		var errs []error
		for _, f := range []any{w, r} {
			if c, ok := f.(io.Closer); ok {
				errs = append(errs, c.Close())
			}
		}
		return errors.Join(errs...)
	}
	c := &Client{hosts: make(map[string]context.CancelFunc)}
	c.wire = newWire(r, w, closeBoth, opts.MaxFrame, time.Minute)
	c.wire.linger = c.settle
	c.rpc = jrpc2.NewClient(watched{c.wire, c}, &jrpc2.ClientOptions{
		OnNotify: func(req *jrpc2.Request) { c.notified(req, opts) },
		OnCallback: func(ctx context.Context, req *jrpc2.Request) (any, error) {
			return c.asked(ctx, req, opts)
		},
		OnCancel: func(cli *jrpc2.Client, rsp *jrpc2.Response) {
			// The client's own end needs no word.
			_ = cli.Notify(context.Background(), NotifyCancel, cancelParams{ID: json.RawMessage(rsp.ID())}) //nolint:contextcheck // the call's has ended
		},
	})
	return c
}

// watched counts the answers that come.
type watched struct {
	*wire
	c *Client
}

// Recv returns the next frame.
func (w watched) Recv() ([]byte, error) {
	frame, err := w.wire.Recv()
	if err == nil && answers(frame) {
		w.c.answers.Add(1)
	}
	return frame, err
}

// settle waits, when the server ended the connection, until the answers that came before are taken: the library drops them otherwise.
func (c *Client) settle() {
	const most = 1000
	for range most {
		if c.finished.Load() >= c.answers.Load() {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-c.wire.closed:
			return
		}
	}
}

// Dial connects to a server's socket.
func Dial(ctx context.Context, path string, opts ClientOptions) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("rpc: dial %q: %w: %w", path, cause(err), core.ErrUnavailable)
	}
	return NewClient(nc, struct{ io.Writer }{nc}, opts), nil
}

// Close ends the connection and the calls under way.
func (c *Client) Close() error {
	_ = c.wire.Close() // first: nothing waits for a peer that does not read
	err := c.rpc.Close()
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("rpc: close: %w", err)
	}
	return nil
}

// Call calls a method. params are encoded as JSON; a json.RawMessage crosses byte for byte. The result is decoded into result.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	var held any
	if params != nil {
		raw, ok := params.(json.RawMessage)
		if !ok {
			b, err := encode(params)
			if err != nil {
				return fmt.Errorf("rpc: %s: %w", method, err)
			}
			raw = b
		}
		held = c.wire.hold(oneLine(raw))
	}
	rsp, err := c.rpc.Call(ctx, method, held)
	c.finished.Add(1)
	if err != nil {
		return c.failure(ctx, method, err)
	}
	if err := json.Unmarshal([]byte(rsp.ResultString()), result); err != nil {
		return fmt.Errorf("rpc: %s: answer: %w", method, err)
	}
	return nil
}

// failure says why a call failed.
func (c *Client) failure(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("rpc: %s: %w", method, ctx.Err())
	}
	if j, ok := errors.AsType[*jrpc2.Error](err); ok {
		return fromWire(j)
	}
	if c.rpc.IsStopped() {
		return fmt.Errorf("rpc: %s: the connection is gone: %w", method, core.ErrUnavailable)
	}
	return fmt.Errorf("rpc: %s: %w: %w", method, err, core.ErrUnavailable)
}

// notified takes a notification of the server.
func (c *Client) notified(req *jrpc2.Request, opts ClientOptions) {
	switch req.Method() {
	case NotifyHostCancel:
		var p HostCancelParams
		if req.UnmarshalParams(&p) == nil {
			c.mu.Lock()
			if cancel := c.hosts[p.RequestID]; cancel != nil {
				cancel()
			}
			c.mu.Unlock()
		}
	case NotifyLog:
		var p LogParams
		if opts.Log != nil && req.UnmarshalParams(&p) == nil {
			opts.Log(p)
		}
	}
}

// asked answers a request of the server.
func (c *Client) asked(ctx context.Context, req *jrpc2.Request, opts ClientOptions) (any, error) {
	var (
		res any
		err error
	)
	switch name := req.Method(); {
	case name == MethodHostCompact && opts.Compact != nil:
		var p HostCompactParams
		if err := req.UnmarshalParams(&p); err != nil {
			return nil, badField("params", "not those of "+name).wireError()
		}
		ctx, done := c.answering(ctx, p.RequestID, p.DeadlineMs)
		defer done()
		res, err = opts.Compact(ctx, p)
	case name == MethodHostComplete && opts.Complete != nil:
		var p HostCompleteParams
		if err := req.UnmarshalParams(&p); err != nil {
			return nil, badField("params", "not those of "+name).wireError()
		}
		ctx, done := c.answering(ctx, p.RequestID, p.DeadlineMs)
		defer done()
		res, err = opts.Complete(ctx, p)
	default:
		err = fail(CodeMethodNotFound, "no such method")
	}
	if err != nil {
		return nil, describe(ctx, req.Method(), err).wireError()
	}
	b, err := encode(res)
	if err != nil {
		return nil, describe(ctx, req.Method(), err).wireError()
	}
	return c.wire.hold(b), nil
}

// answering is the context of a request of the server, until it is answered.
func (c *Client) answering(ctx context.Context, id string, ms int64) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := cancel
	if ms > 0 {
		ctx, stop = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	c.mu.Lock()
	c.hosts[id] = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		delete(c.hosts, id)
		c.mu.Unlock()
		stop()
		cancel()
	}
}
