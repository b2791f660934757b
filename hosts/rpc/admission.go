package rpc

import (
	"context"

	"github.com/creachadair/jrpc2"
)

// admit counts a call, or says why it is refused.
func (c *conn) admit(call *call) (method, error) {
	m, ok := c.s.methods[call.method]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	refuse := func(e *Error) (method, error) {
		call.refused = true
		c.refused++
		return method{}, e
	}
	switch {
	case !ok:
		return refuse(fail(CodeMethodNotFound, "no such method"))
	case c.closing:
		return refuse(fail(CodeClosed, "the connection is being closed"))
	case c.inflight >= c.s.cfg.MaxInFlight:
		return refuse(fail(CodeOverloaded, "too many requests under way"))
	case c.s.queued.Load()+call.bytes > c.s.cfg.MaxQueued:
		return refuse(fail(CodeOverloaded, "too many bytes of requests under way"))
	case call.method == MethodInitialize:
		if c.initializing != nil {
			return refuse(fail(CodeNotInitialized, "initialize comes once"))
		}
		c.initializing = call.done
	case call.method == MethodShutdown:
		c.closing = true
	case m.early:
	case c.initializing == nil:
		return refuse(fail(CodeNotInitialized, "initialize comes first"))
	default:
		call.after = c.initializing
	}
	c.inflight++
	c.s.running.Add(1)
	c.s.queued.Add(call.bytes)
	return m, nil
}

// dismiss is the opposite of admit.
func (c *conn) dismiss(call *call) {
	if !call.refused {
		c.s.running.Add(-1)
		c.s.queued.Add(-call.bytes)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.refused {
		c.refused--
	} else {
		c.inflight--
	}
	c.stir()
}

// answered counts an answer. Requests that the library itself refused may count too much: their client hurts only itself.
func (c *conn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered = max(c.unanswered-1, 0)
	c.stir()
}

// stir wakes those who wait for the counts to fall.
func (c *conn) stir() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// drain takes no more calls and waits for those under way, but not for ever.
func (c *conn) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.s.cfg.ShutdownTimeout)
	defer cancel()
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.quiet(ctx, 0)
}

// inputEnded serves endFrame.
func (c *conn) inputEnded(ctx context.Context, _ *jrpc2.Request) (any, error) {
	c.drain(ctx)
	close(c.drained)
	return nil, nil
}

// linger waits until what was asked is answered.
func (c *conn) linger() {
	select {
	case <-c.drained:
	case <-c.base.Done():
	}
}

// quiet waits until no more than n calls are under way or unanswered.
func (c *conn) quiet(ctx context.Context, n int) {
	for {
		c.mu.Lock()
		count, changed := max(c.inflight, c.unanswered), c.changed
		c.mu.Unlock()
		if count <= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// gate waits while too many refused calls have not been answered, because the client does not read.
func (c *conn) gate(done <-chan struct{}) {
	for {
		c.mu.Lock()
		refused, changed := c.refused, c.changed
		c.mu.Unlock()
		if refused < slack {
			return
		}
		select {
		case <-changed:
		case <-done:
			return
		}
	}
}
