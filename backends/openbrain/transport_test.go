package openbrain_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

func TestRefusedAndRestarted(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	want := run("main", "s", 0, 4)
	mustAppend(t, s, want[:2]...)
	srv.Stop()
	if _, err := s.Append(t.Context(), want[2:]); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Append to a stopped server = %v, want ErrUnavailable", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Ping of a stopped server = %v, want ErrUnavailable", err)
	}
	srv.Start()
	mustAppend(t, s, want...)
	holds(t, srv, "main", want)

	t.Run("between two tries", func(t *testing.T) {
		cfg := openbrain.DefaultConfig()
		cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
		s := openbrain.New(cfg, openbrain.WithSleep(func(context.Context, time.Duration) error { srv.Start(); return nil }))
		defer func() { _ = s.Close() }()
		srv.Stop()
		mustAppend(t, s, entry("main", "s", 4, "late"))
		holds(t, srv, "main", append(want, entry("main", "s", 4, "late")))
	})
}

func TestKeyStaysOnItsHost(t *testing.T) {
	thief := openbraintest.New(t)
	for _, code := range []int{301, 302, 303, 307, 308} {
		srv := openbraintest.New(t)
		srv.Inject(openbraintest.Fault{Times: -1, Do: openbraintest.Redirect(code, thief.URL())})
		s := open(t, srv)
		for _, op := range operations {
			if err := op.call(t.Context(), s); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("%d: %s = %v, want ErrUnavailable", code, op.name, err)
			}
		}
		if err := s.Ping(t.Context()); err == nil {
			t.Errorf("%d: Ping followed a redirect", code)
		}
	}
	if n := len(thief.Requests()); n != 0 {
		t.Errorf("%d requests went to the other host", n)
	}
}

// A caller's own client is used, not changed, and its redirects are refused as well.
func TestOwnHTTPClient(t *testing.T) {
	srv, thief := openbraintest.New(t), openbraintest.New(t)
	counted := &countingTransport{base: http.DefaultTransport}
	hc := &http.Client{Transport: counted}
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = srv.URL()+"/ ", srv.Key()
	s := openbrain.New(cfg, openbrain.WithHTTPClient(hc), openbrain.WithSleep(noSleep))
	if err := s.Ping(t.Context()); err != nil || counted.n == 0 {
		t.Errorf("Ping = %v after %d requests of the client's", err, counted.n)
	}
	srv.Inject(openbraintest.Fault{Times: -1, Do: openbraintest.Redirect(307, thief.URL())})
	if err := s.Ping(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Ping through a redirect = %v, want ErrUnavailable", err)
	}
	if err := s.Close(); err != nil || hc.CheckRedirect != nil || len(thief.Requests()) != 0 {
		t.Errorf("Close = %v; client changed: %t; %d requests went astray", err, hc.CheckRedirect != nil, len(thief.Requests()))
	}
}

type countingTransport struct {
	base http.RoundTripper
	n    int
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return c.base.RoundTrip(r)
}

func TestContextEnds(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	mustAppend(t, s, run("main", "s", 0, 3)...)
	for _, op := range operations {
		ctx, cancel := context.WithCancel(t.Context())
		srv.Inject(openbraintest.Fault{Method: op.method, Path: op.path, Do: func(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
			cancel()
			<-r.Context().Done()
		}})
		if err := op.call(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled under way = %v, want Canceled", op.name, err)
		}
		if err := op.call(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled before = %v, want Canceled", op.name, err)
		}
		cancel()
	}
	holds(t, srv, "main", run("main", "s", 0, 3))
}

// An append that waits for another one of the same agent still ends with its context.
func TestWaitingAppendEnds(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	under, release := make(chan struct{}), make(chan struct{})
	srv.Inject(openbraintest.Fault{Method: "POST", Do: func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		close(under)
		<-release
		serve(w, r)
	}})
	done := make(chan error)
	go func() {
		_, err := s.Append(context.WithoutCancel(t.Context()), run("main", "s", 0, 1))
		done <- err
	}()
	<-under
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		_, err := s.Append(ctx, run("main", "s", 1, 2))
		second <- err
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("second Append = %v, want Canceled", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("first Append: %v", err)
	}
	holds(t, srv, "main", run("main", "s", 0, 1))
}
