package memory_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
)

func view(version uint64) core.View {
	parent := core.SessionID{Agent: "ann", Session: "parent"}
	return core.View{
		Session: ann, Version: version, Path: []core.Span{{Session: &parent, From: 0, To: 4}},
		Summaries: []core.Summary{{ID: "s", Text: "text"}},
		Recall:    &core.Recall{Text: "r", Items: []core.RecallItem{{ID: "i"}}},
		Commits:   []string{"c"},
	}
}

func TestViewsAreSwappedInOrder(t *testing.T) {
	s := memory.New()
	if _, err := s.LoadView(t.Context(), ann); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("LoadView of nothing = %v, want ErrNotFound", err)
	}
	for _, step := range []struct {
		version uint64
		want    error
	}{{0, core.ErrInvalid}, {2, core.ErrConflict}, {1, nil}, {1, core.ErrConflict}, {3, core.ErrConflict}, {2, nil}} {
		if err := s.SwapView(t.Context(), view(step.version)); !errors.Is(err, step.want) {
			t.Fatalf("SwapView of version %d = %v, want %v", step.version, err, step.want)
		}
	}
	if err := s.DeleteView(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteView(t.Context(), ann); err != nil {
		t.Errorf("DeleteView of nothing = %v", err)
	}
	if err := s.SwapView(t.Context(), view(1)); err != nil {
		t.Errorf("SwapView after DeleteView = %v", err)
	}
}

func TestViewsAreCopied(t *testing.T) {
	s := memory.New()
	given := view(1)
	if err := s.SwapView(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	spoil := func(v core.View) {
		v.Path[0].To = 99
		v.Path[0].Session.Session = "spoilt"
		v.Summaries[0].Text = "spoilt"
		v.Recall.Items[0].ID = "spoilt"
		v.Commits[0] = "spoilt"
	}
	spoil(given)
	for range 2 {
		got, err := s.LoadView(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(view(1), got); diff != "" {
			t.Fatalf("the stored view changed (-want +got):\n%s", diff)
		}
		spoil(got)
	}
}

func TestOneOfManySwapsWins(t *testing.T) {
	s := memory.New()
	for round := range uint64(20) {
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := s.SwapView(t.Context(), view(round+1)); err == nil {
					won.Add(1)
				} else if !errors.Is(err, core.ErrConflict) {
					t.Errorf("SwapView = %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("round %d: %d swaps succeeded, want 1", round, won.Load())
		}
	}
}
