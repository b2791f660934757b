package conformance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/summary"
)

// busy are parts that now and then take seconds, as all do on a machine that has much else to do.
type busy struct{ calls atomic.Int64 }

func (b *busy) work(ctx context.Context) error {
	if b.calls.Add(1)%7 != 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type busyRetriever struct {
	wordRetriever
	busy *busy
}

func (r *busyRetriever) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if err := r.busy.work(ctx); err != nil {
		return nil, err
	}
	return r.wordRetriever.Retrieve(ctx, q)
}

type busyModel struct {
	core.Completer
	busy *busy
}

func (m busyModel) Complete(ctx context.Context, req core.CompletionRequest) (core.Completion, error) {
	if err := m.busy.work(ctx); err != nil {
		return core.Completion{}, err
	}
	return m.Completer.Complete(ctx, req)
}

// TestBusyMachine: parts that are slow for once break no rule, so that the suite is not red by chance. The clock is the test's own.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &busy{}
		open := setup{
			compacts: func(env conformance.Env) (core.Compactor, error) {
				return summary.New(summary.DefaultConfig(), busyModel{env.Model, b})
			},
			retriever: func() core.Retriever { return &busyRetriever{busy: b} },
		}.open
		for _, f := range conformance.ExamineEngine(t, conformance.Combination{Name: "busy", Open: open}, cheap, conformance.WithCases(40)) {
			t.Error(f)
		}
	})
}
