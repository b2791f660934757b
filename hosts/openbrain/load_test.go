package openbrain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

// A hundred clients at the same time, each with connections of its own: what each stores it finds, and nobody gets an error.
func TestAHundredClients(t *testing.T) {
	store := openSQLite(t, filepath.Join(t.TempDir(), "thoughts.db"))
	t.Cleanup(func() { _ = store.Close() })
	f := serve(t, store, twoKeys)
	const clients, each = 100, 5
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			transport := http.DefaultTransport.(*http.Transport).Clone()
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			source := fmt.Sprintf("client%d", c)
			call := func(method, path, body string, want int, out any) {
				req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+adminKey)
				req.Header.Set("Content-Type", "application/json")
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = res.Body.Close() }()
				if err := json.NewDecoder(res.Body).Decode(out); err != nil || res.StatusCode != want {
					t.Errorf("%s %s = %d, %v; want %d", method, path, res.StatusCode, err, want)
				}
			}
			for i := range each {
				var made thought
				call("POST", "/v1/thoughts", fmt.Sprintf(`{"content":"otter%d of client%d","source":%q,"metadata":{"id":"%d"}}`, i, c, source, i), 201, &made)
				var l list
				call("POST", "/v1/search", fmt.Sprintf(`{"query":"otter%d","source":%q,"limit":1}`, i, source), 200, &l)
				if l.Count != 1 || l.Thoughts[0].ID != made.ID {
					t.Errorf("client %d does not find thought %d", c, i)
				}
			}
			var l list
			call("GET", "/v1/thoughts?limit=100&source="+source, "", 200, &l)
			if l.Count != each {
				t.Errorf("client %d lists %d thoughts, want %d", c, l.Count, each)
			}
		})
	}
	wg.Wait()
	if r := f.want(t, 200, adminKey, http.MethodGet, "/v1/stats", "", nil); !strings.Contains(string(r.body), fmt.Sprintf(`"total":%d`, clients*each)) {
		t.Errorf("stats = %.80s, want %d", r.body, clients*each)
	}
}

// Requests beyond the limit wait a little, then are told to come back; health is answered all the same.
func TestTooManyAtTheSameTime(t *testing.T) {
	slow := &slowStore{Store: memory.New(), entered: make(chan struct{}), release: make(chan struct{})}
	f := serve(t, slow, func(c *openbrain.Config) { c.MaxConcurrent = 1 })
	done := make(chan int, 1)
	go func() { done <- f.ask(t, "", "POST", "/v1/thoughts", `{"content":"x","source":"slow"}`).status }()
	<-slow.entered
	if r := f.ask(t, "", "GET", "/v1/stats", ""); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "1" {
		t.Errorf("second request = %d, Retry-After %q; want 503 and 1", r.status, r.header.Get("Retry-After"))
	}
	f.want(t, 200, "", "GET", "/readyz", "", nil)
	close(slow.release)
	if got := <-done; got != http.StatusCreated {
		t.Errorf("first request = %d, want 201", got)
	}
	f.want(t, 200, "", "GET", "/v1/stats", "", nil)
}

// Work that takes too long is given up, and the client told to come back.
func TestRequestTimeout(t *testing.T) {
	slow := &slowStore{Store: memory.New(), entered: make(chan struct{}), release: make(chan struct{})}
	f := serve(t, slow, func(c *openbrain.Config) { c.RequestTimeout = 30 * time.Millisecond })
	if r := f.ask(t, "", "POST", "/v1/thoughts", `{"content":"x","source":"slow"}`); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
		t.Errorf("POST to a store that hangs = %d, want 503 with Retry-After", r.status)
	}
}

// No goroutine is left when a server with everything has ended.
func TestNothingIsLeftRunning(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	keys := filepath.Join(t.TempDir(), "keys.json")
	secret, err := openbrain.AddKey(keys, "k", []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		store := openSQLite(t, filepath.Join(t.TempDir(), "thoughts.db"))
		cfg := openbrain.DefaultConfig()
		cfg.KeysFile = keys
		cfg.EmbedMaxWait = 5 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		listening, done := make(chan string, 1), make(chan error, 1)
		go func() {
			done <- openbrain.Run(ctx, openbrain.Setup{
				Config: cfg, Listen: "127.0.0.1:0", Store: store, Embedder: &fakeEmbedder{down: true},
				Listening: func(a net.Addr) { listening <- a.String() },
			})
		}()
		select {
		case address := <-listening:
			f := &fixture{url: "http://" + address}
			f.post(t, secret, "s", "x", `{}`)
			f.search(t, secret, map[string]any{"query": "x"})
			f.want(t, 401, "", "GET", "/v1/stats", "", nil)
		case err := <-done:
			t.Fatalf("Run = %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	for range 400 { // connections end on their own time
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

func TestRunRefuses(t *testing.T) {
	for name, s := range map[string]openbrain.Setup{
		"no store":          {Config: openbrain.DefaultConfig(), Listen: "127.0.0.1:0"},
		"no configuration":  {Listen: "127.0.0.1:0", Store: memory.New()},
		"open to all":       {Config: openbrain.DefaultConfig(), Listen: ":0", Store: memory.New()},
		"no address at all": {Config: openbrain.DefaultConfig(), Store: memory.New()},
	} {
		if err := openbrain.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), core.ErrInvalid.Error()) {
			t.Errorf("%s: Run = %v, want ErrInvalid", name, err)
		}
	}
}
