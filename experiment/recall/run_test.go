package recall_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/sweep"
	"github.com/contextengine/contextengine/strategies/hybrid"
)

// scripted proposes the entries of the scope in the order in which they were said.
type scripted struct {
	store core.Store
	err   error
	// wait, when not nil, ends the run.
	wait func()
}

func (s *scripted) Attach(store core.Store) error { s.store = store; return nil }

func (s *scripted) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	if s.wait != nil {
		s.wait()
	}
	if s.err != nil || ctx.Err() != nil {
		return nil, errors.Join(s.err, ctx.Err())
	}
	var out []core.Candidate
	for e, err := range core.All(ctx, s.store, q.Scope, false) {
		if err != nil {
			return nil, err
		}
		out = append(out, core.Candidate{Entry: e, Text: e.Text()[:1]})
	}
	return out[:min(len(out), q.Limit)], nil
}

func inOrder(core.Searcher, *slog.Logger) (core.Retriever, error) { return &scripted{}, nil }

// TestFigures compares with what can be counted by hand: the first session is "Ana: I named the boat Wren. [image: a small boat]" (10 words, 13
// tokens) and "Ben: Lovely. I start at the bakery on Monday." (9 words, 12 tokens); the second "Ben: The bakery is hard work." (6 words, 8 tokens).
func TestFigures(t *testing.T) {
	t.Parallel()
	res := measure(t, recall.Plan{
		Dataset: dataset(t, "locomo.json"), Depths: []int{1, 3}, Budgets: []int{15, 22, 26, 35},
		Arms: []recall.Arm{arm(t, "in order", memoryStore, inOrder, nil)},
	})
	type row struct {
		Category     string
		Recall       []float64
		AnswerTokens []float64
		Packed       []int
	}
	var got []row
	for _, q := range res.Arms[0].Questions {
		got = append(got, row{q.Category, q.Recall, q.AnswerTokens, q.Packed})
	}
	packed := []int{13, 21, 25, 33}
	want := []row{
		{"single-hop", []float64{1, 1, 1, 1, 1, 1}, []float64{1, 1, 1, 1}, packed},
		// at, the, bakery, hard
		{"multi-hop", []float64{0, 1, 0, 0.5, 0.5, 1}, []float64{0.25, 0.75, 0.75, 1}, packed},
		{"temporal", []float64{1, 1, 1, 1, 1, 1}, []float64{0, 0, 0, 0}, packed},
		{"adversarial", []float64{1, 1, 1, 1, 1, 1}, nil, packed},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	names := make([]string, len(res.Measures))
	for i, m := range res.Measures {
		names[i] = m.Name
	}
	if diff := cmp.Diff([]string{"R@1", "R@3", "15", "22", "26", "35"}, names); diff != "" {
		t.Errorf("measures (-want +got):\n%s", diff)
	}
	if g := res.Arms[0].Groups[0]; g.Name != "categories 1-4" || g.Questions != 3 || g.Answers != 3 || math.Abs(g.Measures[0].Recall.Mean-2.0/3) > 1e-12 || g.Measures[5].Packed != 33 {
		t.Errorf("%+v", g)
	}
	if i := res.Arms[0].Index; i.Entries != 3 {
		t.Errorf("%+v", i)
	}
}

// TestPassages: where passages are packed, what the retriever quotes is what costs.
func TestPassages(t *testing.T) {
	t.Parallel()
	res := measure(t, recall.Plan{
		Dataset: dataset(t, "locomo.json"), Unit: questions.Passage, Budgets: []int{9},
		Arms: []recall.Arm{arm(t, "in order", memoryStore, inOrder, nil)},
	})
	if got := res.Arms[0].Questions[1]; got.Packed[0] != 9 || got.Recall[4] != 1 {
		t.Errorf("%+v, want three quotations of 3 tokens", got)
	}
}

func TestTwoStoresAndComparison(t *testing.T) {
	t.Parallel()
	for _, set := range []*questions.Dataset{dataset(t, "beam"), dataset(t, "own.jsonl"), dataset(t, "locomo.json")} {
		res := measure(t, recall.Plan{Dataset: set, Arms: []recall.Arm{
			arm(t, "memory", memoryStore, plain, nil), arm(t, "sqlite", sqliteStore, plain, nil), arm(t, "in order", memoryStore, inOrder, nil),
		}})
		for i, same := range []bool{true, false} {
			o := res.Orders[i]
			if o.Base != "memory" || o.Of != set.Measured() || same != (o.Same == o.Of) && set.Name != "own.jsonl" {
				t.Errorf("%s: %+v", set.Name, o)
			}
		}
		if want := 2 * len(res.Measures) * len(res.Arms[0].Groups); len(res.Comparisons) != want {
			t.Errorf("%s: %d comparisons, want %d", set.Name, len(res.Comparisons), want)
		}
		for _, a := range res.Arms[:2] {
			if a.Index.StoreBytes == 0 && a.Name == "sqlite" || a.Groups[0].Measures[1].Recall.Mean == 0 {
				t.Errorf("%s: %s: %+v, %+v", set.Name, a.Name, a.Index, a.Groups[0])
			}
		}
	}
}

// down is a searcher whose outside is gone.
type down struct{}

func (down) Search(context.Context, core.SearchQuery) ([]core.Hit, error) {
	return nil, errors.New("embedder does not answer")
}

// TestDegraded: with one searcher gone the recall is that of the other, and the result says so.
func TestDegraded(t *testing.T) {
	t.Parallel()
	fused := func(words core.Searcher, log *slog.Logger) (core.Retriever, error) {
		cfg := hybrid.DefaultConfig()
		cfg.Limit = 1000
		return hybrid.New(cfg, map[string]core.Searcher{"lexical": words, "vector": down{}}, hybrid.WithLogger(log))
	}
	journal, err := sweep.OpenJournal(filepath.Join(t.TempDir(), "j"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	res := measure(t, recall.Plan{
		Dataset: dataset(t, "beam"), Arms: []recall.Arm{arm(t, "lexical", memoryStore, plain, nil), arm(t, "hybrid", memoryStore, fused, nil)}, Journal: journal,
	})
	h := res.Arms[1]
	if h.Degraded != 4 || h.Failed != 0 || len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0].Text, "searcher=vector") || h.Warnings[0].Example != "embedder does not answer" {
		t.Errorf("%d degraded, %d failed, %+v", h.Degraded, h.Failed, h.Warnings)
	}
	if o := res.Orders[0]; o.Same != o.Of {
		t.Errorf("the order is that of the lexical search for %d of %d questions", o.Same, o.Of)
	}
	if journal.Len() != 1 {
		t.Errorf("%d results are kept, want that of lexical alone: an outage says nothing about a configuration", journal.Len())
	}
}

// TestFailures: a retriever that fails finds nothing and is counted; an arm that cannot be opened does not stop the others.
func TestFailures(t *testing.T) {
	t.Parallel()
	broken := arm(t, "broken", memoryStore, func(core.Searcher, *slog.Logger) (core.Retriever, error) {
		return &scripted{err: errors.New("no answer")}, nil
	}, nil)
	closed := recall.Arm{Name: "closed", Open: func(context.Context) (recall.Subject, error) { return recall.Subject{}, core.ErrClosed }}
	res, err := recall.Run(t.Context(), recall.Plan{Dataset: dataset(t, "beam"), Arms: []recall.Arm{arm(t, "good", memoryStore, plain, nil), closed, broken}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Arms[1].Error == "" || res.Arms[1].Groups != nil {
		t.Errorf("%+v", res.Arms[1])
	}
	if b := res.Arms[2]; b.Failed != 4 || b.Groups[0].Measures[0].Recall.Mean != 0 || b.Questions[0].Error != "no answer" {
		t.Errorf("%+v", b)
	}
	if len(res.Orders) != 1 || res.Orders[0].Same != 0 {
		t.Errorf("%+v", res.Orders)
	}
}

// TestResume: what is in the journal is not measured again, unless configuration, data or protocol are others, and the result is the same.
func TestResume(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sweep.jsonl")
	opened := 0
	arms := func() []recall.Arm {
		var out []recall.Arm
		for _, name := range []string{"a", "b", "c"} {
			out = append(out, arm(t, name, memoryStore, plain, func(*recall.Subject) { opened++ }))
		}
		return out
	}
	run := func(ctx context.Context, change func(*recall.Plan)) (*recall.Result, error) {
		journal, err := sweep.OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		defer journal.Close()
		plan := recall.Plan{Dataset: dataset(t, "beam"), Arms: arms(), Journal: journal, Workers: 1, Seed: 5}
		if change != nil {
			change(&plan)
		}
		return recall.Run(ctx, plan)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := run(ctx, func(p *recall.Plan) {
		p.Progress = func(done, total int) {
			if total != 12 {
				t.Errorf("%d questions to ask, want 12", total)
			}
			if done == 6 { // in the middle of the second arm
				cancel()
			}
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that it was cancelled", err)
	}
	opened = 0
	res, err := run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened != 2 || !res.Arms[0].Resumed || res.Arms[1].Resumed {
		t.Errorf("%d arms were measured, want the two that were not finished", opened)
	}
	opened = 0
	again, err := run(t.Context(), nil)
	if err != nil || opened != 0 {
		t.Fatalf("%d arms were measured again, error %v", opened, err)
	}
	for i := range again.Arms {
		res.Arms[i].Resumed, again.Arms[i].Resumed = false, false
	}
	if diff := cmp.Diff(res, again); diff != "" {
		t.Errorf("the resumed result is another one:\n%s", diff)
	}
	for name, change := range map[string]func(*recall.Plan){
		"data":     func(p *recall.Plan) { p.Dataset = dataset(t, "own.jsonl") },
		"protocol": func(p *recall.Plan) { p.Candidates = 7 },
		"program":  func(p *recall.Plan) { p.Version = "2" },
		"arms":     func(p *recall.Plan) { p.Arms[0].Digest, p.Arms[1].Digest, p.Arms[2].Digest = "x", "", "z" },
	} {
		opened = 0
		if _, err := run(t.Context(), change); err != nil || opened != 3 {
			t.Errorf("another %s: %d arms were measured, error %v, want all three", name, opened, err)
		}
	}
}

// TestErased: a store that lasts holds nothing afterwards, also when the run is interrupted.
func TestErased(t *testing.T) {
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		store, err := memoryStore(t)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		lasting := arm(t, "lasting", func(testing.TB) (core.Store, error) { return store, nil }, func(core.Searcher, *slog.Logger) (core.Retriever, error) {
			r := &scripted{}
			if interrupted {
				r.wait = cancel
			}
			return r, nil
		}, func(s *recall.Subject) {
			s.Lasting, s.Close = true, nil
			s.Agent = func(c string) string { return "mine-" + c }
		})
		_, err = recall.Run(ctx, recall.Plan{Dataset: dataset(t, "beam"), Arms: []recall.Arm{lasting}})
		cancel()
		if interrupted != errors.Is(err, context.Canceled) || !interrupted && err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"mine-1", "mine-2"} {
			for e, err := range core.All(t.Context(), store, core.Scope{Agent: agent}, false) {
				t.Errorf("interrupted %v: %v is left, %v", interrupted, e.ID, err)
			}
		}
		if v, ok := core.As[core.ViewStore](store); ok {
			if left, err := v.ListViews(t.Context(), core.ViewQuery{Limit: 10}); err != nil || len(left) > 0 {
				t.Errorf("interrupted %v: views %v are left, %v", interrupted, left, err)
			}
		}
	}
}

func TestPlanErrors(t *testing.T) {
	t.Parallel()
	good := arm(t, "a", memoryStore, plain, nil)
	for name, p := range map[string]recall.Plan{
		"no data":      {Arms: []recall.Arm{good}},
		"no arm":       {Dataset: dataset(t, "beam")},
		"twice":        {Dataset: dataset(t, "beam"), Arms: []recall.Arm{good, good}},
		"depth":        {Dataset: dataset(t, "beam"), Arms: []recall.Arm{good}, Depths: []int{0}},
		"no measure":   {Dataset: dataset(t, "beam"), Arms: []recall.Arm{good}, Depths: []int{}, Budgets: []int{}},
		"candidates":   {Dataset: dataset(t, "beam"), Arms: []recall.Arm{good}, Candidates: -1},
		"unit":         {Dataset: dataset(t, "beam"), Arms: []recall.Arm{good}, Unit: "page"},
		"opens nought": {Dataset: dataset(t, "beam"), Arms: []recall.Arm{{Name: "a"}}},
	} {
		if _, err := recall.Run(t.Context(), p); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}
