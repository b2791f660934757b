package verbs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/hosts/openbrain/verbs"
)

// output is a buffer that a command writes to while a test reads.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// run runs a command line, with an environment of its own.
func run(ctx context.Context, env map[string]string, stdout, stderr *output, args ...string) error {
	p := parts()
	p.Getenv = func(name string) string { return env[name] }
	cmd := verbs.New(p)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	return cmd.ExecuteContext(ctx)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.json")
	env := map[string]string{"OPENBRAIN_SERVE_KEYS": file}
	do := func(args ...string) (string, error) {
		var out, errOut output
		err := run(t.Context(), env, &out, &errOut, append([]string{"key"}, args...)...)
		return out.String(), err
	}
	secret, err := do("new", "--name", "laptop", "--source", "openclaw:*", "--source", "a,b")
	if err != nil {
		t.Fatal(err)
	}
	secret = strings.TrimSpace(secret)
	if !regexp.MustCompile(`^ob_[A-Za-z0-9_-]{43}$`).MatchString(secret) {
		t.Errorf("key %q has another form", secret)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), openbrain.HashKey(secret)) {
		t.Errorf("the file holds %s, %v; want the hash alone", text, err)
	}
	if _, err := do("new", "--name", "laptop", "--source", "*"); !errors.Is(err, core.ErrConflict) {
		t.Errorf("a name twice: %v, want ErrConflict", err)
	}
	if _, err := do("new", "--name", "x"); err == nil {
		t.Error("a key without a source was made")
	}
	if _, err := do("new", "--name", "x", "--source", ""); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("an empty pattern: %v, want ErrInvalid", err)
	}
	listed, err := do("list", "--json")
	var rows []struct{ Name, Created string }
	if err != nil || json.Unmarshal([]byte(listed), &rows) != nil || len(rows) != 1 || rows[0].Name != "laptop" || rows[0].Created == "" {
		t.Errorf("list = %s, %v", listed, err)
	}
	if table, err := do("list"); err != nil || !strings.Contains(table, "laptop") || !strings.Contains(table, "openclaw:* a,b") || strings.Contains(table, openbrain.HashKey(secret)) {
		t.Errorf("list = %s, %v", table, err)
	}
	if _, err := do("revoke", "--name", "nobody"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("revoke of nobody = %v, want ErrNotFound", err)
	}
	if _, err := do("revoke", "--name", "laptop"); err != nil {
		t.Error(err)
	}
	if listed, err := do("list", "--json"); err != nil || strings.TrimSpace(listed) != "[]" {
		t.Errorf("list of none = %s, %v", listed, err)
	}
	env["OPENBRAIN_SERVE_KEYS"] = ""
	if _, err := do("list"); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("without a file: %v, want ErrInvalid", err)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys.json")
	secret, err := openbrain.AddKey(keys, "test", []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"OPENBRAIN_SERVE_KEYS": keys, "OPENBRAIN_SERVE_LISTEN": "127.0.0.1:0", "OPENBRAIN_SERVE_PATH": filepath.Join(dir, "thoughts.db"),
		"OPENBRAIN_SERVE_LOG_FORMAT": "json", "OPENBRAIN_SERVE_MAX_LIMIT": "7", "OPENBRAIN_SERVE_RATE": "not a number",
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, log output
	done := make(chan error, 1)
	go func() { done <- run(ctx, env, &out, &log, "serve", "--rate", "0") }() // the flag goes before its variable
	var address string
	for address == "" {
		if m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(out.String()); m != nil {
			address = m[1]
			continue
		}
		select {
		case err := <-done:
			t.Fatalf("serve: %v\n%s", err, log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	var health output
	if err := run(t.Context(), nil, &health, &health, "health", "--url", address); err != nil || health.String() != "ready\n" {
		t.Errorf("health = %q, %v", health.String(), err)
	}
	status := func(path, key string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, tc := range []struct {
		path, key string
		want      int
	}{{"/v1/stats", secret, 200}, {"/v1/stats", "x", 401}, {"/v1/thoughts?limit=8", secret, 422}, {"/v1/thoughts?limit=7", secret, 200}} {
		if got := status(tc.path, tc.key); got != tc.want {
			t.Errorf("GET %s = %d, want %d", tc.path, got, tc.want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serve = %v, want nil after it was told to end", err)
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) || strings.Contains(line, secret) {
			t.Errorf("log line %q", line)
		}
	}
	if err := run(t.Context(), nil, &health, &health, "health", "--url", address); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("health of a server that ended = %v, want ErrUnavailable", err)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "thoughts.db"), filepath.Join(dir, "copy.db")
	env := map[string]string{"OPENBRAIN_SERVE_PATH": path}
	var out output
	if err := run(t.Context(), env, &out, &out, "backup", "--to", copied); err == nil || !strings.Contains(err.Error(), "there is no store") {
		t.Errorf("backup of a store that is not there = %v", err)
	}
	store, err := parts().OpenStore(t.Context(), "sqlite", path, nil)
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), env, &out, &out, "backup", "--to", copied); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), env, &out, &out, "backup", "--to", copied); !errors.Is(err, core.ErrConflict) {
		t.Errorf("backup over a file = %v, want ErrConflict", err)
	}
	if err := run(t.Context(), env, &out, &out, "backup", "--store", "memory", "--to", copied); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("backup of memory = %v, want ErrUnsupported", err)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		text string
	}{
		"no key beyond loopback": {args: []string{"--listen", "0.0.0.0:0"}, text: "--keys: a server that is reachable beyond loopback needs at least one; set --keys, or listen"},
		"no TLS beyond loopback": {args: []string{"--listen", "0.0.0.0:0", "--keys", "k"}, text: "set --tls-cert and --tls-key, or --allow-plain-http"},
		"unknown store":          {args: []string{"--store", "sqlight"}, text: "memory, sqlite"},
		"no such keys file":      {args: []string{"--store", "memory", "--listen", "127.0.0.1:0", "--keys", "/nonexistent/keys.json"}, text: "keys.json"},
		"limit out of range":     {args: []string{"--max-limit", "0"}, text: "--max-limit: must be 1 to 10000"},
		"variable not usable":    {env: map[string]string{"OPENBRAIN_SERVE_BURST": "many"}, text: "OPENBRAIN_SERVE_BURST"},
		"embedder's API":         {args: []string{"--embed-model", "m", "--embed-api", "x"}, text: "--embed-api"},
		"address of an Ollama":   {args: []string{"--embed-model", "m"}, text: "--embed-url, --embed-model: ollama: config: baseUrl: is required, set it or OLLAMA_HOST"},
		"embedder's address":     {args: []string{"--embed-model", "m", "--embed-api", "openai"}, text: "--embed-url"},
		"address of no model":    {args: []string{"--embed-url", "http://127.0.0.1:1"}, text: "--embed-model"},
		"log format":             {args: []string{"--log-format", "xml"}, text: "--log-format"},
		"log level":              {args: []string{"--log-level", "loud"}, text: "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out output
			err := run(t.Context(), tc.env, &out, &out, append([]string{"serve"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("serve %q = %v, want an error with %q", tc.args, err, tc.text)
			}
		})
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.URL.Path != "/readyz" {
			t.Errorf("asked %s with a key", r.URL.Path)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	var out output
	if err := run(t.Context(), nil, &out, &out, "health", "--url", s.URL); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "503") {
		t.Errorf("health = %v, want ErrUnavailable with the status", err)
	}
	for _, bad := range []string{"127.0.0.1", "ftp://127.0.0.1", "http://user:word@127.0.0.1"} {
		if err := run(t.Context(), nil, &out, &out, "health", "--url", bad); !errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "word") {
			t.Errorf("health --url %s = %v, want ErrInvalid", bad, err)
		}
	}
}
