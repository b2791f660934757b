package chain_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/models/tiktoken"
	"github.com/contextengine/contextengine/strategies/summary"
)

// slowModel takes its time, as models do.
type slowModel struct{ wait time.Duration }

func (m slowModel) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	select {
	case <-time.After(m.wait):
	case <-ctx.Done():
		return core.Completion{}, ctx.Err()
	}
	return core.Completion{Text: "They went through the list of questions, one after the other, and each was answered."}, nil
}

// BenchmarkReplyDuringCompaction prints how long a prompt takes to be assembled after each turn while nothing else happens, and while
// 10,000 messages are compacted by a model: the median and 95th percentile of both in ms, their ratio, the longest call meanwhile, and how long a call that needs only the session's lock takes then.
func BenchmarkReplyDuringCompaction(b *testing.B) {
	for name, open := range map[string]func() core.Store{
		"memory": func() core.Store { return memory.New() },
		"sqlite": func() core.Store {
			cfg := sqlite.DefaultConfig()
			cfg.Path = filepath.Join(b.TempDir(), "s.db")
			s, err := sqlite.Open(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			return s
		},
	} {
		for what, locks := range map[string]bool{"assemble": false, "lock": true} {
			b.Run(name+"/"+what, func(b *testing.B) {
				for range b.N {
					replyDuring(b, open(), locks)
				}
			})
		}
	}
}

// said is a message of one size, so that a window holds as many of them at all times.
func said(role message.Role, n int) message.Message {
	return message.New(role, fmt.Sprintf("number %d: %s", n, strings.Repeat("what became of the list of questions? ", 8)))
}

func replyDuring(b *testing.B, store core.Store, locks bool) {
	b.Helper()
	counter, err := tiktoken.New(tiktoken.DefaultEncoding)
	if err != nil {
		b.Fatal(err)
	}
	compactor, err := summary.New(summary.DefaultConfig(), slowModel{100 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	cfg := engine.DefaultConfig()
	cfg.Compaction.Deadline = time.Minute
	e, err := engine.New(engine.Parts{Store: store, Compactor: compactor, Counter: counter.Count, OwnStore: true}, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Dispose(context.WithoutCancel(b.Context())) }()
	id := core.SessionID{Agent: "main", Session: "s"}
	batch := make([]message.Message, 0, 500)
	for i := range 10_000 {
		role := message.User
		if i%2 == 1 {
			role = message.Assistant
		}
		batch = append(batch, said(role, i))
		if len(batch) == cap(batch) {
			if _, err := e.IngestBatch(b.Context(), core.IngestBatchRequest{Session: id, Messages: batch}); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	n := 10_000
	// reply stores a turn, which is not measured, and assembles the next prompt, which is.
	reply := func() time.Duration {
		n++
		_, err := e.IngestBatch(b.Context(), core.IngestBatchRequest{Session: id, Messages: []message.Message{
			said(message.User, n), said(message.Assistant, n)}})
		start := time.Now()
		if err == nil {
			_, err = e.Assemble(b.Context(), core.AssembleRequest{Session: id, Budget: 32_000})
		}
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	reply()
	var alone, during []time.Duration
	for range 300 {
		alone = append(alone, reply())
		time.Sleep(2 * time.Millisecond)
	}
	// Describe needs the session's lock and hardly any time: how long it takes is how long somebody else held the lock.
	var waits []time.Duration
	done := make(chan core.CompactResult, 1)
	go func() {
		res, err := e.Compact(context.WithoutCancel(b.Context()), core.CompactRequest{Session: id, Target: core.TargetThreshold, Trigger: "maintain"})
		if err != nil {
			b.Error(err)
		}
		done <- res
	}()
	for running := true; running; {
		select {
		case res := <-done:
			running = false
			b.ReportMetric(float64(res.TokensBefore-res.TokensAfter), "tokens-gone")
		default:
			time.Sleep(2 * time.Millisecond)
			if !locks {
				during = append(during, reply())
				continue
			}
			start := time.Now()
			if _, err := e.Describe(b.Context(), engine.DescribeRequest{Session: id}); err != nil {
				b.Fatal(err)
			}
			waits = append(waits, time.Since(start))
		}
	}
	ms := func(d []time.Duration, share float64) float64 {
		slices.Sort(d)
		return float64(d[int(share*float64(len(d)-1))].Microseconds()) / 1000
	}
	if locks {
		b.ReportMetric(ms(waits, 0.99), "lock-p99-ms")
		b.ReportMetric(ms(waits, 1), "lock-longest-ms")
		return
	}
	b.ReportMetric(ms(alone, 0.5), "alone-p50-ms")
	b.ReportMetric(ms(alone, 0.95), "alone-p95-ms")
	b.ReportMetric(ms(during, 0.5), "during-p50-ms")
	b.ReportMetric(ms(during, 0.95), "during-p95-ms")
	b.ReportMetric(ms(during, 0.95)/ms(alone, 0.95), "p95-ratio")
	b.ReportMetric(ms(during, 1), "during-longest-ms")
	b.ReportMetric(float64(len(during)), "replies")
}
