package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/openai"
)

func newCompleter(t *testing.T, cfg openai.Config, opts ...openai.Option) *openai.Completer {
	t.Helper()
	c, err := openai.NewCompleter(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask() core.CompletionRequest {
	return core.CompletionRequest{System: "Be brief.", Prompt: secretPrompt, MaxTokens: 50, Purpose: "summary"}
}

func TestCompleteSendsAndReads(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, goodAnswer))
	got, err := newCompleter(t, s.config()).Complete(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	want := core.Completion{Text: "A short summary.", Model: "test-model-2", InputTokens: 21, OutputTokens: 4, StopReason: "stop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Complete (-want +got):\n%s", diff)
	}
	wantBody := map[string]any{
		"model": "test-model", "stream": false, "max_tokens": 50.0,
		"messages": []any{
			map[string]any{"role": "system", "content": "Be brief."},
			map[string]any{"role": "user", "content": secretPrompt},
		},
	}
	if diff := cmp.Diff(wantBody, s.body(0)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if s.paths[0] != "/v1/chat/completions" || s.auth[0] != "Bearer "+secretKey {
		t.Errorf("request to %q with authorization %q", s.paths[0], s.auth[0])
	}
}

func TestCompleteChoosesModelAndField(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ setting, model, field string }{
		{openai.FieldAuto, "gpt-4o-mini", "max_tokens"},
		{openai.FieldAuto, "gpt-5-mini", "max_completion_tokens"},
		{openai.FieldAuto, "openai/o3-mini", "max_completion_tokens"},
		{openai.FieldMaxCompletionTokens, "llama3.1", "max_completion_tokens"},
		{openai.FieldMaxTokens, "proxy/gpt-5", "max_tokens"},
	} {
		s := serve(t, reply(200, goodAnswer))
		cfg := s.config()
		cfg.MaxTokensField, cfg.APIKey = row.setting, ""
		req := core.CompletionRequest{Prompt: "x", MaxTokens: 7, Model: row.model}
		if _, err := newCompleter(t, cfg).Complete(t.Context(), req); err != nil {
			t.Errorf("%v: %v", row, err)
			continue
		}
		want := map[string]any{
			"model": row.model, "stream": false, row.field: 7.0,
			"messages": []any{map[string]any{"role": "user", "content": "x"}},
		}
		if diff := cmp.Diff(want, s.body(0)); diff != "" {
			t.Errorf("%v: request (-want +got):\n%s", row, diff)
		}
		if s.auth[0] != "" {
			t.Errorf("%v: no key set, but authorization %q was sent", row, s.auth[0])
		}
	}
}

// TestCompleteFailures runs every way to fail; each error must have the right sentinel and tell no secret, though most
// of the answers repeat key and prompt.
func TestCompleteFailures(t *testing.T) {
	t.Parallel()
	echo := func(code string) string {
		return fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s; you said %s","type":"%s","code":"%s"}}`,
			secretKey, secretPrompt, secretKey, code)
	}
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		want    error
		calls   int // with two retries allowed
		says    string
	}{
		"unauthorized":       {reply(401, echo("invalid_api_key")), core.ErrAuth, 1, "status 401 (invalid_api_key)"},
		"forbidden":          {reply(403, echo(secretKey)), core.ErrAuth, 1, "status 403:"},
		"bad request":        {reply(400, echo("context_length_exceeded")), core.ErrInvalid, 1, "context_length_exceeded"},
		"not found":          {reply(404, "404 page "+secretKey), core.ErrInvalid, 1, "status 404"},
		"out of quota":       {reply(429, echo("insufficient_quota")), core.ErrUnavailable, 1, "insufficient_quota"},
		"too many":           {reply(429, echo("rate_limit_exceeded")), core.ErrUnavailable, 3, "attempt 3: status 429 (rate_limit_exceeded)"},
		"conflict":           {reply(409, echo("x")), core.ErrUnavailable, 3, "status 409"},
		"request timeout":    {reply(408, ""), core.ErrUnavailable, 3, "status 408"},
		"server error":       {reply(500, secretKey), core.ErrUnavailable, 3, "status 500"},
		"overloaded":         {reply(503, "<html>"+secretPrompt), core.ErrUnavailable, 3, "status 503"},
		"error body no JSON": {reply(401, `{"error":"`+secretKey+`"}`), core.ErrAuth, 1, "status 401:"},
		"garbage":            {reply(200, "<html>"+secretKey), core.ErrUnavailable, 1, "not the JSON"},
		"other types":        {reply(200, `{"choices":"`+secretKey+`"}`), core.ErrUnavailable, 1, "not the JSON"},
		"truncated JSON":     {reply(200, goodAnswer[:60]), core.ErrUnavailable, 1, "not the JSON"},
		"no choice":          {reply(200, `{"choices":[],"error":{"message":"`+secretKey+`"}}`), core.ErrUnavailable, 1, "no choice"},
		"broken off":         {breakOff, core.ErrUnavailable, 3, "broke off"},
		"not HTTP":           {babble, core.ErrUnavailable, 3, "connection failed"},
		"endless": {reply(200, `{"choices":[{"message":{"content":"`+strings.Repeat("x", 17<<20)+`"}}]}`),
			core.ErrUnavailable, 1, "larger than"},
		"redirect": {reply(307, goodAnswer, "Location", "http://localhost:1/?k="+secretKey),
			core.ErrInvalid, 1, "redirect refused"},
		"redirect that looks like success": {reply(302, goodAnswer), core.ErrInvalid, 1, "redirect refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.handler)
			cfg := s.config()
			cfg.MaxRetries = 2
			got, err := newCompleter(t, cfg, openai.WithSleep((&naps{}).sleep)).Complete(t.Context(), ask())
			if !errors.Is(err, row.want) || got != (core.Completion{}) {
				t.Fatalf("Complete = %+v, %v, want %v", got, err, row.want)
			}
			if !strings.Contains(err.Error(), row.says) || !strings.HasPrefix(err.Error(), `openai: complete "test-model": `) {
				t.Errorf("error %q, want %q in it", err, row.says)
			}
			noSecrets(t, err)
			if s.calls() != row.calls {
				t.Errorf("%d calls, want %d", s.calls(), row.calls)
			}
		})
	}
}

// noSecrets looks at an error and everything it wraps, in every way it can be printed.
func noSecrets(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			if strings.Contains(text, secretKey) || strings.Contains(text, secretPrompt) || strings.Contains(text, "violet") {
				t.Errorf("a secret is in %q", text)
			}
		}
	}
}

func TestRetryRecovers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	date := now.Add(11 * time.Second).Format(http.TimeFormat)
	for name, row := range map[string]struct {
		first http.HandlerFunc
		least time.Duration
		most  time.Duration
	}{
		"500":              {reply(500, "oops"), 0, 500 * time.Millisecond},
		"429 seconds":      {reply(429, "", "Retry-After", "7"), 7 * time.Second, 7 * time.Second},
		"429 date":         {reply(429, "", "Retry-After", date), 11 * time.Second, 11 * time.Second},
		"503 past date":    {reply(503, "", "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), 0, 500 * time.Millisecond},
		"429 odd header":   {reply(429, "", "Retry-After", "-3 apples"), 0, 500 * time.Millisecond},
		"connection reset": {babble, 0, 500 * time.Millisecond},
		"answer cut short": {breakOff, 0, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.first, reply(200, goodAnswer))
			var n naps
			c := newCompleter(t, s.config(), openai.WithSleep(n.sleep), openai.WithClock(func() time.Time { return now }))
			got, err := c.Complete(t.Context(), ask())
			if err != nil || got.Text != "A short summary." {
				t.Fatalf("Complete = %+v, %v", got, err)
			}
			if len(n.taken) != 1 || n.taken[0] < row.least || n.taken[0] > row.most {
				t.Errorf("waits %v, want one of %v to %v", n.taken, row.least, row.most)
			}
			if diff := cmp.Diff(s.body(0), s.body(1)); diff != "" {
				t.Errorf("the retry differs:\n%s", diff)
			}
		})
	}
}

func TestRetryWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(500, ""))
	cfg := s.config()
	cfg.MaxRetries, cfg.RetryDelay, cfg.MaxRetryDelay = 20, 100*time.Millisecond, time.Second
	var n naps
	_, err := newCompleter(t, cfg, openai.WithSleep(n.sleep)).Complete(t.Context(), ask())
	if !errors.Is(err, core.ErrUnavailable) || len(n.taken) != 20 {
		t.Fatalf("Complete: %v after %d waits, want 20", err, len(n.taken))
	}
	bound, different := cfg.RetryDelay, map[time.Duration]bool{}
	for i, d := range n.taken {
		if d < 0 || d > bound {
			t.Errorf("wait %d is %v, want at most %v", i, d, bound)
		}
		different[d] = true
		bound = min(2*bound, cfg.MaxRetryDelay)
	}
	if len(different) < 10 {
		t.Errorf("waits %v are not random", n.taken)
	}
}

func TestRetryGivesUpOnLongWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(429, "", "Retry-After", "3600"))
	var n naps
	_, err := newCompleter(t, s.config(), openai.WithSleep(n.sleep)).Complete(t.Context(), ask())
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "1h0m0s") || len(n.taken) != 0 {
		t.Errorf("Complete: %v after waits %v, want ErrUnavailable at once", err, n.taken)
	}

	s = serve(t, reply(429, "", "Retry-After", "20"))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	_, err = newCompleter(t, s.config(), openai.WithSleep(n.sleep)).Complete(ctx, ask())
	if !errors.Is(err, core.ErrUnavailable) || len(n.taken) != 0 || s.calls() != 1 {
		t.Errorf("Complete: %v after waits %v, want ErrUnavailable before a wait the deadline cannot hold", err, n.taken)
	}
}

func TestCancelStops(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		s := serve(t, reply(200, goodAnswer))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newCompleter(t, s.config()).Complete(ctx, ask())
		if !errors.Is(err, context.Canceled) || s.calls() != 0 {
			t.Errorf("Complete = %v with %d calls, want Canceled and none", err, s.calls())
		}
	})
	t.Run("mid request", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { cancel(); hang(w, r) })
		_, err := newCompleter(t, s.config()).Complete(ctx, ask())
		if !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrUnavailable) || s.calls() != 1 {
			t.Errorf("Complete = %v with %d calls, want Canceled and one", err, s.calls())
		}
	})
	t.Run("in a wait", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			reply(503, "", "Retry-After", "20")(w, r)
			time.AfterFunc(20*time.Millisecond, cancel)
		})
		_, err := newCompleter(t, s.config()).Complete(ctx, ask())
		if !errors.Is(err, context.Canceled) || s.calls() != 1 {
			t.Errorf("Complete = %v with %d calls, want Canceled and one", err, s.calls())
		}
	})
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, err := newCompleter(t, serve(t, hang).config()).Complete(ctx, ask())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Complete = %v, want DeadlineExceeded", err)
		}
	})
}

func TestTimeoutIsRetriedAndNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	s := serve(t, hang, reply(200, goodAnswer))
	cfg := s.config()
	cfg.Timeout = 300 * time.Millisecond
	if _, err := newCompleter(t, cfg, openai.WithSleep((&naps{}).sleep)).Complete(t.Context(), ask()); err != nil {
		t.Errorf("Complete = %v, want success of the second attempt", err)
	}
	s = serve(t, hang)
	cfg = s.config()
	cfg.Timeout, cfg.MaxRetries = 20*time.Millisecond, 0
	_, err := newCompleter(t, cfg).Complete(t.Context(), ask())
	if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("Complete = %v, want ErrUnavailable and not DeadlineExceeded", err)
	}
}

func TestCompleteRefusesBeforeSending(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, goodAnswer))
	cfg := s.config()
	cfg.MaxTokensField = openai.FieldMaxTokens
	c := newCompleter(t, cfg)
	for _, req := range []core.CompletionRequest{
		{}, {System: secretPrompt}, {Prompt: secretPrompt, MaxTokens: -1}, {Prompt: secretPrompt, Model: "gpt-5", MaxTokens: 5},
	} {
		_, err := c.Complete(t.Context(), req)
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Complete(%+v) = %v, want ErrInvalid", req, err)
		}
		noSecrets(t, err)
	}
	if s.calls() != 0 {
		t.Errorf("%d calls, want none", s.calls())
	}
}

func TestRefusalAndMissingModel(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","refusal":"I can't."}}]}`))
	got, err := newCompleter(t, s.config()).Complete(t.Context(), ask())
	want := core.Completion{Model: "test-model", StopReason: "refusal"}
	if err != nil || got != want {
		t.Errorf("Complete = %+v, %v, want %+v", got, err, want)
	}
}

func TestNobodyListening(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, goodAnswer))
	cfg := s.config()
	s.Close()
	var n naps
	_, err := newCompleter(t, cfg, openai.WithSleep(n.sleep)).Complete(t.Context(), ask())
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") || len(n.taken) != cfg.MaxRetries {
		t.Errorf("Complete = %v after %d waits, want ErrUnavailable after %d", err, len(n.taken), cfg.MaxRetries)
	}
}

func TestWithHTTPClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	target := serve(t, reply(200, goodAnswer))
	s := serve(t, reply(308, "", "Location", target.URL+"/v1/chat/completions"))
	own := &http.Client{Transport: http.DefaultTransport}
	_, err := newCompleter(t, s.config(), openai.WithHTTPClient(own), openai.WithHTTPClient(nil)).Complete(t.Context(), ask())
	if !errors.Is(err, core.ErrInvalid) || target.calls() != 0 {
		t.Errorf("Complete = %v, %d calls to the target, want a refusal and none", err, target.calls())
	}
	if own.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
}
