package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/ollama"
)

const (
	secretKey  = "ollama-test-5d1c9f"
	secretText = "the violet heron lands at dusk"
)

// server answers request n with the n-th handler, the last one again and again, and keeps what it was sent.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	paths  []string
	auth   []string
	bodies []map[string]any
}

func serve(t *testing.T, handlers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var parsed map[string]any
		if err := json.NewDecoder(r.Body).Decode(&parsed); err != nil {
			t.Errorf("request is not JSON: %v", err)
		}
		s.mu.Lock()
		n := min(len(s.paths), len(handlers)-1)
		s.paths, s.auth, s.bodies = append(s.paths, r.Method+" "+r.URL.Path), append(s.auth, r.Header.Get("Authorization")), append(s.bodies, parsed)
		s.mu.Unlock()
		handlers[n](w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, parsed)))
	}))
	t.Cleanup(s.Close)
	return s
}

type bodyKey struct{}

func (s *server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paths)
}

// lengths answers each text with the vector (bytes of the text, its first byte, 1).
func lengths(w http.ResponseWriter, r *http.Request) {
	var out [][]float64
	for _, item := range r.Context().Value(bodyKey{}).(map[string]any)["input"].([]any) {
		text := item.(string)
		out = append(out, []float64{float64(len(text)), float64(text[0]), 1})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"model": "m", "embeddings": out, "prompt_eval_count": 8})
}

func reply(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// hang answers nothing until the client goes away.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// breakOff promises more bytes than it sends.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"embeddings":[[1,`)
}

func (s *server) embedder(t *testing.T, change func(*ollama.Config), opts ...ollama.Option) *ollama.Embedder {
	t.Helper()
	cfg := ollama.DefaultConfig()
	cfg.BaseURL, cfg.APIKey, cfg.Model = s.URL, secretKey, "bge-m3"
	if change != nil {
		change(&cfg)
	}
	noSleep := ollama.WithSleep(func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
	e, err := ollama.NewEmbedder(cfg, append([]ollama.Option{noSleep}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	s := serve(t, lengths)
	e := s.embedder(t, func(c *ollama.Config) { c.BaseURL += "/"; c.BatchInputs = 2; c.KeepAlive = 5 * time.Minute })
	if e.Dimensions() != 0 || e.Model() != "bge-m3" {
		t.Errorf("before the first call Dimensions, Model = %d, %q", e.Dimensions(), e.Model())
	}
	got, err := e.Embed(t.Context(), []string{"a", "", "bb", "c\xff", "d"})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float32{{1, 'a', 1}, {1, ' ', 1}, {2, 'b', 1}, {4, 'c', 1}, {1, 'd', 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Embed (-want +got):\n%s", diff)
	}
	wantBodies := []map[string]any{}
	for _, input := range [][]any{{"a", " "}, {"bb", "c\uFFFD"}, {"d"}} {
		wantBodies = append(wantBodies, map[string]any{"model": "bge-m3", "input": input, "truncate": false, "keep_alive": "5m0s"})
	}
	if diff := cmp.Diff(wantBodies, s.bodies); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if e.Dimensions() != 3 || s.paths[0] != "POST /api/embed" || s.auth[0] != "Bearer "+secretKey {
		t.Errorf("dimensions %d, request %q with authorization %q", e.Dimensions(), s.paths[0], s.auth[0])
	}
	if got, err := e.Embed(t.Context(), nil); err != nil || len(got) != 0 || s.calls() != 3 {
		t.Errorf("Embed of nothing = %v, %v after %d calls, want no further call", got, err, s.calls())
	}
	if err := e.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

func TestDimensionsAreAskedForOnlyWhenTold(t *testing.T) {
	t.Parallel()
	s := serve(t, lengths)
	if _, err := s.embedder(t, func(c *ollama.Config) { c.Dimensions = 3; c.APIKey = "" }).Embed(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.embedder(t, func(c *ollama.Config) { c.Dimensions, c.RequestDimensions = 3, true }).Embed(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if _, there := s.bodies[0]["dimensions"]; there || s.bodies[1]["dimensions"] != 3.0 || s.auth[0] != "" {
		t.Errorf("requests %v, authorization %q", s.bodies, s.auth[0])
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	echo := `{"error":"` + secretText + " " + secretKey + `"}`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		kind    error
		calls   int
		text    string
	}{
		"text too long":     {reply(400, echo), core.ErrInvalid, 1, "longer"},
		"unauthorized":      {reply(401, echo), core.ErrAuth, 1, "401"},
		"forbidden":         {reply(403, echo), core.ErrAuth, 1, "403"},
		"model not pulled":  {reply(404, echo), core.ErrUnavailable, 1, "pull it"},
		"redirect":          {reply(307, echo, "Location", "http://example.com/"), core.ErrUnavailable, 1, "redirect"},
		"busy":              {reply(503, echo), core.ErrUnavailable, 4, "503"},
		"error":             {reply(500, "panic "+secretText), core.ErrUnavailable, 4, "500"},
		"asks for too long": {reply(429, echo, "Retry-After", "3600"), core.ErrUnavailable, 1, "not before 1h"},
		"broken off":        {breakOff, core.ErrUnavailable, 4, "broke off"},
		"hangs":             {hang, core.ErrUnavailable, 4, "attempt 4: no answer within"},
		"no JSON":           {reply(200, "<html>"+secretText), core.ErrUnavailable, 1, "JSON"},
		"another API":       {reply(200, `{"data":[]}`), core.ErrUnavailable, 1, "0 vectors for 1"},
		"too many":          {reply(200, `{"embeddings":[[1],[2]]}`), core.ErrUnavailable, 1, "2 vectors for 1"},
		"empty vector":      {reply(200, `{"embeddings":[[]]}`), core.ErrUnavailable, 1, "empty"},
		"wrong length":      {reply(200, `{"embeddings":[[1,2]]}`), core.ErrUnavailable, 1, "dimensions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.handler)
			e := s.embedder(t, func(c *ollama.Config) {
				c.Dimensions = 3
				if name == "hangs" {
					c.Timeout = 20 * time.Millisecond
				}
			})
			_, err := e.Embed(t.Context(), []string{secretText})
			calls := s.calls()
			if name == "hangs" { // on a busy machine an attempt may end before the server has it
				calls = tc.calls
			}
			if !errors.Is(err, tc.kind) || calls != tc.calls || !strings.Contains(fmt.Sprint(err), tc.text) {
				t.Errorf("Embed = %v after %d calls, want %v, %q, after %d", err, calls, tc.kind, tc.text, tc.calls)
			}
			if strings.Contains(fmt.Sprint(err), secretKey) || strings.Contains(fmt.Sprint(err), secretText) {
				t.Errorf("error %q shows a secret", err)
			}
		})
	}
}

func TestRetriesUntilItAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(503, ""), breakOff, lengths)
	if got, err := s.embedder(t, nil).Embed(t.Context(), []string{"abc"}); err != nil || len(got) != 1 || s.calls() != 3 {
		t.Errorf("Embed = %v, %v after %d calls, want success after 3", got, err, s.calls())
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { cancel(); hang(w, r) })
	if _, err := s.embedder(t, nil).Embed(ctx, []string{"abc"}); !errors.Is(err, context.Canceled) || s.calls() != 1 {
		t.Errorf("Embed = %v after %d calls, want Canceled after 1", err, s.calls())
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	s := serve(t, lengths)
	e := s.embedder(t, nil)
	s.Close()
	if _, err := e.Embed(t.Context(), []string{secretText}); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Embed = %v, want ErrUnavailable", err)
	}
}

// No address is anybody's default: without one there is no embedder.
func TestAddressIsRequired(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"": "", "models.example.com": "http://models.example.com:11434", "localhost:8080": "http://localhost:8080", ":8080": "http://localhost:8080",
		"0.0.0.0": "http://localhost:11434", "[::]:8080": "http://localhost:8080", "[::1]": "http://[::1]:11434", "https://models.example.com": "https://models.example.com",
	} {
		cfg := ollama.DefaultConfig()
		cfg.Model = "m"
		cfg = cfg.WithEnv(func(name string) string { return map[string]string{ollama.EnvHost: host}[name] })
		if cfg.BaseURL != want {
			t.Errorf("%s=%q: BaseURL = %q, want %q", ollama.EnvHost, host, cfg.BaseURL, want)
		}
		_, err := ollama.NewEmbedder(cfg)
		if want != "" && err != nil {
			t.Errorf("%s=%q: NewEmbedder = %v", ollama.EnvHost, host, err)
		}
		if want == "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "baseUrl: is required") || !strings.Contains(err.Error(), ollama.EnvHost)) {
			t.Errorf("without an address: NewEmbedder = %v, want ErrInvalid with both places it comes from", err)
		}
		cfg.BaseURL = "http://example.com"
		if got := cfg.WithEnv(func(string) string { return "localhost" }).BaseURL; got != cfg.BaseURL {
			t.Errorf("BaseURL = %q, want the configured one", got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*ollama.Config){
		"model": func(c *ollama.Config) { c.Model = " " }, "baseUrl": func(c *ollama.Config) { c.BaseURL = "127.0.0.1:11434" },
		"user or password": func(c *ollama.Config) { c.BaseURL = "http://u:" + secretKey + "@127.0.0.1" }, "apiKey": func(c *ollama.Config) { c.APIKey = secretKey + "\n" },
		"timeout": func(c *ollama.Config) { c.Timeout = 0 }, "maxRetries": func(c *ollama.Config) { c.MaxRetries = 21 },
		"retryDelay": func(c *ollama.Config) { c.RetryDelay = 0 }, "maxRetryDelay": func(c *ollama.Config) { c.MaxRetryDelay = 1 },
		"dimensions": func(c *ollama.Config) { c.Dimensions = -1 }, "requestDimensions": func(c *ollama.Config) { c.RequestDimensions = true },
		"batchInputs": func(c *ollama.Config) { c.BatchInputs = 0 }, "keepAlive": func(c *ollama.Config) { c.KeepAlive = -1 },
	} {
		cfg := ollama.DefaultConfig()
		cfg.BaseURL, cfg.Model = "http://localhost:11434", "m"
		if err := cfg.Validate(); err != nil {
			t.Fatalf("Validate: %v", err)
		}
		change(&cfg)
		_, err := ollama.NewEmbedder(cfg)
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: NewEmbedder = %v, want ErrInvalid naming it", field, err)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", cfg)
		if all := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, err) + log.String(); strings.Contains(all, secretKey) {
			t.Errorf("%s: %s shows the key", field, all)
		}
	}
}
