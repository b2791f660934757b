package openbrain_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
)

// benchmarkStores runs a benchmark over HTTP and each store that keeps thoughts on this machine.
func benchmarkStores(b *testing.B, run func(b *testing.B, f *fixture)) {
	b.Helper()
	for name, open := range map[string]func() core.Store{
		"memory": func() core.Store { return memory.New() },
		"sqlite": func() core.Store { return openSQLite(b, filepath.Join(b.TempDir(), "thoughts.db")) },
	} {
		b.Run(name, func(b *testing.B) {
			store := open()
			b.Cleanup(func() { _ = store.Close() })
			run(b, serve(b, store, twoKeys))
		})
	}
}

func BenchmarkPost(b *testing.B) {
	benchmarkStores(b, func(b *testing.B, f *fixture) {
		b.Helper()
		for i := 0; b.Loop(); i++ {
			f.post(b, adminKey, "s", fmt.Sprintf("thought number %d of a day with rain and tea", i), fmt.Sprintf(`{"id":"%d"}`, i))
		}
	})
}

// BenchmarkSearch searches 5,000 thoughts of one source, and as many of 500.
func BenchmarkSearch(b *testing.B) {
	for _, sources := range []int{1, 500} {
		b.Run(fmt.Sprintf("sources=%d", sources), func(b *testing.B) {
			benchmarkStores(b, func(b *testing.B, f *fixture) {
				b.Helper()
				for i := range 5000 {
					f.post(b, adminKey, fmt.Sprint("s", i%sources), fmt.Sprintf("thought number %d of day%d with rain and tea", i, i%97), `{}`)
				}
				f.search(b, adminKey, map[string]any{"query": "day13 number"})
				for b.Loop() {
					f.search(b, adminKey, map[string]any{"query": "day13 number"})
				}
			})
		})
	}
}

func BenchmarkRecent(b *testing.B) {
	benchmarkStores(b, func(b *testing.B, f *fixture) {
		b.Helper()
		for i := range 1000 {
			f.post(b, adminKey, fmt.Sprint("s", i%50), fmt.Sprint("thought ", i), `{}`)
		}
		var l list
		for b.Loop() {
			f.want(b, 200, adminKey, "GET", "/v1/thoughts/recent?limit=20", "", &l)
		}
	})
}
