package rpc_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/cputime"
	"github.com/contextengine/contextengine/models/tiktoken"
)

// history returns n messages of the kind agents have, 5 % of them long.
func history(n int) []json.RawMessage {
	out := make([]json.RawMessage, 0, n)
	for i := range n / 2 {
		long := ""
		if i%10 == 0 {
			long = strings.Repeat(fmt.Sprintf(" line %d of a file that a tool read", i), 60)
		}
		out = append(out, user(fmt.Sprintf("please look at item %d and say what you think%s", i, strings.Repeat(" of it", i%30)), 2*i),
			answer(fmt.Sprintf("item %d is fine%s%s", i, strings.Repeat(" and so on", i%40), long), 2*i+1))
	}
	return out
}

// tokenizer is the real one: costs of counting are part of what is measured.
func tokenizer(b *testing.B) core.TokenCounter {
	b.Helper()
	c, err := tiktoken.New("o200k_base")
	if err != nil {
		b.Fatal(err)
	}
	return c.Count
}

// median reports the middle and the 95th percentile of what was measured, and the processor time of one round.
func median(b *testing.B, took []time.Duration, begun time.Duration) {
	b.Helper()
	b.ReportMetric(float64((cputime.Used(b)-begun).Microseconds())/1000/float64(len(took)), "cpu-ms")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// BenchmarkTurn is what a turn costs over a unix socket with 5,000 messages stored, warm: assemble and commit, from call to answer.
func BenchmarkTurn(b *testing.B) {
	const stored, budget = 5000, 100_000
	prompt := rpc.AssembleParams{Session: sid("s"), Budget: budget, Prompt: "what about item 17?", References: true}
	b.Run("server", func(b *testing.B) {
		c, list := warm(b, stored)
		p := prompt
		p.Transcript = &rpc.TranscriptParams{Messages: list, Digest: "0"}
		if _, err := c.Assemble(b.Context(), p); err != nil {
			b.Fatal(err)
		}
		count, digest := len(list), "0"
		begun := cputime.Used(b)
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			turn := []json.RawMessage{user(fmt.Sprint("new ", i), 10_000+2*i), answer(fmt.Sprint("done ", i), 10_001+2*i)}
			begin := time.Now()
			p.Transcript = &rpc.TranscriptParams{Skipped: count, Prefix: digest, Messages: []json.RawMessage{}, Digest: digest}
			if _, err := c.Assemble(b.Context(), p); err != nil {
				b.Fatal(err)
			}
			next := fmt.Sprint(i + 1)
			_, err := c.CommitTurn(b.Context(), rpc.CommitTurnParams{
				Session: sid("s"), AdvancementKey: next, Messages: turn, Advance: &rpc.Advance{Count: count, Prefix: digest, Digest: next},
			})
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
			count, digest = count+2, next
		}
		median(b, took, begun)
	})
	// A client in Go that hashes its whole list for every call.
	b.Run("conversation", func(b *testing.B) {
		c, list := warm(b, stored)
		v := rpc.NewConversation(c, sid("s"), "")
		if _, _, err := v.Assemble(b.Context(), list, prompt); err != nil {
			b.Fatal(err)
		}
		begun := cputime.Used(b)
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			turn := []json.RawMessage{user(fmt.Sprint("new ", i), 10_000+2*i), answer(fmt.Sprint("done ", i), 10_001+2*i)}
			begin := time.Now()
			if _, _, err := v.Assemble(b.Context(), list, prompt); err != nil {
				b.Fatal(err)
			}
			if _, err := v.CommitTurn(b.Context(), fmt.Sprint(i), turn); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
			list = append(list, turn...)
		}
		median(b, took, begun)
	})
	// Everything is sent and everything comes back, each time: what references and tails save.
	b.Run("whole", func(b *testing.B) {
		c, list := warm(b, stored)
		p := prompt
		p.References, p.Transcript = false, &rpc.TranscriptParams{Messages: list}
		begun := cputime.Used(b)
		var took []time.Duration
		for b.Loop() {
			begin := time.Now()
			if _, err := c.Assemble(b.Context(), p); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		median(b, took, begun)
	})
	// The engine alone, without a wire.
	b.Run("engine", func(b *testing.B) {
		e, list := warmEngine(b, stored)
		begun := cputime.Used(b)
		var took []time.Duration
		for i := 0; b.Loop(); i++ {
			begin := time.Now()
			engineTurn(b, e, list, i, budget)
			took = append(took, time.Since(begin))
		}
		median(b, took, begun)
	})
}

// BenchmarkPing is the wire alone.
func BenchmarkPing(b *testing.B) {
	path := socketPath(b)
	serveUnix(b, one{&fake{}}, nil, path)
	c := dial(b, path)
	for b.Loop() {
		if err := c.Ping(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
