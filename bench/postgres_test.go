package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/pgtest"
)

var servers pgtest.Servers

func TestMain(m *testing.M) { os.Exit(servers.Main(m)) }

// TestPostgresBytes measures what docs/scale.md reckons with for PostgreSQL: bytes of a message in each relation. It needs a server on this machine, as
// the store's own tests do, and says so where there is none.
func TestPostgresBytes(t *testing.T) {
	server := servers.Plain(t)
	cfg := postgres.DefaultConfig()
	cfg.DSN = server.Database(t)
	store, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := newEngine(store, func(p *engine.Parts) { p.Counter = func(text string) int { return len(text) / 4 } })
	if err != nil {
		t.Fatal(err)
	}
	const agents, each, turn = 100, 200, 2
	c := newCorpus(13)
	raw := 0
	took, err := timed(func() error {
		for n := 0; n < agents*each; n += turn {
			batch := make([]message.Message, turn)
			for i := range batch {
				batch[i] = c.message()
				raw += len(batch[i].Raw)
			}
			owner := core.SessionID{Agent: fmt.Sprintf("agent-%d", n/each), Session: "one"}
			if _, err := e.IngestBatch(t.Context(), core.IngestBatchRequest{Session: owner, Messages: batch}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := float64(agents * each)
	t.Logf("raw JSON %.0f B a message; a turn of %d messages through the engine: %v, of which ours %v", float64(raw)/n, turn,
		took.wall/(agents*each/turn), took.cpu/(agents*each/turn))
	for name, size := range relations(t, cfg.DSN, cfg.Schema) {
		t.Logf("%-24s %8.0f B a message", name, float64(size)/n)
		if name == "entries" && float64(size)/n > 4096 {
			t.Errorf("a message takes %.0f B of the table, want at most 4 KiB", float64(size)/n)
		}
	}
}

// relations returns the sizes of tables (with what is stored out of line) and indexes, vacuumed.
func relations(t *testing.T, dsn, schema string) map[string]int64 {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "VACUUM"); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(ctx, `SELECT c.relname, CASE WHEN c.relkind = 'r' THEN pg_table_size(c.oid) ELSE pg_relation_size(c.oid) END
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind IN ('r', 'i')`, schema)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]int64{}
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			t.Fatal(err)
		}
		out[name] = size
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
