package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/capability"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/strategies/delegate"
)

// A delegated compaction reaches the client whose call it is, and that one alone.
func TestHostCompactReachesTheCallersHost(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	var once sync.Once
	var eng core.ContextEngine
	s := newServer(t, enginesFunc(func(string, string) (core.ContextEngine, error) {
		once.Do(func() { // when somebody is connected: only then the host compacts
			compactor, err := delegate.New(host)
			if err != nil {
				t.Error(err)
				return
			}
			eng = composed(t, host, func(p *engine.Parts) { p.Compactor = compactor })
		})
		return eng, nil
	}), host)
	ask := func(name string) rpc.ClientOptions {
		return rpc.ClientOptions{Compact: func(ctx context.Context, p rpc.HostCompactParams) (core.CompactResult, error) {
			if p.Session != sid(name) || p.Budget != 100 || !p.Force || p.Trigger != "manual" || p.RequestID == "" || string(p.Call) == "" || p.DeadlineMs <= 0 {
				t.Errorf("%s was asked %+v", name, p)
			}
			return core.CompactResult{OK: true, Compacted: true, TokensBefore: 10, TokensAfter: 5, Summary: name}, nil
		}}
	}
	for _, name := range []string{"one", "two"} {
		c := open(t, s, ask(name), capability.DelegateHost)
		defer func() {
			res, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid(name), Budget: 100, Force: true, Trigger: "manual"})
			if err != nil || !res.Compacted || !res.Delegated || res.Summary != name || res.TokensAfter != 5 {
				t.Errorf("Compact = %+v, %v", res, err)
			}
		}()
	}
	if got := host.Capabilities(); !slices.Contains(got, capability.DelegateHost) || slices.Contains(got, capability.Complete) {
		t.Errorf("Capabilities = %v", got)
	}
	if host.Name() != "testhost" {
		t.Errorf("Name = %q", host.Name())
	}
	// A client that did not offer it gets an error that says so.
	c := open(t, s, rpc.ClientOptions{})
	_, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid("three")})
	if e := wantCode(t, "Compact", err, rpc.CodeMissingCapability); len(e.Data.Missing) != 1 || e.Data.Missing[0] != capability.DelegateHost {
		t.Errorf("data = %+v", e.Data)
	}
}

// TestHostWithoutMaintenance: a host that tells of turns' ends and has no maintenance is told from one that says nothing of either.
func TestHostWithoutMaintenance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		announced []capability.Name
		want      bool
	}{
		"nothing":              {nil, true},
		"what the engine asks": {[]capability.Name{capability.DelegateHost}, true},
		"turns' ends":          {[]capability.Name{capability.AfterTurn}, false},
		"both":                 {[]capability.Name{capability.Maintain, capability.AfterTurn}, true},
	} {
		h := rpc.NewHost()
		s := newServer(t, one{composed(t, h, func(*engine.Parts) {})}, h)
		open(t, s, rpc.ClientOptions{}, c.announced...)
		if got := slices.Contains(h.Capabilities(), capability.Maintain); got != c.want {
			t.Errorf("%s: maintenance %t", name, got)
		}
	}
}

func TestHostWithoutClients(t *testing.T) {
	t.Parallel()
	h := rpc.NewHost()
	if h.Name() != (core.NoHost{}).Name() || len(h.Capabilities()) != len(core.NoHost{}.Capabilities()) {
		t.Errorf("Host = %q %v", h.Name(), h.Capabilities())
	}
	if _, err := h.Compact(t.Context(), core.CompactRequest{}); !errors.Is(err, capability.ErrRequirement) {
		t.Errorf("Compact = %v", err)
	}
	if _, err := h.Complete(t.Context(), core.CompletionRequest{}); !errors.Is(err, capability.ErrRequirement) {
		t.Errorf("Complete = %v", err)
	}
}

// The host's model can be asked while every slot is taken by calls that ask, and while the host calls back.
func TestHostComplete(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	f := &fake{maintain: func(ctx context.Context, req core.MaintainRequest) (core.MaintainResult, error) {
		res, err := host.Complete(ctx, core.CompletionRequest{System: "sys", Prompt: req.Session.Session, MaxTokens: 7, Purpose: "summary"})
		if err != nil {
			return core.MaintainResult{}, err
		}
		if res.InputTokens != 3 || res.StopReason != "stop" {
			return core.MaintainResult{}, errors.New("wrong completion")
		}
		return core.MaintainResult{Changed: true, Reason: res.Text}, nil
	}}
	cfg := rpc.DefaultConfig()
	cfg.MaxRunning = 2
	var c *rpc.Client
	ready := make(chan struct{})
	c = open(t, newServer(t, one{f}, host, rpc.WithConfig(cfg)), rpc.ClientOptions{
		Complete: func(ctx context.Context, p rpc.HostCompleteParams) (rpc.HostCompleteResult, error) {
			<-ready
			if p.System != "sys" || p.MaxTokens != 7 || p.Purpose != "summary" {
				t.Errorf("asked %+v", p)
			}
			if _, err := c.Assemble(ctx, rpc.AssembleParams{Session: sid(p.Prompt), Budget: 9}); err != nil {
				return rpc.HostCompleteResult{}, err
			}
			return rpc.HostCompleteResult{Text: "<" + p.Prompt + ">", InputTokens: 3, StopReason: "stop"}, nil
		},
	}, capability.Complete)
	close(ready)
	var work sync.WaitGroup
	for name := range strings.FieldsSeq("a b c d e f g h") {
		work.Go(func() {
			res, err := c.Maintain(t.Context(), rpc.MaintainParams{Session: sid(name), Reason: "turn"})
			if err != nil || res.Reason != "<"+name+">" {
				t.Errorf("Maintain = %+v, %v", res, err)
			}
		})
	}
	work.Wait()
}

func TestHostErrorsAndCancellation(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	f := &fake{compact: func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
		return host.Compact(ctx, req)
	}}
	asked, stopped := make(chan struct{}, 1), make(chan error, 1)
	c := open(t, newServer(t, one{f}, host), rpc.ClientOptions{
		Compact: func(ctx context.Context, p rpc.HostCompactParams) (core.CompactResult, error) {
			switch p.Trigger {
			case "fail":
				return core.CompactResult{}, errors.New("no model today")
			case "unauthorized":
				return core.CompactResult{}, core.ErrAuth
			}
			asked <- struct{}{}
			<-ctx.Done()
			stopped <- ctx.Err()
			return core.CompactResult{}, ctx.Err()
		},
	}, capability.DelegateHost)
	_, err := c.Compact(t.Context(), rpc.CompactParams{Session: sid("s"), Trigger: "fail"})
	if e := wantCode(t, "Compact", err, rpc.CodeUnavailable); !strings.Contains(e.Message, "no model today") {
		t.Errorf("message = %q", e.Message)
	}
	_, err = c.Compact(t.Context(), rpc.CompactParams{Session: sid("s"), Trigger: "unauthorized"})
	wantCode(t, "Compact", err, rpc.CodeNotAuthorized)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Compact(ctx, rpc.CompactParams{Session: sid("s")})
		done <- err
	}()
	receive(t, "host.compact", asked)
	cancel()
	receive(t, "answer", done)
	receive(t, "host.cancel", stopped)
}

// A client that leaves while it is asked ends the call that asks.
func TestClientLeavesWhileItIsAsked(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	failed := make(chan error, 1)
	f := &fake{compact: func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
		res, err := host.Compact(ctx, req)
		failed <- err
		return res, err
	}}
	path := socketPath(t)
	serveUnix(t, one{f}, host, path)
	asked := make(chan struct{}, 1)
	c, err := rpc.Dial(t.Context(), path, rpc.ClientOptions{
		Compact: func(ctx context.Context, _ rpc.HostCompactParams) (core.CompactResult, error) {
			asked <- struct{}{}
			<-ctx.Done()
			return core.CompactResult{}, ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Initialize(t.Context(), rpc.InitializeParams{Client: rpc.Program{Name: "x"}, Capabilities: []capability.Name{capability.DelegateHost}})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = c.Compact(context.Background(), rpc.CompactParams{Session: sid("s")}) }()
	receive(t, "host.compact", asked)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := receive(t, "end of the call", failed); err == nil {
		t.Error("host.Compact = nil")
	}
}

// What comes for a question that was given up is ignored: an answer to it would carry an id that may be one of the client's own.
func TestALateAnswerIsNotAnswered(t *testing.T) {
	t.Parallel()
	host := rpc.NewHost()
	c := attach(t, newServer(t, one{&fake{compact: func(ctx context.Context, req core.CompactRequest) (core.CompactResult, error) {
		return host.Compact(ctx, req)
	}}}, host))
	r := newReader(c)
	c.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersions":["1"],"client":{"name":"raw"},"capabilities":["delegated-compaction"]}}`)
	r.next(t)
	c.send(`{"jsonrpc":"2.0","id":7,"method":"compact","params":{"session":{"agent":"a","session":"s"}}}`)
	asked := r.next(t)
	if asked.Method != "host.compact" {
		t.Fatalf("the server sent %s", asked.line)
	}
	c.send(`{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":7}}`)
	for f := r.next(t); string(f.ID) != "7"; f = r.next(t) {
		if f.Method != "host.cancel" {
			t.Fatalf("the server sent %s", f.line)
		}
	}
	late := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"ok":true,"compacted":false,"tokensBefore":0,"tokensAfter":0}}`, asked.ID)
	c.send(late)
	c.send(late)
	c.send(`{"jsonrpc":"2.0","id":"still there","method":"ping"}`)
	if f := r.next(t); string(f.ID) != `"still there"` {
		t.Errorf("the server sent %s", f.line)
	}
}
