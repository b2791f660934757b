package openbrain_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

const secretText = "the-content-nobody-may-quote in an error"

// faults are what can go wrong with a request, and what callers must be able to tell.
func faults(key string) []fault {
	echo, _ := json.Marshal(openbraintest.Validation([]any{"body", "content", 3}, "Value error, bad "+secretText+" "+key, secretText))
	plain, _ := json.Marshal(openbraintest.Validation([]any{"body", "metadata", 0}, "Input should be shorter", secretText))
	leak := `{"detail":"` + secretText + " " + key + `"}`
	status := openbraintest.Status
	return []fault{
		{name: "reset", do: openbraintest.Reset, want: core.ErrUnavailable, passes: true},
		{name: "reset mid-body", do: openbraintest.ResetMidBody, want: core.ErrUnavailable, passes: true},
		{name: "stall", do: openbraintest.Stall, want: core.ErrUnavailable, passes: true, slow: true},
		{name: "401", do: status(401, "application/json", leak), want: core.ErrAuth},
		{name: "403", do: status(403, "application/json", leak), want: core.ErrAuth},
		{name: "404", do: status(404, "application/json", leak), want: errors.ErrUnsupported},
		{name: "405", do: status(405, "application/json", leak), want: errors.ErrUnsupported},
		{name: "409", do: status(409, "application/json", leak), want: core.ErrConflict},
		{name: "413", do: status(413, "text/plain", leak), want: core.ErrInvalid},
		{name: "422 that quotes", do: status(422, "application/json", string(echo)), want: core.ErrInvalid},
		{name: "422", do: status(422, "application/json", string(plain)), want: core.ErrInvalid, text: "body.metadata.0: Input should be shorter"},
		{name: "429 seconds", do: status(429, "text/plain", leak, "Retry-After", "3"), want: core.ErrUnavailable, passes: true, wait: 3 * time.Second},
		{
			name: "429 date", do: status(429, "text/plain", leak, "Retry-After", now.Add(7*time.Second).Format(http.TimeFormat)),
			want: core.ErrUnavailable, passes: true, wait: 7 * time.Second,
		},
		{name: "503 for ever", do: status(503, "text/plain", leak, "Retry-After", "86400"), want: core.ErrUnavailable, passes: true, wait: 30 * time.Second},
		{name: "500 text", do: status(500, "text/plain", "Internal Server Error"), want: core.ErrUnavailable, passes: true},
		{name: "502 html", do: status(502, "text/html", "<html>"+leak), want: core.ErrUnavailable, passes: true},
		{name: "200 garbage", do: status(200, "text/html", "<html>"+leak), want: core.ErrUnavailable, passes: true},
		{name: "200 half", do: status(200, "application/json", `{"id": "x`), want: core.ErrUnavailable, passes: true},
		{name: "302", do: openbraintest.Redirect(302, "http://127.0.0.1:1"), want: core.ErrUnavailable, text: "302"},
		{name: "307", do: openbraintest.Redirect(307, "http://127.0.0.1:1"), want: core.ErrUnavailable, text: "307"},
		{name: "stored, then reset", do: openbraintest.Then(openbraintest.Reset), want: core.ErrUnavailable, passes: true, stored: true},
		{name: "stored, then stall", do: openbraintest.Then(openbraintest.Stall), want: core.ErrUnavailable, passes: true, slow: true, stored: true},
		{
			name: "stored, then 504", do: openbraintest.Then(status(504, "text/html", "<html>")),
			want: core.ErrUnavailable, passes: true, stored: true,
		},
	}
}

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

type fault struct {
	name string
	do   openbraintest.Action
	// want is the error when it does not pass, text a part of it.
	want error
	text string
	// passes says that a retry helps; wait is how long the client then waits, 0 for its own choice.
	passes bool
	wait   time.Duration
	// slow needs a short timeout; stored says that the server did what it was asked to.
	slow, stored bool
}

// operation is a call of a store, and the request that it is about.
type operation struct {
	name, method, path string
	call               func(context.Context, *openbrain.Store) error
}

// operations are the calls of a store that holds run("main", "s", 0, 3).
var operations = []operation{
	{"append", "POST", "=/v1/thoughts", func(ctx context.Context, s *openbrain.Store) error {
		_, err := s.Append(ctx, []core.Entry{entry("main", "s", 3, secretText), entry("main", "s", 4, secretText+" again")})
		return err
	}},
	{"scan", "GET", "=/v1/thoughts", func(ctx context.Context, s *openbrain.Store) error {
		_, err := s.Scan(ctx, core.ScanQuery{Scope: agentScope("main"), Limit: 10})
		return err
	}},
	{"search", "POST", "/v1/search", func(ctx context.Context, s *openbrain.Store) error {
		_, err := s.Search(ctx, core.SearchQuery{Scope: agentScope("main"), Text: secretText, Limit: 10})
		return err
	}},
	{"update", "PATCH", "/v1/thoughts/", func(ctx context.Context, s *openbrain.Store) error {
		e := entry("main", "s", 1, secretText)
		return s.Update(ctx, agentScope("main"), e.ID, core.Change{Message: &e.Message, Tokens: e.Tokens, Fingerprint: e.Fingerprint})
	}},
	{"delete", "DELETE", "/v1/thoughts/", func(ctx context.Context, s *openbrain.Store) error {
		_, err := s.Delete(ctx, agentScope("main"), []string{"main-s-1"})
		return err
	}},
}

// after is what the agent's entries are when an operation went well.
func after(op string) []core.Entry {
	entries := run("main", "s", 0, 3)
	switch op {
	case "append":
		return append(entries, entry("main", "s", 3, secretText), entry("main", "s", 4, secretText+" again"))
	case "update":
		entries[1] = entry("main", "s", 1, secretText)
	case "delete":
		return append(entries[:1], entries[2])
	}
	return entries
}

func TestFaults(t *testing.T) {
	for _, op := range operations {
		for i, f := range faults("") {
			t.Run(op.name+"/"+f.name, func(t *testing.T) {
				srv := openbraintest.New(t)
				testFault(t, srv, op, faults(srv.Key())[i])
			})
		}
	}
}

func testFault(t *testing.T, srv *openbraintest.Server, op operation, f fault) {
	t.Helper()
	setUp := open(t, srv)
	for _, e := range run("main", "s", 0, 3) {
		mustAppend(t, setUp, e)
	}
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
	if f.slow {
		cfg.Timeout = 50 * time.Millisecond
	}
	var waits []time.Duration
	s := openbrain.New(cfg, openbrain.WithClock(func() time.Time { return now }),
		openbrain.WithSleep(func(ctx context.Context, d time.Duration) error {
			waits = append(waits, d)
			return ctx.Err()
		}))
	defer func() { _ = s.Close() }()

	inject := openbraintest.Fault{Method: op.method, Path: op.path, Do: f.do}
	srv.Inject(inject)
	err := op.call(t.Context(), s)
	switch {
	case f.passes && err != nil:
		t.Errorf("one fault: %v, want none: a retry helps", err)
	case f.passes && f.wait > 0 && (len(waits) != 1 || waits[0] != f.wait):
		t.Errorf("one fault: waited %v, want %v", waits, f.wait)
	case !f.passes && (err != nil || !errors.Is(f.want, core.ErrInvalid) || (op.name != "scan" && op.name != "search")):
		check(t, srv, err, f) // a page that is refused is asked for again, smaller
	}
	if f.passes {
		holds(t, srv, "main", after(op.name))
		if got, want := len(srv.Thoughts()), len(after(op.name)); got != want {
			t.Errorf("server has %d thoughts, want %d: nothing is sent twice", got, want)
		}
		return
	}
	// What fails for good changes nothing, and what comes after it works.
	srv.Heal()
	if op.name == "delete" && f.name == "404" { // gone already, says the server
		return
	}
	holds(t, srv, "main", run("main", "s", 0, 3))
	inject.Times = -1
	srv.Inject(inject)
	check(t, srv, op.call(t.Context(), s), f)
	srv.Heal()
	if err := op.call(t.Context(), s); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	holds(t, srv, "main", after(op.name))
}

// check looks at an error's kind, and at what it must not say.
func check(t *testing.T, srv *openbraintest.Server, err error, f fault) {
	t.Helper()
	if err == nil {
		// These are answers: a list that cannot be had is read another way, a missing thought is gone.
		if f.name == "404" || f.name == "405" {
			return
		}
		t.Error("no error")
		return
	}
	missing := f.name == "404" && errors.Is(err, core.ErrNotFound)
	if !errors.Is(err, f.want) && !missing {
		t.Errorf("error %v is not %v", err, f.want)
	}
	if !strings.Contains(err.Error(), f.text) || !strings.HasPrefix(err.Error(), "openbrain: ") {
		t.Errorf("error %q does not say %q", err, f.text)
	}
	for _, secret := range []string{srv.Key(), secretText, "nobody-may-quote", "127.0.0.1:1/"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q shows %q", err, secret)
		}
	}
}

// A fault that stays ends in an error, and a repeated call mends everything.
func TestLastingFaults(t *testing.T) {
	for _, op := range operations {
		for i, f := range faults("") {
			if !f.passes {
				continue
			}
			t.Run(op.name+"/"+f.name, func(t *testing.T) {
				srv := openbraintest.New(t)
				f := faults(srv.Key())[i]
				s := open(t, srv, func(c *openbrain.Config) {
					c.MaxRetries = 2
					if f.slow {
						c.Timeout = 50 * time.Millisecond
					}
				})
				for _, e := range run("main", "s", 0, 3) {
					mustAppend(t, s, e)
				}
				srv.Inject(openbraintest.Fault{Method: op.method, Path: op.path, Times: -1, Do: f.do})
				err := op.call(t.Context(), s)
				srv.Heal()
				if err != nil || !f.stored {
					check(t, srv, err, f)
				}
				if err := op.call(t.Context(), s); err != nil {
					t.Errorf("repeated: %v", err)
				}
				holds(t, srv, "main", after(op.name))
			})
		}
	}
}

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
