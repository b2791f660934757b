package postgres_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/pgtest"
)

// servers are started when the first test asks for one.
var servers pgtest.Servers

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

var ann = core.SessionID{Agent: "ann", Session: "one"}

// entry is an entry of a message that has its bytes from nowhere: odd ones.
func entry(id core.SessionID, n int) core.Entry {
	name := fmt.Sprintf("%s-%s-%d", id.Agent, id.Session, n)
	m := message.New(message.User, "text of "+name)
	m.Raw = []byte("raw\x00\xff " + name)
	m.Parts[0].Raw = []byte("part " + name)
	return core.Entry{
		ID: name, Agent: id.Agent, Session: id.Session, Seq: int64(n), Turn: int64(n / 2), Role: message.User, Type: core.TypeMessage,
		Time: time.Unix(int64(n), 123456789).UTC(), Tokens: 7, Key: "k" + name, Fingerprint: message.Fingerprint(m), Message: m,
		Meta: map[string]string{"n": name},
	}
}

func entries(id core.SessionID, from, to int) []core.Entry {
	var out []core.Entry
	for n := from; n < to; n++ {
		out = append(out, entry(id, n))
	}
	return out
}

// config returns the configuration of a store in a schema of its own, which is dropped at the end of the test.
func config(tb testing.TB, server *pgtest.Server, dsn string) postgres.Config {
	tb.Helper()
	cfg := postgres.DefaultConfig()
	cfg.DSN = dsn
	cfg.Schema = "t" + strings.ToLower(rand.Text()[:16])
	cfg.MaxConns = min(server.MaxConns(), 6)
	tb.Cleanup(func() { server.Exec(tb, dsn, "DROP SCHEMA IF EXISTS "+cfg.Schema+" CASCADE") })
	return cfg
}

// fresh returns the configuration of a store in a database of its own.
func fresh(tb testing.TB) postgres.Config {
	tb.Helper()
	server := servers.Plain(tb)
	return config(tb, server, server.Database(tb))
}

func open(tb testing.TB, cfg postgres.Config, opts ...postgres.Option) *postgres.Store {
	tb.Helper()
	// What a store does at its end outlives the context of the test.
	s, err := postgres.Open(context.WithoutCancel(tb.Context()), cfg, opts...)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func mustAppend(tb testing.TB, s core.Store, es ...core.Entry) core.AppendResult {
	tb.Helper()
	res, err := s.Append(tb.Context(), es)
	if err != nil {
		tb.Fatalf("Append: %v", err)
	}
	return res
}

// all returns the entries of a scope.
func all(tb testing.TB, s core.Store, scope core.Scope) []core.Entry {
	tb.Helper()
	var out []core.Entry
	for e, err := range core.All(tb.Context(), s, scope, false) {
		if err != nil {
			tb.Fatalf("All: %v", err)
		}
		out = append(out, e)
	}
	return out
}
