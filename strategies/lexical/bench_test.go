package lexical_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// synthetic makes entries of one passage each, with words as unevenly spread as in a language.
func synthetic(n int) []core.Entry {
	rng := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(rng, 1.1, 20, 30_000)
	out := make([]core.Entry, n)
	for i := range out {
		var b strings.Builder
		for range 10 + rng.IntN(28) {
			fmt.Fprintf(&b, "w%xq ", zipf.Uint64())
		}
		out[i] = entry(fmt.Sprintf("e%d", i), fmt.Sprintf("s%d", i/200), int64(i), b.String())
		out[i].Time = noon.Add(time.Duration(i) * time.Minute)
	}
	return out
}

// BenchmarkAdd measures one entry of one passage; the index starts over every 20,000.
func BenchmarkAdd(b *testing.B) {
	entries := synthetic(20_000)
	b.ReportAllocs()
	var x *lexical.Index
	for i := 0; b.Loop(); i++ {
		if i%len(entries) == 0 {
			x = newIndex(b, &listStore{})
			if err := x.Load(b.Context(), "ada"); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.Appended(b.Context(), entries[i%len(entries):][:1]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("passages=%d", n), func(b *testing.B) {
			entries := synthetic(n)
			x := newIndex(b, newMapStore(entries))
			if err := x.Load(b.Context(), "ada"); err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(5, 6))
			queries := make([]string, 64)
			for i := range queries {
				words := strings.Fields(entries[rng.IntN(n)].Text())
				queries[i] = strings.Join(words[:8], " ")
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: queries[i%len(queries)], Limit: 10}
				if _, err := x.Search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
