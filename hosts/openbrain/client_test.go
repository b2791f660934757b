package openbrain_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	client "github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/hosts/openbrain"
	"github.com/contextengine/contextengine/internal/needs"
	"github.com/contextengine/contextengine/strategies/lexical"
)

func connect(tb testing.TB, url, secret string) *client.Store {
	tb.Helper()
	cfg := client.DefaultConfig()
	cfg.BaseURL, cfg.APIKey = url, secret
	s, err := client.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatalf("client: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// remote is a client's store with all that is behind it: a server over a store.
type remote struct {
	core.Store
	stop func()
	path string // of the store's file, if it has one
}

// Unwrap lets companions of the client be found.
func (r *remote) Unwrap() core.Store { return r.Store }

// Close ends the client, the server and the server's store.
func (r *remote) Close() error {
	err := r.Store.Close()
	r.stop()
	return err
}

// startRemote serves a store on loopback and connects to it.
func startRemote(tb testing.TB, store core.Store, path string) *remote {
	tb.Helper()
	index, err := lexical.New(lexical.DefaultConfig())
	if err == nil {
		err = index.Attach(store)
	}
	if err != nil {
		tb.Fatalf("lexical: %v", err)
	}
	cfg := openbrain.DefaultConfig()
	cfg.Keys = []openbrain.Key{key("test", adminKey, "*")}
	s, err := openbrain.New(cfg, store, index)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}
	ts := httptest.NewServer(s.Handler())
	r := &remote{path: path, stop: sync.OnceFunc(func() {
		ts.Close()
		if err := errors.Join(s.Close(), store.Close()); err != nil {
			tb.Errorf("close the server: %v", err)
		}
	})}
	tb.Cleanup(r.stop)
	r.Store = connect(tb, ts.URL, adminKey)
	return r
}

// The client over this server over a store keeps every promise of a store, with restarts of both where the store has a file.
func TestClientConforms(t *testing.T) {
	const cases = 2
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		conformance.TestStore(t, func(tb testing.TB) core.Store {
			tb.Helper()
			return startRemote(tb, memory.New(), "")
		}, conformance.WithCases(cases))
	})
	t.Run("sqlite", func(t *testing.T) {
		needs.NoRace(t)
		t.Parallel()
		conformance.TestStore(t, func(tb testing.TB) core.Store {
			tb.Helper()
			path := filepath.Join(tb.TempDir(), "thoughts.db")
			return startRemote(tb, openSQLite(tb, path), path)
		}, conformance.WithCases(cases), conformance.WithReopen(func(tb testing.TB, old core.Store) core.Store {
			tb.Helper()
			r := old.(*remote)
			_ = r.Close()
			return startRemote(tb, openSQLite(tb, r.path), r.path)
		}))
	})
}

// A long history comes back through the client's listing, page after page by offset.
func TestClientReadsALongHistory(t *testing.T) {
	f := serve(t, nil, twoKeys)
	a := connect(t, f.url, mainKey)
	var want []core.Entry
	for i := range 730 {
		m := message.New(message.User, "message")
		want = append(want, core.Entry{
			ID: "e" + string(rune('a'+i%26)) + "-" + time.Duration(i).String(), Agent: "main", Session: "s", Seq: int64(i),
			Role: m.Role, Type: core.TypeMessage, Time: time.UnixMilli(int64(i)).UTC(), Tokens: 5, Key: time.Duration(i).String(),
			Fingerprint: message.Fingerprint(m), Message: m,
		})
	}
	for i := 0; i < len(want); i += 73 {
		if _, err := a.Append(t.Context(), want[i:i+73]); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	var got []core.Entry
	for e, err := range core.All(t.Context(), connect(t, f.url, mainKey), core.Scope{Agent: "main"}, false) {
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if err := a.Ping(t.Context()); err != nil {
		t.Errorf("Ping: %v", err)
	}
	if _, err := a.Append(t.Context(), []core.Entry{func() core.Entry { e := want[0]; e.Agent, e.ID = "other", "x"; return e }()}); err == nil {
		t.Error("a client whose key is limited to one agent wrote for another")
	}
}
