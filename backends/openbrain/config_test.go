package openbrain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

const configText = "OpenBrainConfigError: openclaw-openbrain-context: baseUrl and apiKey are required. Set them in your openclaw.json plugin config."

func TestMissingConfig(t *testing.T) {
	for _, cfg := range []openbrain.Config{
		openbrain.DefaultConfig(), {BaseURL: "http://localhost"}, {APIKey: "k"}, {BaseURL: " ", APIKey: "k"}, {BaseURL: "http://localhost", APIKey: "\n"},
	} {
		s, err := openbrain.Open(t.Context(), cfg)
		var missing *openbrain.ConfigError
		if s != nil || !errors.As(err, &missing) || err.Error() != configText || !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Open = %v, %v; want ConfigError", s, err)
		}
		lazy := openbrain.New(cfg)
		calls := map[string]error{"Check": lazy.Check(), "Ping": lazy.Ping(t.Context())}
		for _, op := range operations {
			calls[op.name] = op.call(t.Context(), lazy)
		}
		_, calls["get"] = lazy.Get(t.Context(), agentScope("main"), []string{"x"})
		for name, err := range calls {
			if !errors.As(err, &missing) || err.Error() != configText {
				t.Errorf("%s = %v, want ConfigError and no other text", name, err)
			}
		}
		if err := lazy.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestWithEnv(t *testing.T) {
	env := map[string]string{"OPENBRAIN_URL": "http://localhost:1", "OPENBRAIN_API_KEY": "env-key"}
	getenv := func(k string) string { return env[k] }
	c := openbrain.DefaultConfig().WithEnv(getenv)
	if c.BaseURL != "http://localhost:1" || c.APIKey != "env-key" || c.Validate() != nil {
		t.Errorf("WithEnv = %v, %v", c, c.Validate())
	}
	c = openbrain.Config{BaseURL: "http://localhost:2", APIKey: "own"}.WithEnv(getenv)
	if c.BaseURL != "http://localhost:2" || c.APIKey != "own" {
		t.Errorf("the environment won over the configuration: %v", c)
	}
}

func TestInvalidConfig(t *testing.T) {
	const password = "hunter2"
	change := func(f func(*openbrain.Config)) openbrain.Config {
		c := openbrain.DefaultConfig()
		c.BaseURL, c.APIKey = "http://localhost", "k"
		f(&c)
		return c
	}
	for field, c := range map[string]openbrain.Config{
		"baseUrl: must not hold": change(func(c *openbrain.Config) { c.BaseURL = "http://u:" + password + "@localhost" }),
		"baseUrl: must be":       change(func(c *openbrain.Config) { c.BaseURL = "localhost:80/" + password }),
		"baseUrl: must be an":    change(func(c *openbrain.Config) { c.BaseURL = "http://%zz" + password }),
		"baseUrl: must not have": change(func(c *openbrain.Config) { c.BaseURL = "http://localhost/?key=" + password }),
		"apiKey":                 change(func(c *openbrain.Config) { c.APIKey = password + "\nX: y" }),
		"timeout":                change(func(c *openbrain.Config) { c.Timeout = -1 }),
		"maxRetries":             change(func(c *openbrain.Config) { c.MaxRetries = 21 }),
		"maxWait":                change(func(c *openbrain.Config) { c.MaxWait = time.Hour }),
		"maxContent":             change(func(c *openbrain.Config) { c.MaxContent = 1 }),
		"pageSize":               change(func(c *openbrain.Config) { c.PageSize = 1 }),
		"source":                 change(func(c *openbrain.Config) { c.Source = "a\x00" }),
	} {
		_, err := openbrain.Open(t.Context(), c)
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: Open = %v", field, err)
		}
		if strings.Contains(c.String(), password) {
			t.Errorf("%s: String = %s", field, c)
		}
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	srv := openbraintest.New(t)
	cfg := openbrain.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
	s := openbrain.New(cfg)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "cfg", cfg, "store", s)
	asJSON, _ := json.Marshal(cfg)
	for _, text := range []string{
		fmt.Sprint(cfg), fmt.Sprintf("%+v %#v %s", cfg, cfg, cfg), fmt.Sprintf("%v %+v %#v", s, s, s), log.String(), string(asJSON),
	} {
		if strings.Contains(text, srv.Key()) {
			t.Errorf("the key is printed: %s", text)
		}
	}
	if !strings.Contains(cfg.String(), srv.URL()) {
		t.Errorf("String = %s, want the address in it", cfg)
	}
}

func TestPing(t *testing.T) {
	srv := openbraintest.New(t)
	s := open(t, srv)
	for _, lacks := range []bool{false, true} {
		srv.Set(func(b *openbraintest.Behavior) { b.NoStats = lacks })
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("Ping, no statistics %t: %v", lacks, err)
		}
	}
	wrong := open(t, srv, func(c *openbrain.Config) { c.APIKey = "wrong-key" })
	if err := wrong.Ping(t.Context()); !errors.Is(err, core.ErrAuth) || strings.Contains(err.Error(), "wrong-key") {
		t.Errorf("Ping with a wrong key = %v, want ErrAuth", err)
	}
}

func TestSourcePrefix(t *testing.T) {
	srv := openbraintest.New(t)
	a, b := open(t, srv), open(t, srv, func(c *openbrain.Config) { c.Source = "lab" })
	mustAppend(t, a, entry("main", "s", 0, "x"))
	mustAppend(t, b, entry("main", "s", 0, "x"))
	if th := srv.Thoughts(); len(th) != 2 || th[0].Source != "openclaw:main" || th[1].Source != "lab:main" {
		t.Errorf("thoughts = %v", th)
	}
	for _, s := range []*openbrain.Store{a, b} {
		if got := all(t, s, agentScope("main"), false, 10); len(got) != 1 {
			t.Errorf("%d entries, want 1", len(got))
		}
	}
}

func TestClose(t *testing.T) {
	srv := openbraintest.New(t)
	before := runtime.NumGoroutine()
	s := open(t, srv)
	mustAppend(t, s, run("main", "s", 0, 3)...)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for _, op := range operations {
		if err := op.call(t.Context(), s); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s after Close = %v, want ErrClosed", op.name, err)
		}
	}
	srv.Stop() // its own goroutines end with it
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
