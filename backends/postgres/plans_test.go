package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestAppendReadsWhatItNeeds: tables that the server has no statistics of, and plans from when they were empty, do not make an append read the session.
func TestAppendReadsWhatItNeeds(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	n := 0
	add := func(count int) {
		mustAppend(t, s, entries(ann, n, n+count)...)
		n += count
	}
	// A statement's plan is kept from its sixth run on.
	for range 10 {
		add(1)
	}
	add(2000)
	for range 20 {
		add(1)
	}
	// The server counts a connection's reads when it ends.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var inserted, read int64
	for range 100 {
		err := conn.QueryRow(t.Context(), `SELECT n_tup_ins, seq_tup_read + idx_tup_fetch + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
			FROM pg_stat_user_tables t WHERE schemaname = $1 AND relname = 'entries'`, cfg.Schema).Scan(&inserted, &read)
		if err != nil {
			t.Fatal(err)
		}
		if inserted >= int64(n) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if inserted < int64(n) || read > 12*int64(n) {
		t.Errorf("%d entries were appended, the server counts %d and %d that it read for it, want all, and at most 12 for each", n, inserted, read)
	}
	t.Logf("%d entries read for %d appended", read, inserted)
}
