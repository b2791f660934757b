package recall_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/internal/needs"
)

// standingOf measures what stands in windows of one budget.
func standingOf(t *testing.T, set *questions.Dataset, budget int, joined bool, retriever retriever) (recall.Standing, []recall.WindowQuestion) {
	t.Helper()
	res := measure(t, recall.Plan{Dataset: set, Windows: []int{budget}, Joined: joined, Seed: 1, Arms: []recall.Arm{arm(t, "one", memoryStore, retriever, nil)}})
	return res.Arms[0].Standing[0], res.Arms[0].Windows
}

func TestEvidenceInWindows(t *testing.T) {
	t.Parallel()
	set := dataset(t, "own.jsonl")
	// All of a conversation fits: all evidence stands there, nothing had to be recalled.
	all, list := standingOf(t, set, 100_000, true, plain)
	if all.Questions == 0 || all.Whole.Mean != 1 || all.Touched.Mean != 1 || all.Recalled != 0 || all.Filled <= 0 || len(list) != all.Questions {
		t.Errorf("where everything fits: %+v", all)
	}
	// In sessions of their own most of it is out of reach.
	kept, _ := standingOf(t, set, 100_000, false, plain)
	if kept.Whole.Mean >= 1 || kept.NotFound == 0 {
		t.Errorf("where sessions are kept apart: %+v", kept)
	}
	for _, q := range list {
		if q.Touched+q.NotFound+q.NotPacked != q.Evidence || q.Whole > q.Touched || q.Tokens > q.Budget {
			t.Errorf("%+v does not add up", q)
		}
	}
}

// TestLoCoMoWindows: what the engine's defaults are worth, in the window.
func TestLoCoMoWindows(t *testing.T) {
	needs.NoRace(t)
	t.Parallel()
	set := realData(t, "locomo/locomo-dev.json")
	got, _ := standingOf(t, set, 2000, true, plain)
	if got.Whole.Mean < 0.80 || got.Recalled > 0.30 {
		t.Errorf("whole %.3f with %.3f of the budget, want at least 0.80 with at most 0.30", got.Whole.Mean, got.Recalled)
	}
	none, _ := standingOf(t, set, 2000, true, func(core.Searcher, *slog.Logger) (core.Retriever, error) { return nil, nil })
	if none.Whole.Mean > 0.3 || none.Recalled != 0 {
		t.Errorf("without a retriever %.3f stand there whole", none.Whole.Mean)
	}
}

func TestWindowsNeedAnEngine(t *testing.T) {
	t.Parallel()
	alone := arm(t, "one", memoryStore, plain, func(s *recall.Subject) { s.Engine = struct{ core.BatchIngester }{s.Engine} })
	res, err := recall.Run(t.Context(), recall.Plan{Dataset: dataset(t, "own.jsonl"), Windows: []int{100}, Arms: []recall.Arm{alone}})
	if err != nil || res.Arms[0].Error == "" {
		t.Errorf("an engine that assembles nothing: %v, %+v", err, res)
	}
	if _, err := recall.Run(t.Context(), recall.Plan{Dataset: dataset(t, "own.jsonl"), Windows: []int{0}, Arms: []recall.Arm{alone}}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a window of nothing: %v, want ErrInvalid", err)
	}
}
