package archive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/archive"
)

func compactor(t *testing.T, hint string) *archive.Compactor {
	t.Helper()
	cfg := archive.DefaultConfig()
	cfg.Hint = hint
	a, err := archive.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !a.OwnsCompaction() {
		t.Error("OwnsCompaction = false")
	}
	return a
}

func compact(t *testing.T, a *archive.Compactor, s *compactingtest.Session) core.Patch {
	t.Helper()
	patch, err := a.Compact(t.Context(), s.Task())
	if err != nil {
		t.Fatalf("Compact: %v", err)
	}
	if err := s.Apply(patch); err != nil {
		t.Fatalf("the patch breaks a promise: %v", err)
	}
	return patch
}

func TestCompactReachesTheTarget(t *testing.T) {
	for _, target := range []int{300, 1000, 3000, 6000} {
		for _, protected := range []int{0, 1, 3, 5, 12} {
			t.Run(fmt.Sprintf("target=%d,protected=%d", target, protected), func(t *testing.T) {
				s := compactingtest.New(compactingtest.Conversation(30), target, protected)
				patch := compact(t, compactor(t, ""), s)
				fixed := s.Tokens
				if patch.Reason == "" && fixed > target {
					t.Errorf("%d tokens are left, target %d, and no reason is given", fixed, target)
				}
				if len(s.Summaries) != 1 || s.Summaries[0].Kind != "note" {
					t.Errorf("summaries = %+v, want one note", s.Summaries)
				}
			})
		}
	}
}

func TestCompactTakesNoMoreThanNeeded(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(30), 3000, 5)
	compact(t, compactor(t, ""), s)
	// A group of the conversation costs less than 200 tokens.
	if s.Tokens < 2700 {
		t.Errorf("%d tokens are left, target 3000", s.Tokens)
	}
}

func TestThereIsOneNoteAndOtherSummariesStay(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(30), 3500, 5)
	s.Summaries = []core.Summary{
		{ID: "m", Kind: "summary", Text: "what a model wrote", Tokens: 10, Covers: 4},
		{ID: "h", Kind: "host", Text: "what the host wrote", Tokens: 10, Covers: 4},
	}
	all := len(s.Entries)
	a := compactor(t, "")
	for _, target := range []int{3500, 2500, 1200} {
		s.Target = target
		compact(t, a, s)
		var kinds []string
		for _, sum := range s.Summaries {
			kinds = append(kinds, sum.Kind)
		}
		if diff := cmp.Diff([]string{"summary", "host", "note"}, kinds); diff != "" {
			t.Fatalf("summaries (-want +got):\n%s", diff)
		}
		gone := all - len(s.Entries)
		last := s.Entries[0].Time.Add(-60e9).Format("2006-01-02 15:04")
		want := fmt.Sprintf("[%d earlier messages are stored but not shown, from 2031-03-04 09:00 to %s UTC.]", gone, last)
		if got := s.Summaries[2]; got.Text != want || got.Covers != gone {
			t.Errorf("note = %q covering %d, want %q", got.Text, got.Covers, want)
		}
	}
}

func TestSeveralNotesBecomeOne(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(1), 10, 5)
	for _, n := range []string{"a", "b"} {
		s.Summaries = append(s.Summaries, core.Summary{ID: n, Kind: "note", Text: "[7 earlier messages are stored but not shown.]", Tokens: 40, Covers: 7})
	}
	compact(t, compactor(t, ""), s)
	if len(s.Summaries) != 1 || s.Summaries[0].Covers != 14 || !strings.HasPrefix(s.Summaries[0].Text, "[14 earlier messages") {
		t.Errorf("summaries = %+v, want one note of 14 messages", s.Summaries)
	}
}

func TestNothingToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		target, protected int
		force             bool
		want              string
	}{
		"under target":            {100000, 5, false, core.ReasonUnderTarget},
		"all protected":           {10, 10, false, core.ReasonAlreadyCompacted},
		"all protected, forced":   {100000, 10, true, core.ReasonAlreadyCompacted},
		"more protected than all": {10, 99, true, core.ReasonAlreadyCompacted},
	} {
		s := compactingtest.New(compactingtest.Conversation(2), tc.target, tc.protected)
		s.Force = tc.force
		patch := compact(t, compactor(t, ""), s)
		if !patch.Empty() || !strings.HasPrefix(patch.Reason, tc.want) {
			t.Errorf("%s: patch = %+v, want only the reason %q", name, patch, tc.want)
		}
	}
}

func TestRepeatedForcedCompactionsConverge(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(20), 1_000_000, 5)
	s.Force = true
	a := compactor(t, "")
	if patch := compact(t, a, s); patch.Empty() {
		t.Fatalf("the first forced compaction did nothing: %q", patch.Reason)
	}
	if len(s.Entries) != 5 {
		t.Errorf("%d entries are left, want the 5 protected ones", len(s.Entries))
	}
	if patch := compact(t, a, s); !patch.Empty() || !strings.Contains(patch.Reason, core.ReasonAlreadyCompacted) {
		t.Errorf("the second forced compaction = %+v, want only a reason", patch)
	}
}

func TestEntriesOutsideTheWindowAreAllTaken(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(20), 3000, 5)
	s.Left = 80
	compact(t, compactor(t, ""), s)
	if s.Left != 0 {
		t.Errorf("%d entries are neither shown nor stood for", s.Left)
	}
}

func TestHint(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(20), 1000, 5)
	compact(t, compactor(t, "Use history_search to read them."), s)
	if !strings.HasSuffix(s.Summaries[0].Text, " UTC. Use history_search to read them.]") {
		t.Errorf("note = %q", s.Summaries[0].Text)
	}
	s = compactingtest.New(compactingtest.Conversation(20), 1000, 5)
	s.SummaryTokens = 30
	compact(t, compactor(t, strings.Repeat("long ", 60)), s)
	if strings.Contains(s.Summaries[0].Text, "long") {
		t.Errorf("a hint without room stayed: %q", s.Summaries[0].Text)
	}
	if _, err := archive.New(archive.Config{Hint: "two\nlines"}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("New with a hint of two lines = %v, want ErrInvalid", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := compactingtest.New(compactingtest.Conversation(20), 1000, 5)
	patch, err := compactor(t, "").Compact(ctx, s.Task())
	if !errors.Is(err, context.Canceled) || !patch.Empty() {
		t.Errorf("Compact = %+v, %v, want context.Canceled", patch, err)
	}
}
