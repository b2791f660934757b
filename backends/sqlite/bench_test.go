package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
)

// BenchmarkAppend appends turns of 2 and 3 messages of 60 words. One operation is one message; "from" is how many
// the store holds before. "floor" is what SQLite itself takes for the same bytes: one table, one column, the same transactions.
func BenchmarkAppend(b *testing.B) {
	for _, durability := range []string{sqlite.DurabilityProcess, sqlite.DurabilityPower} {
		for _, from := range []int{1_000, 100_000} {
			if durability == sqlite.DurabilityPower && from > 1000 {
				continue
			}
			b.Run(fmt.Sprintf("durability=%s/from=%d", durability, from), func(b *testing.B) {
				cfg := config(b)
				cfg.Durability = durability
				s := open(b, cfg)
				for n := 0; n < from; n += 500 {
					mustAppend(b, s, chats(b, n, 500)...)
				}
				batches := turns(b, from, b.N)
				b.ReportAllocs()
				b.ResetTimer()
				for _, batch := range batches {
					mustAppend(b, s, batch...)
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
	b.Run("floor", func(b *testing.B) {
		db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "floor.db")+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)")
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE t (n INTEGER PRIMARY KEY, body BLOB)"); err != nil {
			b.Fatal(err)
		}
		insert, err := db.Prepare("INSERT INTO t (body) VALUES (?)")
		if err != nil {
			b.Fatal(err)
		}
		batches := turns(b, 0, b.N)
		b.ResetTimer()
		for _, batch := range batches {
			tx, err := db.Begin()
			if err != nil {
				b.Fatal(err)
			}
			stmt := tx.Stmt(insert)
			for _, e := range batch {
				if _, err := stmt.Exec(e.Message.Raw); err != nil {
					b.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// BenchmarkRead reads from a store of 20,000 messages.
func BenchmarkRead(b *testing.B) {
	s := open(b, config(b))
	for n := 0; n < 20_000; n += 500 {
		mustAppend(b, s, chats(b, n, 500)...)
	}
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Get(b.Context(), ann.Scope(), []string{chatID(i * 7919 % 20_000)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get=50", func(b *testing.B) {
		ids := make([]string, 50)
		for i := 0; b.Loop(); i++ {
			for j := range ids {
				ids[j] = chatID((50*i + j) * 7919 % 20_000)
			}
			if _, err := s.Get(b.Context(), ann.Scope(), ids); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("nothing-new", func(b *testing.B) {
		q := core.ChangeQuery{Agent: ann.Agent, Limit: core.MaxPage}
		for more := true; more; {
			page, err := s.Changes(b.Context(), q)
			if err != nil {
				b.Fatal(err)
			}
			q.After, more = page.Mark, page.More
		}
		for b.Loop() {
			if _, err := s.Changes(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("newest=20", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Scan(b.Context(), core.ScanQuery{Scope: ann.Scope(), Reverse: true, Limit: 20}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page=1000", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Scan(b.Context(), core.ScanQuery{Scope: ann.Scope(), FromSeq: 9000, Limit: 1000}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func chats(tb testing.TB, from, n int) []core.Entry {
	tb.Helper()
	out := make([]core.Entry, n)
	for i := range out {
		out[i] = chat(tb, ann, from+i)
	}
	return out
}

// turns returns n messages in batches of 2 and 3 in turn.
func turns(tb testing.TB, from, n int) [][]core.Entry {
	tb.Helper()
	var out [][]core.Entry
	for i := 0; i < n; {
		size := min(2+len(out)%2, n-i)
		out = append(out, chats(tb, from+i, size))
		i += size
	}
	return out
}
