package chain_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/chain"
	"github.com/contextengine/contextengine/strategies/index"
	"github.com/contextengine/contextengine/strategies/mask"
	"github.com/contextengine/contextengine/strategies/summary"
)

// BenchmarkBacklog imports a long history and compacts it once, forced, to a window of 32,000 tokens: with a model that answers at once, and without one.
// ns/message must not depend on the number of messages, and the window must fit afterwards.
func BenchmarkBacklog(b *testing.B) {
	for _, kind := range []string{"model", "none"} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d-messages", kind, n), func(b *testing.B) {
				msgs := backlog(n)
				for b.Loop() {
					b.StopTimer()
					e, calls := importing(b, kind, msgs)
					b.StartTimer()
					res, err := e.Compact(b.Context(), core.CompactRequest{Session: core.SessionID{Agent: "a", Session: "s"}, Budget: 32_000, Force: true})
					if err != nil || res.TokensAfter > 32_000 {
						b.Fatalf("Compact = %+v, %v", res, err)
					}
					b.ReportMetric(float64(*calls), "calls")
					b.ReportMetric(float64(res.TokensAfter), "tokens-after")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/message")
			})
		}
	}
}

func importing(b *testing.B, kind string, msgs []message.Message) (*engine.Engine, *int) {
	b.Helper()
	calls := 0
	instant := scripted(func(_ context.Context, q []string) (string, error) { calls++; return gist(q, 3), nil })
	m, _ := mask.New(mask.DefaultConfig())
	x, _ := index.New(index.DefaultConfig())
	tiers := []core.Compactor{m, x}
	if kind == "model" {
		cfg := summary.DefaultConfig()
		cfg.Spend, cfg.Parallel = summary.Spend{}, 1
		s, err := summary.New(cfg, instant)
		if err != nil {
			b.Fatal(err)
		}
		tiers = []core.Compactor{m, s, x}
	}
	k, err := chain.New(tiers...)
	if err != nil {
		b.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Compaction.Deadline = 10 * time.Minute
	e, err := engine.New(engine.Parts{Store: memory.New(), Compactor: k, Counter: quick}, cfg)
	if err != nil {
		b.Fatal(err)
	}
	for len(msgs) > 0 {
		n := min(len(msgs), 1000)
		if _, err := e.IngestBatch(b.Context(), core.IngestBatchRequest{Session: core.SessionID{Agent: "a", Session: "s"}, Messages: msgs[:n]}); err != nil {
			b.Fatal(err)
		}
		msgs = msgs[n:]
	}
	return e, &calls
}

// backlog is n messages of about 60 words, every fifth turn with a tool call.
func backlog(n int) []message.Message {
	var out []message.Message
	for i := 0; len(out) < n; i++ {
		words := fmt.Sprintf("step %d of module_%d in src/app_%d/main.go went as the report %x said it would and ", i, i%97, i%53, i*7919)
		text := words + words + words + words
		out = append(out, message.New(message.User, text))
		if i%5 == 0 {
			id := fmt.Sprintf("call_%d", i)
			out = append(out, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: id, Name: "read", Args: `{"path":"a"}`}}},
				message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: id, Name: "read", Text: text}}})
		}
		out = append(out, message.New(message.Assistant, "Noted: "+words))
	}
	return out
}
