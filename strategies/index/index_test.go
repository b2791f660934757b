package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/index"
)

func compactor(t *testing.T, change func(*index.Config)) *index.Compactor {
	t.Helper()
	cfg := index.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	x, err := index.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func compact(t *testing.T, x *index.Compactor, s *compactingtest.Session) core.Patch {
	t.Helper()
	p, err := x.Compact(t.Context(), s.Task())
	if err != nil {
		t.Fatalf("Compact: %v", err)
	}
	if err := s.Apply(p); err != nil {
		t.Fatalf("the patch breaks a promise: %v", err)
	}
	return p
}

// row returns the words of an index.
func row(text string) []string {
	_, words, _ := strings.Cut(text, "\nExact: ")
	return strings.Fields(words)
}

func TestEveryWordStandsInTheSource(t *testing.T) {
	es := compactingtest.Conversation(60)
	var source strings.Builder
	for _, e := range es {
		source.WriteString(e.Message.Text() + "\n")
		for _, p := range e.Message.Calls() {
			source.WriteString(p.Args + "\n")
		}
	}
	s := compactingtest.New(es, 3000, 5)
	compact(t, compactor(t, nil), s)
	if len(s.Summaries) != 1 || s.Summaries[0].Kind != "index" {
		t.Fatalf("summaries = %+v, want one index", s.Summaries)
	}
	words := row(s.Summaries[0].Text)
	if len(words) < 5 {
		t.Errorf("only %d words: %q", len(words), s.Summaries[0].Text)
	}
	for _, w := range words {
		if !strings.Contains(source.String(), w) {
			t.Errorf("%q stands nowhere in the source", w)
		}
	}
}

func TestItCostsItsShare(t *testing.T) {
	for _, turns := range []int{60, 200, 600} {
		s := compactingtest.New(compactingtest.Conversation(turns), 4000, 5)
		s.SummaryTokens = 100_000
		before := s.Tokens
		p := compact(t, compactor(t, nil), s)
		if got := s.Summaries[0].Tokens; got > max(before*3/100, 310) {
			t.Errorf("%d turns: the index costs %d of %d tokens", turns, got, before)
		}
		if s.Tokens > 4000 && p.Reason == "" {
			t.Errorf("%d turns: %d tokens are left, target 4000", turns, s.Tokens)
		}
	}
}

func TestAnIndexIsUpdatedNotForgotten(t *testing.T) {
	es := compactingtest.Conversation(10)
	es[0].Message = message.New(message.User, "Never deploy build 7f3e9c21aa on Fridays.")
	es[1].Message.Parts[1].Args = `{"path":"deploy/zone_q81.tf"}`
	s := compactingtest.New(es, 1500, 5)
	s.Force = true
	x := compactor(t, nil)
	for round := range 8 {
		compact(t, x, s)
		if len(s.Summaries) != 1 {
			t.Fatalf("round %d: %d summaries, want one", round, len(s.Summaries))
		}
		text := s.Summaries[0].Text
		for _, want := range []string{"Never deploy build 7f3e9c21aa on Fridays.", "deploy/zone_q81.tf"} {
			if !strings.Contains(text, want) {
				t.Errorf("round %d: %q is gone from %q", round, want, text)
			}
		}
		more := compactingtest.Conversation(10)
		for i := range more {
			more[i].ID = fmt.Sprintf("r%d-%d", round, i)
			for j := range more[i].Message.Parts {
				p := &more[i].Message.Parts[j]
				if p.CallID != "" {
					p.CallID = fmt.Sprintf("r%d-%s", round, p.CallID)
				}
			}
		}
		s.Entries = append(s.Entries, more...)
	}
	if got := s.Summaries[0]; !strings.HasPrefix(got.Text, fmt.Sprintf("[Index of %d earlier messages, ", got.Covers)) {
		t.Errorf("the heading does not count %d messages: %q", got.Covers, got.Text)
	}
}

func TestItIsDeterministic(t *testing.T) {
	var texts [3]string
	for i := range texts {
		s := compactingtest.New(compactingtest.Conversation(40), 2000, 5)
		compact(t, compactor(t, nil), s)
		texts[i] = s.Summaries[0].Text
	}
	if texts[0] != texts[1] || texts[1] != texts[2] {
		t.Errorf("the same history gives different indexes:\n%s\n%s", texts[0], texts[1])
	}
}

func TestNotesAreIncludedAndOtherSummariesStay(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(30), 2000, 5)
	s.Summaries = []core.Summary{
		{ID: "m", Kind: "summary", Text: "what a model wrote", Tokens: 10, Covers: 4},
		{ID: "n", Kind: "note", Text: "[7 earlier messages are stored but not shown.]", Tokens: 20, Covers: 7},
	}
	compact(t, compactor(t, nil), s)
	if len(s.Summaries) != 2 || s.Summaries[0].ID != "m" || s.Summaries[1].Kind != "index" {
		t.Errorf("summaries = %+v, want the model's and an index that includes the note", s.Summaries)
	}
}

func TestNothingToDo(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(2), 10, 10)
	s.Force = true
	if p := compact(t, compactor(t, nil), s); !p.Empty() || !strings.HasPrefix(p.Reason, core.ReasonAlreadyCompacted) {
		t.Errorf("patch = %+v, want only a reason", p)
	}
	s.Force, s.Target = false, 100_000
	if p := compact(t, compactor(t, nil), s); !p.Empty() || p.Reason != core.ReasonUnderTarget {
		t.Errorf("patch = %+v, want only a reason", p)
	}
}

func TestHintAndConfig(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(60), 2000, 5)
	compact(t, compactor(t, func(c *index.Config) { c.Hint = "Use history_search." }), s)
	if head, _, _ := strings.Cut(s.Summaries[0].Text, "\n"); !strings.HasSuffix(head, " Use history_search.]") {
		t.Errorf("heading = %q", head)
	}
	for _, change := range []func(*index.Config){
		func(c *index.Config) { c.Share = 0.5 }, func(c *index.Config) { c.LeastTokens = 1 }, func(c *index.Config) { c.MostTokens = 1 },
		func(c *index.Config) { c.Sentences = 1 }, func(c *index.Config) { c.Hint = "two\nlines" },
	} {
		cfg := index.DefaultConfig()
		change(&cfg)
		if _, err := index.New(cfg); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("New(%+v) = %v, want ErrInvalid", cfg, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := compactingtest.New(compactingtest.Conversation(20), 1000, 5)
	if p, err := compactor(t, nil).Compact(ctx, s.Task()); !errors.Is(err, context.Canceled) || !p.Empty() {
		t.Errorf("Compact = %+v, %v, want context.Canceled", p, err)
	}
}

// FuzzInclude reads back what could stand in an earlier summary.
func FuzzInclude(f *testing.F) {
	f.Add("[Index of 3 earlier messages, 50 tokens, 2031-03-04 09:00 to 2031-03-04 09:10 UTC.]\nRule: Never.\nExact: a/b.go x_1")
	f.Add("[Index of -3 earlier messages, 99999999999999999999 tokens, to UTC\nRule: \nExact:")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		s := compactingtest.New(compactingtest.Conversation(12), 700, 5)
		s.Summaries = []core.Summary{{ID: "i", Kind: "index", Text: text, Tokens: compactingtest.Count(text) + 6, Covers: 3}}
		compact(t, compactor(t, nil), s)
	})
}
