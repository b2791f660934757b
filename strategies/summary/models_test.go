package summary_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/summary"
)

// model answers with a function and remembers what it was asked.
type model struct {
	answer func(ctx context.Context, req core.CompletionRequest) (core.Completion, error)

	mu    sync.Mutex
	asked []core.CompletionRequest
}

func (m *model) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	m.mu.Lock()
	m.asked = append(m.asked, req)
	m.mu.Unlock()
	return m.answer(ctx, req)
}

func (m *model) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

func says(text string) *model {
	return &model{answer: func(context.Context, core.CompletionRequest) (core.Completion, error) {
		return core.Completion{Text: text, Model: "scripted", InputTokens: 100, OutputTokens: 10, StopReason: "stop"}, nil
	}}
}

// honest is a model that condenses: what it answers depends on the question alone.
func honest() *model {
	return &model{answer: func(_ context.Context, req core.CompletionRequest) (core.Completion, error) {
		var kept []string
		for line := range strings.SplitSeq(req.Prompt, "\n") {
			if strings.Contains(line, "> Please find") || strings.Contains(line, "retryBudget was") || strings.HasPrefix(line, "> Done:") {
				kept = append(kept, "Done: "+strings.TrimPrefix(strings.TrimPrefix(line, "> "), "Done: "))
			}
			if len(kept) == 4 {
				break
			}
		}
		if len(kept) == 0 {
			kept = []string{"Done: the tools were run and their output was read."}
		}
		return core.Completion{Text: strings.Join(kept, "\n"), Model: "honest", InputTokens: 100, OutputTokens: 10}, nil
	}}
}

var errDown = errors.New("the endpoint is down")

func failing() *model {
	return &model{answer: func(context.Context, core.CompletionRequest) (core.Completion, error) {
		return core.Completion{}, errDown
	}}
}

// hanging waits for its context; deaf does not heed it until release is closed.
func hanging() *model {
	return &model{answer: func(ctx context.Context, _ core.CompletionRequest) (core.Completion, error) {
		<-ctx.Done()
		return core.Completion{}, fmt.Errorf("asking: %w", ctx.Err())
	}}
}

func deaf(release <-chan struct{}) *model {
	return &model{answer: func(context.Context, core.CompletionRequest) (core.Completion, error) {
		<-release
		return core.Completion{Text: "too late"}, nil
	}}
}

func config() summary.Config {
	cfg := summary.DefaultConfig()
	cfg.ChunkTokens = 1000
	return cfg
}

func newCompactor(t *testing.T, cfg summary.Config, m core.Completer, opts ...summary.Option) *summary.Compactor {
	t.Helper()
	c, err := summary.New(cfg, m, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compact runs a compaction and applies what it returns, published parts included.
func compact(ctx context.Context, t *testing.T, c *summary.Compactor, s *compactingtest.Session) (core.Patch, error) {
	t.Helper()
	patch, err := c.Compact(ctx, s.Task())
	if aerr := s.Apply(patch); aerr != nil {
		t.Fatalf("the patch breaks a promise: %v", aerr)
	}
	return patch, err
}

func mustCompact(t *testing.T, c *summary.Compactor, s *compactingtest.Session) core.Patch {
	t.Helper()
	patch, err := compact(t.Context(), t, c, s)
	if err != nil {
		t.Fatalf("Compact: %v", err)
	}
	return patch
}

func kinds(s *compactingtest.Session) map[string]int {
	out := map[string]int{}
	for _, sum := range s.Summaries {
		out[sum.Kind]++
	}
	return out
}
