package conformance_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/partstest"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// TestRetrieverHybrid holds the default to the retriever's contract, with searchers that fail and hang among others.
func TestRetrieverHybrid(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
		tb.Helper()
		r, err := retrievers["hybrid"](partstest.Embedder(t))
		if err != nil {
			tb.Fatal(err)
		}
		return r, memory.New()
	}, conformance.WithSearchers(func(tb testing.TB, searchers map[string]core.Searcher) core.Retriever {
		tb.Helper()
		r, err := hybrid.New(hybrid.DefaultConfig(), searchers)
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}))
}

// TestRetrieverSemantic holds the one that asks a single searcher to the contract.
func TestRetrieverSemantic(t *testing.T) {
	t.Parallel()
	conformance.TestRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
		tb.Helper()
		r, err := retrievers["semantic"](partstest.Embedder(t))
		if err != nil {
			tb.Fatal(err)
		}
		return r, memory.New()
	})
}

// fewest proposes so many candidates at most.
type fewest struct {
	core.Retriever
	most int
	// own leaves out what is granted.
	own bool
}

func (f *fewest) Attach(s core.Store) error {
	a, _ := f.Retriever.(core.Attacher)
	return a.Attach(s)
}

func (f *fewest) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	q.Limit = min(q.Limit, f.most)
	if f.own {
		q.Granted = nil
	}
	return f.Retriever.Retrieve(ctx, q)
}

// TestRetrieverFew holds retrievers that propose few candidates to the rule of grants: the limit is the largest number, not the wanted one.
func TestRetrieverFew(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 3, 5, 10, core.MaxPage} {
		for _, own := range []bool{false, true} {
			found := conformance.ExamineRetriever(t, func(tb testing.TB) (core.Retriever, core.Store) {
				tb.Helper()
				return &fewest{Retriever: words(), most: most, own: own}, memory.New()
			}, conformance.WithClaims("retrieve.granted"))
			switch {
			case !own && len(found) > 0:
				t.Errorf("a retriever of %d candidates at most: %v", most, found)
			case own && most > 3 && len(found) == 0:
				t.Errorf("a retriever of %d candidates at most that does not look at grants: caught by no check", most)
			}
		}
	}
}

// seldomWhole goes without one of those it asks when it is asked first, as on a busy machine.
type seldomWhole struct {
	wordRetriever
	asked atomic.Int64
}

func (s *seldomWhole) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	got, err := s.wordRetriever.Retrieve(ctx, q)
	if err == nil && s.asked.Add(1) == 1 {
		return got[:len(got)/2], fmt.Errorf("words: one of several did not answer: %w", core.ErrPartial)
	}
	return got, err
}

// TestRetrieverPartial holds a retriever to the contract that has some of its answers in part, and says so.
func TestRetrieverPartial(t *testing.T) {
	t.Parallel()
	open := func(testing.TB) (core.Retriever, core.Store) { return &seldomWhole{}, memory.New() }
	if found := conformance.ExamineRetriever(t, open, conformance.WithExactly(1, 20260301)); len(found) > 0 {
		t.Errorf("a retriever that says core.ErrPartial once: %v", found)
	}
}
