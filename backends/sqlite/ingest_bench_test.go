package sqlite_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/cputime"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// The sizes of a store at which BenchmarkIngest measures, and how many messages it appends then: slices, of which the median counts.
const (
	ingestSmall, ingestLarge  = 1_000, 100_000
	ingestSlices, ingestSlice = 5, 2_000
)

// BenchmarkIngest appends turns of 2 and 3 messages of 60 words, to a store of 1,000 and then to the same one at 100,000, until the index has
// them too. "at1k" and "at100k" are messages a second, "growth" is how many times as long a message takes at 100,000, "disk" what the
// file and everything beside it take in the end, as a multiple of the messages' JSON. "cpu1k" and "cpu100k" are the microseconds of processor
// time that a message takes, and "cpugrowth" their ratio: where other processes keep the machine busy, they say more.
//
// index=feed follows the changes and keeps nothing, as a lower bound; index=lexical is told by the engine's rules.
func BenchmarkIngest(b *testing.B) {
	for _, durability := range []string{sqlite.DurabilityProcess, sqlite.DurabilityPower} {
		for _, index := range []string{"none", "feed", "lexical"} {
			b.Run("durability="+durability+"/index="+index, func(b *testing.B) {
				for b.Loop() {
					measureIngest(b, durability, index)
				}
			})
		}
	}
}

// indexer is what is kept current.
type indexer struct {
	appended func(ctx context.Context, entries []core.Entry) error
	// drained returns when everything that was appended can be found.
	drained func(ctx context.Context) error
	close   func() error
}

func measureIngest(b *testing.B, durability, index string) {
	b.Helper()
	cfg := config(b)
	cfg.Durability = durability
	s := open(b, cfg)
	x := newIndexer(b, s, index)
	n, raw := 0, 0
	fill := func(to int) {
		b.Helper()
		for n < to {
			batch := chats(b, n, min(500, to-n))
			for i := range batch {
				raw += len(batch[i].Message.Raw)
			}
			mustAppend(b, s, batch...)
			if err := x.appended(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			n += len(batch)
		}
		if err := x.drained(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	measure := func() (wall, cpu float64) {
		b.Helper()
		var took, used []time.Duration
		for range ingestSlices {
			batches := turns(b, n, ingestSlice)
			begin, usedBefore := time.Now(), cputime.Used(b)
			for _, batch := range batches {
				mustAppend(b, s, batch...)
				if err := x.appended(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if err := x.drained(b.Context()); err != nil {
				b.Fatal(err)
			}
			took, used = append(took, time.Since(begin)), append(used, cputime.Used(b)-usedBefore)
			n += ingestSlice
			for _, batch := range batches {
				for i := range batch {
					raw += len(batch[i].Message.Raw)
				}
			}
		}
		slices.Sort(took)
		slices.Sort(used)
		return took[ingestSlices/2].Seconds() / ingestSlice, used[ingestSlices/2].Seconds() / ingestSlice
	}
	fill(ingestSmall)
	small, smallCPU := measure()
	fill(ingestLarge)
	large, largeCPU := measure()
	b.ReportMetric(1/small, "at1k")
	b.ReportMetric(1/large, "at100k")
	b.ReportMetric(large/small, "growth")
	if smallCPU > 0 {
		b.ReportMetric(smallCPU*1e6, "cpu1k")
		b.ReportMetric(largeCPU*1e6, "cpu100k")
		b.ReportMetric(largeCPU/smallCPU, "cpugrowth")
	}
	if st, err := s.Stats(b.Context()); err != nil || st.Entries != n {
		b.Fatalf("the store has %d entries, %v, want %d", st.Entries, err, n)
	}
	if err := x.close(); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(onDisk(b, filepath.Dir(cfg.Path)))/float64(raw), "disk")
}

func newIndexer(b *testing.B, s *sqlite.Store, index string) indexer {
	b.Helper()
	nothing := indexer{
		appended: func(context.Context, []core.Entry) error { return nil },
		drained:  func(context.Context) error { return nil },
		close:    func() error { return nil },
	}
	switch index {
	case "feed":
		q := core.ChangeQuery{Agent: ann.Agent, Limit: core.MaxPage}
		nothing.appended = func(ctx context.Context, _ []core.Entry) error {
			for {
				page, err := s.Changes(ctx, q)
				if q.After = page.Mark; err != nil || !page.More {
					return err
				}
			}
		}
	case "lexical":
		x, err := lexical.New(lexical.DefaultConfig())
		if err == nil {
			err = x.Attach(s)
		}
		if err != nil {
			b.Fatal(err)
		}
		load := func(ctx context.Context) error { return x.Load(ctx, ann.Agent) }
		if err := load(b.Context()); err != nil { // from now on it is told
			b.Fatal(err)
		}
		nothing.appended, nothing.drained = x.Appended, load
		nothing.close = func() error {
			q := core.SearchQuery{Scope: ann.Scope(), Text: "kestrel invoice on Tuesday", Limit: 5}
			if hits, err := x.Search(context.WithoutCancel(b.Context()), q); err != nil || len(hits) != q.Limit {
				b.Errorf("%d hits, %v: the index is not current", len(hits), err)
			}
			if c, ok := any(x).(io.Closer); ok {
				return c.Close()
			}
			return nil
		}
	}
	return nothing
}

// onDisk returns the size of all files in a folder.
func onDisk(tb testing.TB, dir string) int64 {
	tb.Helper()
	size := int64(0)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return size
}
