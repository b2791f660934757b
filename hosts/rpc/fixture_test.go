package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/strategies/archive"
	"github.com/contextengine/contextengine/strategies/recent"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// one gives every session the same engine.
type one struct{ engine core.ContextEngine }

func (o one) Engine(context.Context, string, string) (core.ContextEngine, rpc.Arm, error) {
	return o.engine, rpc.Arm{Name: "a", Share: 1, Config: "c1"}, nil
}

// enginesFunc is a function that gives sessions their engines.
type enginesFunc func(agent, session string) (core.ContextEngine, error)

func (f enginesFunc) Engine(_ context.Context, agent, session string) (core.ContextEngine, rpc.Arm, error) {
	e, err := f(agent, session)
	return e, rpc.Arm{Share: 1}, err
}

// composed returns a real engine over a memory store.
func composed(tb testing.TB, host core.Host, edits ...func(*engine.Parts)) *engine.Engine {
	tb.Helper()
	compactor, err := archive.New(archive.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	retriever, err := recent.New(recent.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	parts := engine.Parts{
		Store: memory.New(), Retriever: retriever, Compactor: compactor, Host: host, OwnStore: true,
		Counter: func(s string) int { return (len(s) + 3) / 4 },
	}
	for _, edit := range edits {
		edit(&parts)
	}
	e, err := engine.New(parts, engine.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// fake is an engine of functions; what is nil does nothing.
type fake struct {
	assemble func(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error)
	compact  func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error)
	ingest   func(ctx context.Context, req core.IngestRequest) (core.IngestResult, error)
	commit   func(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error)
	maintain func(ctx context.Context, req core.MaintainRequest) (core.MaintainResult, error)
}

func (f *fake) Info() core.Info { return core.Info{ID: "fake", Name: "Fake", Version: "1"} }

func (f *fake) Ingest(ctx context.Context, req core.IngestRequest) (core.IngestResult, error) {
	if f.ingest == nil {
		return core.IngestResult{Ingested: 1, IDs: []string{"e1"}}, nil
	}
	return f.ingest(ctx, req)
}

func (f *fake) Assemble(ctx context.Context, req core.AssembleRequest) (core.AssembleResult, error) {
	if f.assemble == nil {
		return core.AssembleResult{PromptAuthority: core.AuthorityAssembled}, nil
	}
	return f.assemble(ctx, req)
}

func (f *fake) Compact(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
	if f.compact == nil {
		return core.CompactResult{OK: true}, nil
	}
	return f.compact(ctx, req)
}

func (f *fake) CommitTurn(ctx context.Context, req core.CommitTurnRequest) (core.CommitTurnResult, error) {
	if f.commit == nil {
		return core.CommitTurnResult{Status: core.Committed}, nil
	}
	return f.commit(ctx, req)
}

func (f *fake) Maintain(ctx context.Context, req core.MaintainRequest) (core.MaintainResult, error) {
	if f.maintain == nil {
		return core.MaintainResult{}, nil
	}
	return f.maintain(ctx, req)
}

// newServer returns a server that is closed at the end of the test.
func newServer(tb testing.TB, engines rpc.Engines, host *rpc.Host, opts ...rpc.Option) *rpc.Server {
	tb.Helper()
	s, err := rpc.New(engines, host, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			tb.Errorf("Close = %v", err)
		}
	})
	return s
}

// attach serves one end of a pipe and returns the other. Everything that crosses is held against the schema.
func attach(tb testing.TB, s *rpc.Server) *tap {
	tb.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(tb.Context(), there, there) }()
	t := &tap{Conn: here, tb: tb}
	tb.Cleanup(func() {
		_ = here.Close()
		select {
		case err := <-served:
			if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, core.ErrClosed) {
				tb.Errorf("ServeStdio = %v", err)
			}
		case <-time.After(patience):
			tb.Error("ServeStdio did not return")
		}
		t.check()
	})
	return t
}

// connect returns a client that has not called Initialize.
func connect(tb testing.TB, s *rpc.Server, opts rpc.ClientOptions) *rpc.Client {
	tb.Helper()
	t := attach(tb, s)
	c := rpc.NewClient(t, struct{ io.Writer }{t}, opts)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// open returns a client that has called Initialize.
func open(tb testing.TB, s *rpc.Server, opts rpc.ClientOptions, capabilities ...capability.Name) *rpc.Client {
	tb.Helper()
	c := connect(tb, s, opts)
	log := ""
	if opts.Log != nil {
		log = "info"
	}
	_, err := c.Initialize(tb.Context(), rpc.InitializeParams{
		Client: rpc.Program{Name: "test"}, Host: rpc.Program{Name: "testhost"}, Capabilities: capabilities, Format: message.FormatPi, Log: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// tap keeps the frames that cross a connection.
type tap struct {
	net.Conn
	tb   testing.TB
	mu   sync.Mutex
	sent bytes.Buffer
	got  bytes.Buffer
}

func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.sent.Write(b)
	t.mu.Unlock()
	return t.Conn.Write(b)
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	t.got.Write(b[:n])
	t.mu.Unlock()
	return n, err
}

// check holds what crossed against the schema: all the server sent, and all that the client sent and the server did not refuse.
func (t *tap) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(t.got.Bytes()) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		if err := theSchema.check("serverFrame", line); err != nil {
			t.tb.Errorf("the server sent %.300s: %v", line, err)
		}
	}
	if t.tb.Failed() {
		return
	}
	refused := make(map[string]bool)
	for line := range bytes.Lines(t.got.Bytes()) {
		var f struct {
			ID    json.RawMessage
			Error *struct{ Code int }
		}
		if json.Unmarshal(line, &f) == nil && f.Error != nil {
			refused[string(f.ID)] = true
		}
	}
	for line := range bytes.Lines(t.sent.Bytes()) {
		var f struct{ ID json.RawMessage }
		if json.Unmarshal(line, &f) != nil || refused[string(f.ID)] || refused["null"] {
			continue
		}
		if err := theSchema.check("clientFrame", line); err != nil {
			t.tb.Errorf("the client sent %.300s: %v", line, err)
		}
	}
}

// sid is a session of agent "a".
func sid(name string) core.SessionID { return core.SessionID{Agent: "a", Session: name} }

func user(text string, at int) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"role":"user","content":%s,"timestamp":%d}`, b, 1767225600000+int64(at)*1000)
}

func answer(text string, at int) json.RawMessage {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":%s}],"stopReason":"stop","timestamp":%d}`, b, 1767225600000+int64(at)*1000)
}

// wantCode fails the test unless err is an error of that code.
func wantCode(tb testing.TB, what string, err error, want rpc.Code) *rpc.Error {
	tb.Helper()
	e, ok := errors.AsType[*rpc.Error](err)
	if !ok || e.Code != want {
		tb.Fatalf("%s = %v, want code %d (%s)", what, err, int(want), want)
	}
	return e
}

// receive waits for a value.
func receive[T any](tb testing.TB, what string, c <-chan T) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		tb.Fatalf("%s did not happen", what)
		panic("not reached")
	}
}
