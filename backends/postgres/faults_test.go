package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// with returns an address with something in it changed.
func with(tb testing.TB, dsn string, change func(*url.URL)) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	change(u)
	return u.String()
}

// TestOpenFails goes through the ways in which a server cannot be used. No text may tell where it is, or who asked.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	server := servers.Plain(t)
	base := fresh(t)
	server.Exec(t, base.DSN, "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guestsecret'")
	silent := listen(t, func(net.Conn) {})
	babbler := listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); _ = c.Close() })
	hangup := listen(t, func(c net.Conn) { _ = c.Close() })
	for name, c := range map[string]struct {
		change func(*url.URL)
		want   error
	}{
		"wrong password":   {func(u *url.URL) { u.User = url.UserPassword("postgres", "hunter2") }, core.ErrAuth},
		"unknown user":     {func(u *url.URL) { u.User = url.UserPassword("nobodyhome", "hunter2") }, core.ErrAuth},
		"no privilege":     {func(u *url.URL) { u.User = url.UserPassword("guest", "guestsecret") }, core.ErrAuth},
		"unknown database": {func(u *url.URL) { u.Path = "/nosuchdb" }, core.ErrNotFound},
		"refused":          {func(u *url.URL) { u.Host = "127.0.0.1:1" }, core.ErrUnavailable},
		"unknown host":     {func(u *url.URL) { u.Host = "nohost.invalid:5432" }, core.ErrUnavailable},
		"no TLS":           {func(u *url.URL) { u.RawQuery = "sslmode=require" }, core.ErrUnavailable},
		"silent":           {func(u *url.URL) { u.Host = silent }, core.ErrUnavailable},
		"another protocol": {func(u *url.URL) { u.Host = babbler }, core.ErrUnavailable},
		"hangs up":         {func(u *url.URL) { u.Host = hangup }, core.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base
			cfg.DSN = with(t, base.DSN, c.change)
			cfg.Schema, cfg.ConnectTimeout, cfg.MaxRetries = "elsewhere", 300*time.Millisecond, 1
			if name != "silent" {
				cfg.ConnectTimeout = 20 * time.Second
			}
			var log bytes.Buffer
			s, err := postgres.Open(t.Context(), cfg, postgres.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) {
				t.Errorf("Open: %v, want %v", err, c.want)
			}
			u, _ := url.Parse(cfg.DSN)
			for _, secret := range []string{"hunter2", "guestsecret", server.Password(), u.Hostname(), u.Port(), strings.Trim(u.Path, "/"), "nobodyhome"} {
				if text := fmt.Sprintf("%v %+v %#v %s", err, err, err, log.String()); len(secret) > 2 && strings.Contains(text, secret) {
					t.Errorf("%q shows %q", text, secret)
				}
			}
		})
	}
}

// listen accepts connections until the test ends and hands them to serve. The listener owns its goroutine and stops it.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// TestErrorsHoldNoContents makes the server complain about values.
func TestErrorsHoldNoContents(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	secret := entry(ann, 0)
	secret.Message = message.New(message.User, "xyzzy")
	secret.Meta = map[string]string{"xyzzy": "xyzzy"}
	servers.Plain(t).Exec(t, cfg.DSN, "ALTER TABLE "+cfg.Schema+".entries ADD CHECK (tokens < 100), ADD CHECK (turn < 9)")
	secret.Tokens = 1000
	_, err := s.Append(t.Context(), []core.Entry{secret})
	if !errors.Is(err, core.ErrInvalid) || strings.Contains(err.Error(), "xyzzy") || strings.Contains(err.Error(), "tokens") {
		t.Errorf("Append that the server refuses: %v, want ErrInvalid without contents", err)
	}
	secret.Tokens = 1
	mustAppend(t, s, secret)
	secret.Key = "other"
	_, err = s.Append(t.Context(), []core.Entry{entry(ann, 1), secret})
	if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), `"ann-one-0"`) {
		t.Errorf("Append of a taken id: %v, want ErrConflict that names it", err)
	}
}

// TestReplica ranks on a replica and reads from the main server; when the replica does not answer the main server does both.
func TestReplica(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	cfg.ReplicaDSN = cfg.DSN
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 3)...)
	q := core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 9}
	if hits, err := s.Search(t.Context(), q); err != nil || len(hits) != 3 {
		t.Errorf("Search: %d hits, %v, want 3", len(hits), err)
	}
	cfg.ReplicaDSN = with(t, cfg.DSN, func(u *url.URL) { u.Host = "127.0.0.1:1" })
	var log bytes.Buffer
	s = open(t, cfg, postgres.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for range 2 {
		if hits, err := s.Search(t.Context(), q); err != nil || len(hits) != 3 {
			t.Errorf("Search without the replica: %d hits, %v, want 3", len(hits), err)
		}
	}
	if n := strings.Count(log.String(), "read replica cannot be used"); n != 1 {
		t.Errorf("the missing replica was logged %d times, want once:\n%s", n, log.String())
	}
}

// TestServerAway halts the server: calls say so, and work again when it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	server := servers.Own(t)
	cfg := postgres.DefaultConfig()
	cfg.DSN, cfg.MaxRetries = server.Database(t), 2
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 3)...)
	server.Halt(t)
	if err := s.Ping(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Ping of a halted server: %v, want ErrUnavailable", err)
	}
	if _, err := s.Append(t.Context(), entries(ann, 3, 4)); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Append to a halted server: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Ping with an ended context: %v, want context.Canceled", err)
	}
	server.Resume(t)
	mustAppend(t, s, entries(ann, 3, 6)...)
	if got := all(t, s, ann.Scope()); len(got) != 6 {
		t.Errorf("%d entries, want 6", len(got))
	}
}

// TestFewRights opens a store, whose tables are there, as a user who may only read and write them.
func TestFewRights(t *testing.T) {
	t.Parallel()
	server := servers.Own(t)
	cfg := postgres.DefaultConfig()
	cfg.DSN = server.Database(t)
	if err := open(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, cfg.DSN, "CREATE ROLE guest LOGIN PASSWORD 'guestsecret'; GRANT USAGE ON SCHEMA contextengine TO guest; "+
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA contextengine TO guest")
	cfg.DSN = with(t, cfg.DSN, func(u *url.URL) { u.User = url.UserPassword("guest", "guestsecret") })
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 3)...)
	if err := s.SwapView(t.Context(), core.View{Session: ann, Version: 1}); err != nil {
		t.Errorf("SwapView: %v", err)
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-1", core.Change{Type: core.TypeErased}); err != nil {
		t.Errorf("Update: %v", err)
	}
	if n, err := s.Delete(t.Context(), ann.Scope(), []string{"ann-one-0"}); n != 1 || err != nil {
		t.Errorf("Delete: %d, %v, want 1", n, err)
	}
	if hits, err := s.Search(t.Context(), core.SearchQuery{Scope: ann.Scope(), Text: "text", Limit: 9}); err != nil || len(hits) != 1 {
		t.Errorf("Search: %d hits, %v, want 1", len(hits), err)
	}
}
