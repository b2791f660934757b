package openai_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/models/openai"
)

const (
	secretKey    = "sk-test-9f3a77c1d2"
	secretPrompt = "the violet heron lands at dusk"
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
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		var parsed map[string]any
		if err := json.Unmarshal(data, &parsed); err != nil {
			t.Errorf("request is not JSON: %v", err)
		}
		s.mu.Lock()
		n := min(len(s.paths), len(handlers)-1)
		s.paths = append(s.paths, r.URL.Path)
		s.auth = append(s.auth, r.Header.Get("Authorization"))
		s.bodies = append(s.bodies, parsed)
		s.mu.Unlock()
		handlers[n](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.paths)
}

func (s *server) body(i int) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[i]
}

// config fits a test server.
func (s *server) config() openai.Config {
	cfg := openai.DefaultConfig()
	cfg.BaseURL, cfg.APIKey, cfg.Model = s.URL+"/v1", secretKey, "test-model"
	return cfg
}

// naps is a sleep that only takes notes.
type naps struct {
	mu    sync.Mutex
	taken []time.Duration
}

func (n *naps) sleep(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, d)
	return ctx.Err()
}

func reply(status int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
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
	_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"half `)
}

// babble answers with something that is not HTTP and repeats what it was told.
func babble(w http.ResponseWriter, r *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, r.Header.Get("Authorization")+" "+secretPrompt+"\r\n\r\n")
	_ = conn.Close()
}

const goodAnswer = `{"id":"c1","object":"chat.completion","model":"test-model-2","choices":[{"index":0,"finish_reason":"stop",` +
	`"message":{"role":"assistant","content":"A short summary."}}],"usage":{"prompt_tokens":21,"completion_tokens":4,"total_tokens":25}}` + "\n"
