package rpc_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/hosts/rpc"
	"github.com/contextengine/contextengine/internal/cputime"
	"github.com/contextengine/contextengine/strategies/hybrid"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// filler makes text of few words, nearly all of which stand in every message: the hardest for recall, as most of the index is candidates.
func filler(seed uint32, n int) string {
	words := strings.Fields("the harbour keeps its lamps burning while grey boats drift past the long stone wall and children count gulls above the quiet market")
	var b strings.Builder
	for i := range n {
		seed = seed*1664525 + 1013904223
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[seed>>8%uint32(len(words))])
		if i%11 == 0 {
			fmt.Fprint(&b, seed>>4%997)
		}
	}
	return b.String()
}

// exchange is the i-th turn of one long session: a question of some 25 words, an answer of some 60.
func exchange(i int) (prompt string, turn []json.RawMessage) {
	prompt = fmt.Sprintf("Question %d: %s", i, filler(uint32(i), 25))
	return prompt, []json.RawMessage{user(prompt, 60*i), answer(fmt.Sprintf("Answer %d: %s", i, filler(uint32(i)+1<<20, 60)), 60*i+1)}
}

// BenchmarkSidecar is a turn as a host's plugin drives it, over the parts that a sidecar has by default: hybrid recall over lexical search, in a file of
// SQLite, with 5,000 messages of one session stored. Its calls are assemble, assemble of the result as in a loop of tools, and commit.
func BenchmarkSidecar(b *testing.B) {
	const stored, budget = 5000, 100_000
	host := rpc.NewHost()
	count := tokenizer(b)
	store, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "store.db")})
	if err != nil {
		b.Fatal(err)
	}
	index, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	retriever, err := hybrid.New(hybrid.DefaultConfig(), map[string]core.Searcher{"lexical": index})
	if err != nil {
		b.Fatal(err)
	}
	path := socketPath(b)
	serveUnix(b, one{composed(b, host, func(p *engine.Parts) { p.Store, p.Retriever, p.Counter = store, retriever, count })}, host, path)
	c := dial(b, path)
	var list []json.RawMessage
	for i := range stored / 2 {
		_, turn := exchange(i)
		list = append(list, turn...)
	}
	p := rpc.AssembleParams{Session: sid("s"), Budget: budget, Prompt: "Where were we?", References: true}
	p.Transcript = &rpc.TranscriptParams{Messages: list, Digest: "0"}
	if _, err := c.Assemble(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	skipped, digest := stored, "0"
	begun := cputime.Used(b)
	var took []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		prompt, turn := exchange(stored/2 + i)
		begin := time.Now()
		p.Prompt = prompt
		p.Transcript = &rpc.TranscriptParams{Skipped: skipped, Prefix: digest, Messages: []json.RawMessage{}, Digest: digest}
		res, err := c.Assemble(b.Context(), p)
		if err != nil {
			b.Fatal(err)
		}
		loop := p
		loop.Budget, loop.Call = 127_000, core.CallLoop
		loop.Transcript = &rpc.TranscriptParams{Skipped: res.Output.Count, Prefix: res.Output.Digest, Messages: []json.RawMessage{}, Digest: res.Output.Digest}
		if _, err := c.Assemble(b.Context(), loop); err != nil {
			b.Fatal(err)
		}
		next := fmt.Sprint(i + 1)
		_, err = c.CommitTurn(b.Context(), rpc.CommitTurnParams{
			Session: sid("s"), AdvancementKey: next, Messages: turn, Advance: &rpc.Advance{Count: skipped, Prefix: digest, Digest: next},
		})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		skipped, digest = skipped+2, next
	}
	median(b, took, begun)
}
