package rpc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

// call is one request of a client.
type call struct {
	conn    *conn
	method  string
	id      json.RawMessage
	arrived time.Time
	bytes   int64
	// session is what orders the call; zero when nothing does.
	session core.SessionID
	ticket  *ticket
	// after is closed when initialize, which came earlier, is done.
	after   <-chan struct{}
	refused bool
	// working says that the call has a slot.
	working atomic.Bool
	state   atomic.Int32
	done    chan struct{}
}

// The states of a call.
const (
	assigned int32 = iota
	started
	ended
)

// callKey is the context key of the call under way.
type callKey struct{}

// abandon is called when the call's context ended: it gives up a place that the handler was never called for.
func (k *call) abandon() {
	if k.state.CompareAndSwap(assigned, ended) {
		k.release()
	}
}

// release gives everything back, once the call is over.
func (k *call) release() {
	k.pause()
	k.proceed()
	k.conn.dismiss(k)
	close(k.done)
}

// begin waits until it is the call's turn and there is room to work.
func (k *call) begin(ctx context.Context) error {
	if k.after != nil {
		select {
		case <-k.after:
		case <-ctx.Done():
			return ctx.Err()
		}
		if k.conn.opened() == nil {
			return fail(CodeNotInitialized, "initialize failed")
		}
	}
	if k.ticket != nil {
		select {
		case <-k.ticket.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case k.conn.s.slots <- struct{}{}:
		k.working.Store(true)
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the call was answered.
func (k *call) over() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// proceed lets the next call of the session begin.
func (k *call) proceed() {
	if k.ticket != nil {
		k.conn.s.queues.leave(k.ticket)
	}
}

// pause gives the call's slot back. A call that asked its client something goes on without one: it mostly waits, and the client may need slots to
// answer.
func (k *call) pause() {
	if k.working.CompareAndSwap(true, false) {
		<-k.conn.s.slots
	}
}

// method is how a method of the protocol is served.
type method struct {
	// early methods are answered before initialize.
	early bool
	// key finds the session whose calls are kept in order.
	key func(params json.RawMessage) (core.SessionID, bool)
	run func(ctx context.Context, k *call, params json.RawMessage) ([]byte, error)
}

// handle returns the run function of a method: it reads the parameters, waits for the call's turn and encodes the result.
func handle[P interface{ limit() int64 }](f func(ctx context.Context, k *call, p P) (any, error)) func(context.Context, *call, json.RawMessage) ([]byte, error) {
	return func(ctx context.Context, k *call, params json.RawMessage) ([]byte, error) {
		var p P
		if err := decodeParams(params, &p); err != nil {
			return nil, err
		}
		if p.limit() < 0 {
			return nil, badField("deadlineMs", "must be positive")
		}
		end := k.conn.s.cfg.MaxCall
		if ms := p.limit(); ms > 0 && ms < end.Milliseconds() {
			end = time.Duration(ms) * time.Millisecond
		}
		ctx, cancel := context.WithDeadline(ctx, k.arrived.Add(end))
		defer cancel()
		if err := k.begin(ctx); err != nil {
			return nil, settled(ctx, err)
		}
		res, err := f(ctx, k, p)
		if err != nil {
			return nil, settled(ctx, err)
		}
		if b, ok := res.([]byte); ok {
			return b, nil
		}
		return encode(res)
	}
}

// settled gives an error its code as long as the call's own context is at hand.
func settled(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	e := fail(codeOf(ctx, err), err.Error())
	detail(e, err)
	return e
}

// decodeParams reads parameters strictly: what is not listed does not cross.
func decodeParams(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		return nil
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badField(t.Field, "must be of another type than "+t.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		if len(name) > 64 {
			name = name[:64]
		}
		return badField(strings.ToValidUTF8(name, ""), "no such field")
	}
	return fail(CodeInvalidParams, "params: not an object of the listed fields")
}

// sessionOf finds a session among the parameters, without reading further than needed.
func sessionOf(field string) func(json.RawMessage) (core.SessionID, bool) {
	return func(params json.RawMessage) (core.SessionID, bool) {
		dec := json.NewDecoder(bytes.NewReader(params))
		if _, err := dec.Token(); err != nil {
			return core.SessionID{}, false
		}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return core.SessionID{}, false
			}
			if s, ok := name.(string); ok && strings.EqualFold(s, field) {
				var id core.SessionID
				err := dec.Decode(&id)
				return id, err == nil && id.Validate() == nil
			}
			var skip json.RawMessage
			if dec.Decode(&skip) != nil {
				return core.SessionID{}, false
			}
		}
		return core.SessionID{}, false
	}
}

// either tries two ways of finding a session.
func either(a, b func(json.RawMessage) (core.SessionID, bool)) func(json.RawMessage) (core.SessionID, bool) {
	return func(params json.RawMessage) (core.SessionID, bool) {
		if id, ok := a(params); ok {
			return id, true
		}
		return b(params)
	}
}

// access logs a call that was answered: never what it said, nor whose it was.
func (s *Server) access(ctx context.Context, k *call, out int, code Code) {
	if !s.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	outcome, session := "ok", ""
	if code != 0 {
		outcome = code.String()
	}
	if k.session != (core.SessionID{}) {
		sum := sha256.Sum256([]byte(k.session.Agent + "\x00" + k.session.Session))
		session = hex.EncodeToString(sum[:4])
	}
	name := k.method
	if _, ok := s.methods[name]; !ok {
		name = "unknown"
	}
	s.log.InfoContext(ctx, "rpc: call", slog.String("method", name), slog.String("session", session),
		slog.Float64("ms", float64(time.Since(k.arrived).Microseconds())/1000), slog.Int64("in", k.bytes), slog.Int("out", out),
		slog.String("outcome", outcome))
}
