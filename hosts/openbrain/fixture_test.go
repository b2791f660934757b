package openbrain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// syncBuffer is a buffer that several goroutines may write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// fixture is a running server.
type fixture struct {
	url    string
	log    *syncBuffer
	store  core.Store
	server *openbrain.Server
}

func key(name, secret string, sources ...string) openbrain.Key {
	return openbrain.Key{Name: name, SHA256: openbrain.HashKey(secret), Sources: sources}
}

// serve starts a server over a store; nil is an empty one in memory.
func serve(tb testing.TB, store core.Store, change func(*openbrain.Config), opts ...openbrain.Option) *fixture {
	tb.Helper()
	if store == nil {
		m := memory.New()
		tb.Cleanup(func() { _ = m.Close() })
		store = m
	}
	index, err := lexical.New(lexical.DefaultConfig())
	if err == nil {
		err = index.Attach(store)
	}
	if err != nil {
		tb.Fatalf("lexical: %v", err)
	}
	cfg := openbrain.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	log := &syncBuffer{}
	opts = append([]openbrain.Option{
		openbrain.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	}, opts...)
	s, err := openbrain.New(cfg, store, index, opts...)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	ts := httptest.NewServer(s.Handler())
	tb.Cleanup(func() {
		ts.Close()
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return &fixture{url: ts.URL, log: log, store: store, server: s}
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request. body is sent as JSON text when it is not empty.
func (f *fixture) ask(tb testing.TB, secret, method, path, body string, header ...string) reply {
	tb.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		tb.Fatalf("request: %v", err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatalf("%s %s: read: %v", method, path, err)
	}
	return reply{res.StatusCode, res.Header, data}
}

// want asks and fails when the status is another. out, when it is not nil, gets the decoded answer.
func (f *fixture) want(tb testing.TB, status int, secret, method, path, body string, out any) reply {
	tb.Helper()
	r := f.ask(tb, secret, method, path, body)
	if r.status != status {
		tb.Fatalf("%s %s = %d, want %d; body %s", method, path, r.status, status, r.body)
	}
	if out != nil {
		if err := json.Unmarshal(r.body, out); err != nil {
			tb.Fatalf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
	return r
}

type thought struct {
	ID         string          `json:"id"`
	Content    string          `json:"content"`
	Source     string          `json:"source"`
	Metadata   json.RawMessage `json:"metadata"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	Similarity *float64        `json:"similarity"`
}

type list struct {
	Thoughts []thought `json:"thoughts"`
	Count    int       `json:"count"`
	Next     string    `json:"next"`
}

func (l list) contents() []string {
	out := []string{}
	for _, t := range l.Thoughts {
		out = append(out, t.Content)
	}
	return out
}

func encode(tb testing.TB, v any) string {
	tb.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // metadata is to be sent as it is written
	if err := e.Encode(v); err != nil {
		tb.Fatalf("encode: %v", err)
	}
	return b.String()
}

func (f *fixture) post(tb testing.TB, secret, source, content, metadata string) thought {
	tb.Helper()
	var t thought
	body := map[string]any{"content": content, "source": source, "metadata": json.RawMessage(metadata)}
	f.want(tb, http.StatusCreated, secret, http.MethodPost, "/v1/thoughts", encode(tb, body), &t)
	return t
}

func (f *fixture) search(tb testing.TB, secret string, body map[string]any) list {
	tb.Helper()
	var l list
	f.want(tb, http.StatusOK, secret, http.MethodPost, "/v1/search", encode(tb, body), &l)
	return l
}

func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}
