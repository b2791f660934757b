package summary_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
)

func TestHangingModelsEndInAFallbackWithinTheDeadline(t *testing.T) {
	for _, limit := range []time.Duration{3 * time.Second, 50 * time.Second, 150 * time.Second, time.Hour} {
		for _, heeds := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				m := hanging()
				if !heeds {
					m = deaf(release)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				s := compactingtest.New(compactingtest.Conversation(40), 3000, 5)
				_, err := compact(ctx, t, newCompactor(t, config(), m), s)
				if err != nil || ctx.Err() != nil {
					t.Errorf("limit %v, heeds context %v: Compact = %v, context %v", limit, heeds, err, ctx.Err())
				}
				if got := kinds(s); s.Tokens > 3000 || got["fallback"] != len(s.Summaries) || len(s.Summaries) == 0 {
					t.Errorf("limit %v, heeds context %v: %d tokens, summaries %v", limit, heeds, s.Tokens, got)
				}
				if m.calls() == 0 {
					t.Errorf("limit %v: the model was never asked", limit)
				}
			})
		}
	}
}

func TestOneHangingCallCostsItsTimeoutOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := honest()
		m := &model{answer: func(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
			if strings.Contains(req.Prompt, "> Please find out why request 1000 ") {
				<-ctx.Done()
				return core.Completion{}, ctx.Err()
			}
			return h.answer(ctx, req)
		}}
		cfg := config()
		cfg.MaxSummaries = 50 // every chunk is a summary of its own
		begun := time.Now()
		s := compactingtest.New(compactingtest.Conversation(40), 3000, 5)
		patch := mustCompact(t, newCompactor(t, cfg, m), s)
		if took := time.Since(begun); took != cfg.CallTimeout {
			t.Errorf("the compaction took %v, want %v", took, cfg.CallTimeout)
		}
		if got := kinds(s); got["fallback"] != 1 || got["summary"] < 2 {
			t.Errorf("summaries = %v (%+v), want one fallback", got, patch)
		}
	})
}

func TestCancelledKeepsWhatIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := honest()
		m := &model{}
		m.answer = func(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
			switch n := m.calls(); {
			case n == 8:
				time.Sleep(time.Second)
				cancel()
				fallthrough
			case n > 8:
				<-ctx.Done()
				return core.Completion{}, ctx.Err()
			}
			return h.answer(ctx, req)
		}
		s := compactingtest.New(compactingtest.Conversation(60), 3000, 5)
		before := len(s.Entries)
		patch, err := compact(ctx, t, newCompactor(t, config(), m), s)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Compact = %v, want context.Canceled", err)
		}
		if got := kinds(s); got["summary"] == 0 || got["fallback"] > 0 || len(s.Entries) == before {
			t.Errorf("summaries = %v, patch %+v: want what the model had finished and nothing else", got, patch)
		}
		calls := m.calls()
		time.Sleep(time.Hour)
		if m.calls() != calls {
			t.Error("the model was asked after the compaction had been cancelled")
		}
	})
}

func TestCancelledBetweenAnswerAndPublish(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := honest()
	m := &model{answer: func(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
		defer cancel()
		return h.answer(ctx, req)
	}}
	cfg := config()
	cfg.Parallel = 1
	s := compactingtest.New(compactingtest.Conversation(40), 3000, 5)
	patch, err := compact(ctx, t, newCompactor(t, cfg, m), s)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Compact = %v, want context.Canceled", err)
	}
	// The answer may lose the race with the end of the context, but what was paid for and kept must be in the patch.
	if s.Published != 0 || len(patch.Replace) > 1 {
		t.Errorf("%d published, %d returned, want at most the finished one returned", s.Published, len(patch.Replace))
	}
}
