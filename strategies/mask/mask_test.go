package mask_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/mask"
)

func compactor(t *testing.T, change func(*mask.Config)) *mask.Compactor {
	t.Helper()
	cfg := mask.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	m, err := mask.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compact(t *testing.T, m core.Compactor, s *compactingtest.Session) core.Patch {
	t.Helper()
	p, err := m.Compact(t.Context(), s.Task())
	if err != nil {
		t.Fatalf("Compact: %v", err)
	}
	if err := s.Apply(p); err != nil {
		t.Fatalf("the patch breaks a promise: %v", err)
	}
	return p
}

func TestOldResultsGiveWayOldestFirst(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(30), 6000, 5)
	p := compact(t, compactor(t, nil), s)
	if s.Tokens > 6000 || s.Tokens < 5800 {
		t.Errorf("%d tokens are left, target 6000: no more than needed", s.Tokens)
	}
	last := -1
	for i, e := range s.Entries {
		st, ok := p.Stubs[e.ID]
		if !ok {
			continue
		}
		last = i
		want := fmt.Sprintf(", ok, %d tokens; entry %s]", e.Tokens, e.ID)
		if got := st.Texts[0]; st.Kind != window.Masked || !strings.HasPrefix(got, "[tool result not shown: ") || !strings.HasSuffix(got, want) {
			t.Errorf("stub of %s = %+v", e.ID, st)
		}
		if name := st.Texts[0][len("[tool result not shown: "):][:4]; name != "read" && name != "bash" {
			t.Errorf("the stub of %s does not name the tool: %q", e.ID, st.Texts[0])
		}
	}
	for i, e := range s.Entries[:last] {
		results := e.Message.Results()
		if len(results) == 0 {
			continue
		}
		if _, ok := p.Stubs[e.ID]; ok == results[0].IsError {
			t.Errorf("entry %d: masked %v, failed %v", i, ok, results[0].IsError)
		}
	}
}

func TestTheNewestResultsStay(t *testing.T) {
	for _, keep := range []int{0, 3, 10} {
		s := compactingtest.New(compactingtest.Conversation(30), 10, 0)
		p := compact(t, compactor(t, func(c *mask.Config) { c.KeepResults, c.KeepFailed = keep, false }), s)
		results, masked := 0, 0
		for _, e := range s.Entries {
			if e.Message.HasResults() {
				results++
				if _, ok := p.Stubs[e.ID]; ok {
					masked++
				}
			}
		}
		if results-masked != keep {
			t.Errorf("keep %d: %d of %d results are masked", keep, masked, results)
		}
		if p.Reason == "" {
			t.Errorf("keep %d: %d tokens are left, target 10, and no reason is given", keep, s.Tokens)
		}
		if p := compact(t, compactor(t, func(c *mask.Config) { c.KeepResults, c.KeepFailed = keep, false }).AsTier(), s); !p.Empty() || !strings.HasPrefix(p.Reason, core.ReasonAlreadyCompacted) {
			t.Errorf("keep %d: the second compaction masks %d more (%q)", keep, len(p.Stubs), p.Reason)
		}
	}
}

func TestOversizedTextsKeepHeadAndTailOnce(t *testing.T) {
	es := compactingtest.Conversation(4)
	long := "HEAD" + strings.Repeat(" of a long text", 1000) + " TAIL"
	es[2].Message.Parts[0].Text, es[2].Message.Parts[0].IsError, es[2].Tokens = long, true, compactingtest.Count(long)+6
	es[4].Message = message.New(message.Assistant, long)
	es[4].Tokens = compactingtest.Count(long) + 6
	es[5].Message = message.New(message.User, long) // what people say is never touched
	es[5].Tokens = compactingtest.Count(long) + 6
	s := compactingtest.New(es, 100, 5)
	m := compactor(t, func(c *mask.Config) { c.ClipTokens = 500 })
	p := compact(t, m, s)
	for _, id := range []string{"e2", "e4"} {
		st := p.Stubs[id]
		text := st.Texts[0]
		if st.Kind != window.Clipped || !strings.HasPrefix(text, "HEAD") || !strings.HasSuffix(text, "TAIL") || !strings.Contains(text, "; entry "+id+" ...]") || compactingtest.Count(text) > 500 {
			t.Errorf("stub of %s: %s of %d tokens", id, st.Kind, compactingtest.Count(text))
		}
	}
	if _, ok := p.Stubs["e5"]; ok {
		t.Error("a user's text was shortened")
	}
	if p := compact(t, m.AsTier(), s); !p.Empty() {
		t.Errorf("a second compaction shortens again: %+v", p.Stubs)
	}
}

func TestWhatTheWindowDoesNotShowStays(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(10), 10, 5)
	s.Left = 20
	for id := range compact(t, compactor(t, func(c *mask.Config) { c.KeepResults = 0 }), s).Stubs {
		for _, e := range s.Entries[:20] {
			if e.ID == id {
				t.Errorf("%s gets a stub, the window does not show it", id)
			}
		}
	}
}

func TestNothingToMask(t *testing.T) {
	var es []core.Entry
	for _, e := range compactingtest.Conversation(10) {
		if !e.Message.HasResults() && !e.Message.HasCalls() {
			es = append(es, e)
		}
	}
	s := compactingtest.New(es, 100, 3)
	if p := compact(t, compactor(t, nil).AsTier(), s); !p.Empty() || !strings.HasPrefix(p.Reason, core.ReasonAlreadyCompacted) {
		t.Errorf("patch = %+v, want only a reason", p)
	}
	if p := compact(t, compactor(t, nil), s); len(p.Replace) != 1 || p.Replace[0].Kind != "note" {
		t.Errorf("alone: patch = %+v, want a note", p)
	}
	s.Target = 100000
	if p := compact(t, compactor(t, nil), s); !p.Empty() || p.Reason != core.ReasonUnderTarget {
		t.Errorf("patch = %+v, want only a reason", p)
	}
}

func TestCancelledAndInvalid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
	if p, err := compactor(t, nil).Compact(ctx, s.Task()); !errors.Is(err, context.Canceled) || !p.Empty() {
		t.Errorf("Compact = %+v, %v, want context.Canceled", p, err)
	}
	for _, cfg := range []mask.Config{{KeepResults: -1, LeastTokens: 1}, {LeastTokens: 0}, {ClipTokens: 5, LeastTokens: 1}} {
		if _, err := mask.New(cfg); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("New(%+v) = %v, want ErrInvalid", cfg, err)
		}
	}
	c := s.Task()
	c.Count = nil
	if _, err := compactor(t, nil).Compact(t.Context(), c); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Compact without a counter = %v, want ErrInvalid", err)
	}
}
