package outbox_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/outbox"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// BenchmarkAppend appends turns of two messages of 60 words to a sqlite store: bare, behind an outbox whose remote is down, and behind
// one that delivers at the same time. One operation is one message.
func BenchmarkAppend(b *testing.B) {
	for _, durability := range []string{outbox.DurabilityProcess, outbox.DurabilityPower} {
		for _, kind := range []string{"bare", "waiting", "delivering"} {
			b.Run(fmt.Sprintf("durability=%s/%s", durability, kind), func(b *testing.B) {
				cfg := sqlite.DefaultConfig()
				cfg.Path, cfg.Durability = filepath.Join(b.TempDir(), "store.db"), durability
				local, err := sqlite.Open(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				var s core.Store = local
				if kind != "bare" {
					out := outbox.DefaultConfig()
					out.Durability, out.MaxEntries, out.CloseTimeout = durability, 10_000_000, time.Millisecond
					far := newRemote()
					if kind == "waiting" {
						far.fail = func(string, []string, bool) error { return errDown }
					}
					s = open(b, out, local, far)
				} else {
					b.Cleanup(func() { _ = local.Close() })
				}
				batches := make([][]core.Entry, (b.N+1)/2)
				for i := range batches {
					batches[i] = []core.Entry{chat(2 * i), chat(2*i + 1)}
				}
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
}

// BenchmarkDeliver delivers what waits to a memory store. One operation is one message.
func BenchmarkDeliver(b *testing.B) {
	far := newRemote()
	var up atomic.Bool
	far.fail = func(string, []string, bool) error {
		if up.Load() {
			return nil
		}
		return errDown
	}
	s := open(b, volatile(func(c *outbox.Config) { c.MaxEntries = 10_000_000 }), memory.New(), far)
	for i := 0; i < b.N; i += 100 {
		var batch []core.Entry
		for n := i; n < min(i+100, b.N); n++ {
			batch = append(batch, chat(n))
		}
		mustAppend(b, s, batch...)
	}
	up.Store(true)
	b.ResetTimer()
	mustDrain(b, s)
}

// chat is an entry of about 60 words.
func chat(n int) core.Entry {
	words := []string{"the", "ledger", "moved", "because", "kestrel", "invoice", "budget", "quoted", "bridge", "works", "again", "on", "Tuesday"}
	text := ""
	for i := range 60 {
		text += words[(n*7+i*i+i*n)%len(words)] + " "
	}
	e := entry(ann, n)
	e.Message = message.New(message.User, text)
	e.Message.Raw = fmt.Appendf(nil, `{"role":"user","content":%q}`, text)
	return e
}
