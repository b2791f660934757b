package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/hosts/rpc"
)

func TestInitialize(t *testing.T) {
	t.Parallel()
	s := newServer(t, one{&fake{}}, nil, rpc.WithProgram(rpc.Program{Name: "contextengine", Version: "9.9"}))
	c := connect(t, s, rpc.ClientOptions{})
	ctx := t.Context()
	if err := c.Ping(ctx); err != nil {
		t.Errorf("Ping before Initialize = %v", err)
	}
	_, err := c.Info(ctx, rpc.InfoParams{})
	wantCode(t, "Info before Initialize", err, rpc.CodeNotInitialized)

	_, err = c.Initialize(ctx, rpc.InitializeParams{ProtocolVersions: []string{"0", "2"}, Client: rpc.Program{Name: "x"}})
	e := wantCode(t, "Initialize with foreign versions", err, rpc.CodeUnsupportedVersion)
	if fmt.Sprint(e.Data.Supported) != fmt.Sprint(rpc.Versions()) {
		t.Errorf("supported = %v", e.Data.Supported)
	}
	_, err = c.Initialize(ctx, rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Capabilities: []capability.Name{"fly"}})
	if e := wantCode(t, "Initialize with an unknown capability", err, rpc.CodeInvalidParams); e.Data.Field != "capabilities[0]" {
		t.Errorf("field = %q", e.Data.Field)
	}
	res, err := c.Initialize(ctx, rpc.InitializeParams{ProtocolVersions: []string{"7", "1"}, Client: rpc.Program{Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if res.ProtocolVersion != "1" || res.Engine == nil || res.Engine.ID != "fake" || res.Server.Version != "9.9" || res.Limits.MaxFrameBytes != 64<<20 {
		t.Errorf("Initialize = %+v", res)
	}
	_, err = c.Initialize(ctx, rpc.InitializeParams{Client: rpc.Program{Name: "x"}})
	wantCode(t, "second Initialize", err, rpc.CodeNotInitialized)

	info, err := c.Info(ctx, rpc.InfoParams{})
	if err != nil || info.Arm.Name != "a" || info.Engine.ID != "fake" {
		t.Errorf("Info = %+v, %v", info, err)
	}
	h, err := c.Health(ctx)
	if err != nil || h.Status != "ok" || h.Connections != 1 || h.InFlight != 1 {
		t.Errorf("Health = %+v, %v", h, err)
	}
}

func TestEngineThatCannotBeMade(t *testing.T) {
	t.Parallel()
	const cause = "baseUrl and apiKey are required"
	c := connect(t, newServer(t, enginesFunc(func(string, string) (core.ContextEngine, error) { return nil, errors.New(cause) }), nil), rpc.ClientOptions{})
	res, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Format: "pi"})
	if err != nil {
		t.Fatal(err)
	}
	if res.Engine != nil || res.EngineError == nil || res.EngineError.Code != int(rpc.CodeConfiguration) || !strings.HasSuffix(res.EngineError.Message, cause) {
		t.Errorf("Initialize = %+v", res)
	}
	_, err = c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100})
	wantCode(t, "Assemble", err, rpc.CodeConfiguration)
}

// misnamed is an error with a name of its own.
type misnamed struct{}

func (misnamed) Error() string     { return "ThatConfigError: set the key" }
func (misnamed) ErrorName() string { return "ThatConfigError" }

// TestErrorWithAName: whoever reports it, text and kind on the wire begin with the name.
func TestErrorWithAName(t *testing.T) {
	t.Parallel()
	c := connect(t, newServer(t, enginesFunc(func(string, string) (core.ContextEngine, error) {
		return nil, fmt.Errorf("open store: %w", misnamed{})
	}), nil), rpc.ClientOptions{})
	res, err := c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Format: "pi"})
	if err != nil {
		t.Fatal(err)
	}
	if e := res.EngineError; e == nil || e.Code != int(rpc.CodeConfiguration) || e.Kind != "ThatConfigError" || e.Message != misnamed.Error(misnamed{}) {
		t.Errorf("Initialize = %+v", e)
	}
	_, err = c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100})
	wantCode(t, "Assemble", err, rpc.CodeConfiguration)
	if got, ok := errors.AsType[*rpc.Error](err); !ok || got.Data.Kind != "ThatConfigError" || !strings.HasPrefix(got.Message, "ThatConfigError: ") {
		t.Errorf("Assemble = %+v", got)
	}
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	cfg := rpc.DefaultConfig()
	cfg.MaxFrame = 4096
	c := attach(t, newServer(t, one{&fake{}}, nil, rpc.WithConfig(cfg)))
	r := newReader(c)
	c.hello(r)
	const session = `"session":{"agent":"a","session":"s"}`
	for _, tt := range []struct {
		name, frame string
		code        rpc.Code
		field       string
	}{
		{"garbage", `hello`, rpc.CodeParseError, ""},
		{"half an object", `{"jsonrpc":"2.0","id":1`, rpc.CodeParseError, ""},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, rpc.CodeInvalidRequest, ""},
		{"no version", `{"id":1,"method":"ping"}`, rpc.CodeInvalidRequest, ""},
		{"another field", `{"jsonrpc":"2.0","id":1,"method":"ping","token":"x"}`, rpc.CodeInvalidRequest, ""},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("y", 5000) + `"}}`, rpc.CodeFrameTooLarge, ""},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, rpc.CodeMethodNotFound, ""},
		{"unlisted field", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{` + session + `,"tokenBudget":9,"apiKey":"x"}}`, rpc.CodeInvalidParams, "apiKey"},
		{"unlisted field inside", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{` + session + `,"tokenBudget":9,"settings":{"apiKey":"x"}}}`, rpc.CodeInvalidParams, "apiKey"},
		{"wrong type", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{` + session + `,"tokenBudget":"9"}}`, rpc.CodeInvalidParams, "tokenBudget"},
		{"no session", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{"tokenBudget":9}}`, rpc.CodeInvalidParams, "session.agent"},
		{"negative deadline", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{` + session + `,"tokenBudget":9,"deadlineMs":-1}}`, rpc.CodeInvalidParams, "deadlineMs"},
		{"parameters as array", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":[1]}`, rpc.CodeInvalidParams, ""},
		{"bad message", `{"jsonrpc":"2.0","id":1,"method":"ingest","params":{` + session + `,"message":{"role":7}}}`, rpc.CodeInvalidParams, "message"},
		{"bad message in a list", `{"jsonrpc":"2.0","id":1,"method":"ingestBatch","params":{` + session + `,"messages":[{"role":"user","content":"x"},5]}}`, rpc.CodeInvalidParams, "messages[1]"},
		{"unknown format", `{"jsonrpc":"2.0","id":1,"method":"ingest","params":{` + session + `,"format":"xml","message":{}}}`, rpc.CodeInvalidParams, "format"},
		{"engine without the operation", `{"jsonrpc":"2.0","id":1,"method":"retry","params":{` + session + `}}`, rpc.CodeUnsupported, ""},
		{"unknown spawn", `{"jsonrpc":"2.0","id":1,"method":"rollbackSubagentSpawn","params":{"spawnId":"s-1"}}`, rpc.CodeNotFound, ""},
		{"prefix missing", `{"jsonrpc":"2.0","id":1,"method":"assemble","params":{` + session + `,"tokenBudget":9,"transcript":{"skipped":3,"messages":[]}}}`, rpc.CodeInvalidParams, "transcript.prefix"},
	} {
		c.send(tt.frame)
		f := r.next(t)
		if f.Error == nil || f.Error.Code != int(tt.code) || f.Error.Data.Field != tt.field {
			t.Errorf("%s: answered with %s, want code %d, field %q", tt.name, f.line, tt.code, tt.field)
		}
	}
	c.send("")
	c.send("\r")
	c.send(`{"jsonrpc":"2.0","id":"still","method":"ping"}`)
	if f := r.next(t); string(f.ID) != `"still"` || f.Error != nil {
		t.Errorf("after bad frames ping is answered with %s", f.line)
	}
	// Notifications of methods are not run: nobody could be told of their failure.
	c.send(`{"jsonrpc":"2.0","method":"shutdown"}`)
	c.send(`{"jsonrpc":"2.0","method":"rpc.end"}`)
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":{}}}`)
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":[]}`)
	// Nor is an answer that nobody waits for answered.
	c.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
	c.send(`{"jsonrpc":"2.0","id":"yes","method":"ping"}`)
	if f := r.next(t); string(f.ID) != `"yes"` {
		t.Errorf("after a notification ping is answered with %s", f.line)
	}
}

func TestAnswerBeyondTheFrameIsAnError(t *testing.T) {
	t.Parallel()
	cfg := rpc.DefaultConfig()
	cfg.MaxFrame = 4096
	f := &fake{compact: func(context.Context, core.CompactRequest) (core.CompactResult, error) {
		return core.CompactResult{Summary: strings.Repeat("x", 5000)}, nil
	}}
	c := open(t, newServer(t, one{f}, nil, rpc.WithConfig(cfg)), rpc.ClientOptions{})
	_, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid("s")})
	wantCode(t, "Compact", err, rpc.CodeFrameTooLarge)
}

func TestPanicEndsTheCallOnly(t *testing.T) {
	t.Parallel()
	logs := make(chan rpc.LogParams, 10)
	f := &fake{assemble: func(context.Context, core.AssembleRequest) (core.AssembleResult, error) { panic("secret text") }}
	c := open(t, newServer(t, one{f}, nil), rpc.ClientOptions{Log: func(p rpc.LogParams) { logs <- p }})
	for range 3 {
		_, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100})
		if e := wantCode(t, "Assemble", err, rpc.CodeInternal); strings.Contains(e.Message, "secret") {
			t.Errorf("message = %q", e.Message)
		}
	}
	if p := receive(t, "log", logs); p.Level != "warn" || p.Attributes["method"] != "assemble" {
		t.Errorf("log = %+v", p)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
}

func TestErrorsCross(t *testing.T) {
	t.Parallel()
	var fails error
	f := &fake{assemble: func(context.Context, core.AssembleRequest) (core.AssembleResult, error) {
		return core.AssembleResult{}, fails
	}}
	c := open(t, newServer(t, one{f}, nil), rpc.ClientOptions{})
	for _, tt := range []struct {
		err  error
		code rpc.Code
		is   error
	}{
		{&core.BudgetError{Budget: 100, Needed: 120, System: 7, Entry: "e1"}, rpc.CodeBudget, core.ErrBudget},
		{core.ErrConflict, rpc.CodeConflict, core.ErrConflict},
		{core.ErrNotFound, rpc.CodeNotFound, core.ErrNotFound},
		{core.ErrUnavailable, rpc.CodeUnavailable, core.ErrUnavailable},
		{core.ErrAuth, rpc.CodeNotAuthorized, core.ErrAuth},
		{core.ErrClosed, rpc.CodeClosed, core.ErrClosed},
		{core.ErrQuarantined, rpc.CodeQuarantined, core.ErrQuarantined},
		{core.ErrInvalid, rpc.CodeInvalidParams, core.ErrInvalid},
		{core.ErrNeedTranscript, rpc.CodeNeedTranscript, core.ErrNeedTranscript},
		{&capability.RequirementError{Operation: "compact", Missing: []capability.Name{capability.Complete}}, rpc.CodeMissingCapability, capability.ErrRequirement},
		{errors.ErrUnsupported, rpc.CodeUnsupported, errors.ErrUnsupported},
		{errors.New("disk on fire"), rpc.CodeInternal, nil},
		// A part's own limit is not the call's.
		{context.DeadlineExceeded, rpc.CodeUnavailable, core.ErrUnavailable},
	} {
		fails = fmt.Errorf("core: assemble: %w", tt.err)
		_, err := c.Assemble(t.Context(), rpc.AssembleParams{Session: sid("s"), Budget: 100})
		e := wantCode(t, tt.err.Error(), err, tt.code)
		if tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("errors.Is(%v, %v) = false", err, tt.is)
		}
		if tt.code == rpc.CodeBudget && (e.Data.Budget != 100 || e.Data.Needed != 120 || e.Data.System != 7 || e.Data.Entry != "e1") {
			t.Errorf("data = %+v", e.Data)
		}
		if tt.code == rpc.CodeMissingCapability && (e.Data.Operation != "compact" || len(e.Data.Missing) != 1) {
			t.Errorf("data = %+v", e.Data)
		}
	}
}

// pipeline writes requests and ends its output at once, as a shell does.
func TestStdioAnswersWhatCameBeforeTheEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t, one{composed(t, nil)}, nil)
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1"],"client":{"name":"sh"},"format":"openai"}}
{"jsonrpc":"2.0","id":2,"method":"ingest","params":{"session":{"agent":"a","session":"s"},"message":{"role":"user","content":"hi <b> & \u2028"}}}
{"jsonrpc":"2.0","id":3,"method":"assemble","params":{"session":{"agent":"a","session":"s"},"tokenBudget":1000}}`)
	var out bytes.Buffer
	if err := s.ServeStdio(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":1,"result"`, `"ingested":1`, `{"role":"user","content":"hi <b> & \u2028"}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %s:\n%s", want, out.String())
		}
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}), make(chan struct{})
	f := &fake{compact: func(context.Context, core.CompactRequest) (core.CompactResult, error) {
		close(begun)
		<-free
		return core.CompactResult{OK: true}, nil
	}}
	s := newServer(t, one{f}, nil)
	c := open(t, s, rpc.ClientOptions{})
	ended := make(chan error, 2)
	go func() {
		_, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid("s")})
		ended <- err
	}()
	receive(t, "compact", begun)
	go func() { ended <- c.Shutdown(t.Context()) }()
	for {
		err := c.Ping(t.Context())
		if err != nil {
			wantCode(t, "Ping during Shutdown", err, rpc.CodeClosed)
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(free)
	for range 2 {
		if err := receive(t, "end", ended); err != nil {
			t.Errorf("ended with %v", err)
		}
	}
	if err := c.Ping(t.Context()); !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrClosed) {
		t.Errorf("Ping after Shutdown = %v", err)
	}
}

func TestCloseDoesNotWaitForAnEngineThatHangs(t *testing.T) {
	t.Parallel()
	cfg := rpc.DefaultConfig()
	cfg.ShutdownTimeout = 20 * time.Millisecond
	begun, free := make(chan struct{}), make(chan struct{})
	f := &fake{compact: func(context.Context, core.CompactRequest) (core.CompactResult, error) {
		close(begun)
		<-free // whatever its context says
		return core.CompactResult{}, nil
	}}
	s, err := rpc.New(one{f}, nil, rpc.WithConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(t.Context(), in, io.Discard) }()
	go func() {
		_, _ = io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1"],"client":{"name":"x"},"format":"pi"}}
{"jsonrpc":"2.0","id":2,"method":"compact","params":{"session":{"agent":"a","session":"s"}}}
`)
	}()
	receive(t, "compact", begun)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close = %v, want a deadline", err)
	}
	if err := receive(t, "end of ServeStdio", served); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ServeStdio = %v, want a deadline", err)
	}
	close(free)
}

// closing are engines that can be closed.
type closing struct {
	one
	closed chan struct{}
}

func (c closing) Close(context.Context) error { close(c.closed); return errors.New("left open") }

func TestCloseClosesTheEngines(t *testing.T) {
	t.Parallel()
	engines := closing{one{&fake{}}, make(chan struct{})}
	s, err := rpc.New(engines, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err == nil || err.Error() != "left open" {
		t.Errorf("Close = %v", err)
	}
	receive(t, "Close of the engines", engines.closed)
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("second Close = %v", err)
	}
	if err := s.ServeStdio(t.Context(), strings.NewReader(""), io.Discard); !errors.Is(err, core.ErrClosed) {
		t.Errorf("ServeStdio after Close = %v", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := rpc.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*rpc.Config){
		"maxFrame": func(c *rpc.Config) { c.MaxFrame = 1 }, "maxQueued": func(c *rpc.Config) { c.MaxQueued = 1 },
		"maxInFlight": func(c *rpc.Config) { c.MaxInFlight = 0 }, "maxCall": func(c *rpc.Config) { c.MaxCall = -1 },
	} {
		c := rpc.DefaultConfig()
		edit(&c)
		if _, err := rpc.New(one{&fake{}}, nil, rpc.WithConfig(c)); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("New with bad %s = %v", name, err)
		}
	}
	if _, err := rpc.New(nil, nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("New without engines = %v", err)
	}
}

func TestLogsHoldNoContents(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&buf, nil))
	s := newServer(t, one{composed(t, nil)}, nil, rpc.WithLogger(log))
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1"],"client":{"name":"sh"},"format":"openai"}}
{"jsonrpc":"2.0","id":2,"method":"ingest","params":{"session":{"agent":"agent-name","session":"session-name"},"message":{"role":"user","content":"content-secret"}}}
{"jsonrpc":"2.0","id":3,"method":"ingest","params":{"session":{"agent":"agent-name","session":"session-name"},"message":{"role":"content-secret","content":1}}}
{"jsonrpc":"2.0","id":4,"method":"method-secret"}
content-secret
`)
	var out bytes.Buffer
	if err := s.ServeStdio(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"agent-name", "session-name", "content-secret", "method-secret"} {
		if strings.Contains(buf.String(), secret) {
			t.Errorf("the log holds %s:\n%s", secret, buf.String())
		}
	}
	for _, want := range []string{`"method":"ingest"`, `"outcome":"ok"`, `"outcome":"invalid params"`, `"method":"unknown"`} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, buf.String())
		}
	}
}
