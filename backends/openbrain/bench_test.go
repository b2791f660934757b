package openbrain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/openbrain"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// Sizes at which everything is measured: what one call costs must not grow with the square of them.
var sizes = []int{1000, 20_000}

// filled returns a server that holds n entries of one agent, in sessions of 500, and a store that has not seen it.
func filled(b *testing.B, n int) (*openbraintest.Server, *openbrain.Store) {
	b.Helper()
	srv := openbraintest.New(b)
	connect := func() *openbrain.Store {
		cfg := openbrain.DefaultConfig()
		cfg.BaseURL, cfg.APIKey = srv.URL(), srv.Key()
		s, err := openbrain.Open(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	writer := connect()
	text := strings.Repeat("some words that people say ", 12)
	for i := 0; i < n; i += 500 {
		var batch []core.Entry
		for j := range 500 {
			batch = append(batch, entry("main", fmt.Sprint("s", i/500), j, fmt.Sprint(text, i+j)))
		}
		if _, err := writer.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	srv.Forget()
	return srv, connect()
}

func each(b *testing.B, measure func(b *testing.B, srv *openbraintest.Server, s *openbrain.Store, n int)) {
	b.Helper()
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv, s := filled(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			measure(b, srv, s, n)
			b.StopTimer()
			b.ReportMetric(float64(len(srv.Requests()))/float64(b.N), "requests/op")
		})
	}
}

func BenchmarkScan(b *testing.B) {
	each(b, func(b *testing.B, _ *openbraintest.Server, s *openbrain.Store, n int) {
		b.Helper()
		for b.Loop() {
			seen := 0
			for _, err := range core.All(b.Context(), s, agentScope("main"), false) {
				if err != nil {
					b.Fatal(err)
				}
				seen++
			}
			if seen != n {
				b.Fatalf("%d entries, want %d", seen, n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/entry")
	})
}

// BenchmarkGet reads 24 entries whose places are known.
func BenchmarkGet(b *testing.B) {
	each(b, func(b *testing.B, srv *openbraintest.Server, s *openbrain.Store, _ int) {
		b.Helper()
		page, err := s.Scan(b.Context(), core.ScanQuery{Scope: agentScope("main"), Reverse: true, Limit: 24})
		if err != nil {
			b.Fatal(err)
		}
		want := ids(page.Entries)
		srv.Forget()
		for b.Loop() {
			if _, err := s.Get(b.Context(), agentScope("main"), want); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAppend stores a turn of three messages.
func BenchmarkAppend(b *testing.B) {
	each(b, func(b *testing.B, srv *openbraintest.Server, s *openbrain.Store, _ int) {
		b.Helper()
		if _, err := s.Append(b.Context(), []core.Entry{entry("main", "new", 0, "first")}); err != nil {
			b.Fatal(err)
		}
		srv.Forget()
		i := 0
		for b.Loop() {
			i += 3
			turn := []core.Entry{entry("main", "new", i, "one"), entry("main", "new", i+1, "two"), entry("main", "new", i+2, "three")}
			if _, err := s.Append(b.Context(), turn); err != nil {
				b.Fatal(err)
			}
		}
	})
}
