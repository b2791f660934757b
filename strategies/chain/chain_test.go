package chain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/compacting"
	"github.com/contextengine/contextengine/internal/compacting/compactingtest"
	"github.com/contextengine/contextengine/strategies/chain"
)

// tier is a compactor that does as it is told.
type tier struct {
	owns bool
	work func(ctx context.Context, c core.Compaction) (core.Patch, error)
}

func (t *tier) OwnsCompaction() bool { return t.owns }

func (t *tier) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	return t.work(ctx, c)
}

func owner(work func(ctx context.Context, c core.Compaction) (core.Patch, error)) *tier {
	return &tier{owns: true, work: work}
}

func link(t *testing.T, tiers ...core.Compactor) *chain.Compactor {
	t.Helper()
	k, err := chain.New(tiers...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// compact runs a compaction and applies it.
func compact(t *testing.T, k core.Compactor, s *compactingtest.Session) core.Patch {
	t.Helper()
	p, err := k.Compact(t.Context(), s.Task())
	if err != nil {
		t.Fatalf("Compact: %v", err)
	}
	if err := s.Apply(p); err != nil {
		t.Fatalf("the patch breaks a promise: %v\n%+v", err, p)
	}
	return p
}

// oldest replaces the oldest n units and the summaries of these ids.
func oldest(c core.Compaction, n int, text string, summaries ...string) core.Replacement {
	units := compacting.Units(c)
	return core.Replacement{Entries: compacting.IDs(c, compacting.Unit{To: units[n-1].To}), Summaries: summaries, Text: text, Kind: "note"}
}

func TestAllChainsReachTheTargetAndConverge(t *testing.T) {
	for _, name := range chains() {
		k := build(t, name, nil)
		for _, target := range []int{1500, 3500} {
			s := compactingtest.New(compactingtest.Conversation(30), target, 5)
			for round := range 6 {
				s.Force = round > 0
				before := s.Tokens
				p := compact(t, k, s)
				if p.Empty() && s.Published == 0 && p.Reason == "" {
					t.Errorf("%s: round %d did nothing and says nothing", name, round)
				}
				if round == 0 && s.Tokens > target && (name != "mask" || p.Reason == "") {
					t.Errorf("%s: %d tokens are left of %d, target %d (%q)", name, s.Tokens, before, target, p.Reason)
				}
			}
			before := s.Tokens
			if compact(t, k, s); s.Tokens > before {
				t.Errorf("%s does not converge: %d tokens, then %d", name, before, s.Tokens)
			}
		}
	}
}

func TestEntriesOutsideTheWindowAreCovered(t *testing.T) {
	for _, name := range chains() {
		if name == "mask" {
			continue
		}
		s := compactingtest.New(compactingtest.Conversation(20), 4000, 5)
		s.Left, s.Force = 60, true
		compact(t, build(t, name, nil), s)
		if s.Left > 0 {
			t.Errorf("%s: %d entries are neither shown nor stood for", name, s.Left)
		}
	}
}

func TestATierSeesWhatTheOneBeforeLeft(t *testing.T) {
	var seen core.Compaction
	s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
	k := link(t,
		owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{
				Stubs:   map[string]window.Stub{"e12": {Kind: window.Masked, Texts: map[int]string{0: "x"}, Tokens: 7}, "e2": {Kind: window.Masked, Texts: map[int]string{0: "x"}, Tokens: 7}},
				Replace: []core.Replacement{oldest(c, 2, "first")},
			}, nil
		}),
		owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			seen = c
			return core.Patch{Replace: []core.Replacement{oldest(c, 1, "second", c.Summaries[0].ID)}}, nil
		}),
	)
	p := compact(t, k, s)
	if seen.Entries[0].ID != "e4" || len(seen.Summaries) != 1 || seen.Summaries[0].Text != "first" || seen.Cost[8] != 7 {
		t.Errorf("the second tier saw entries from %s on, summaries %+v, cost %v", seen.Entries[0].ID, seen.Summaries, seen.Cost)
	}
	if len(p.Replace) != 1 || p.Replace[0].Text != "second" || len(p.Replace[0].Entries) != 5 {
		t.Errorf("patch = %+v, want one replacement of both", p.Replace)
	}
	if _, ok := p.Stubs["e2"]; ok || len(p.Stubs) != 1 {
		t.Errorf("stubs = %v, want only that of an entry that stays", p.Stubs)
	}
}

func TestTextsOfEarlierTiersCanBeIncluded(t *testing.T) {
	for _, published := range []bool{false, true} {
		s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
		first := owner(func(ctx context.Context, c core.Compaction) (core.Patch, error) {
			a := oldest(c, 1, "a")
			a.Ref = "a"
			b := core.Replacement{Ref: "b", Entries: []string{"e1", "e2", "e3"}, Text: "b", Kind: "note"}
			d := core.Replacement{Entries: []string{"e4"}, Text: "d", Kind: "note"}
			if !published {
				return core.Patch{Replace: []core.Replacement{a, b, d}}, nil
			}
			if err := c.Publish(ctx, core.Patch{Replace: []core.Replacement{a}}); err != nil {
				return core.Patch{}, err
			}
			return core.Patch{Replace: []core.Replacement{b, d}}, nil
		})
		second := owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{Replace: []core.Replacement{{Ref: "a", Summaries: []string{c.Summaries[0].ID, c.Summaries[1].ID}, Text: "a and b", Kind: "note"}}}, nil
		})
		compact(t, link(t, first, second), s)
		var texts []string
		for _, sum := range s.Summaries {
			texts = append(texts, sum.Text)
		}
		if diff := cmp.Diff([]string{"a and b", "d"}, texts); diff != "" {
			t.Errorf("published %v: summaries (-want +got):\n%s", published, diff)
		}
	}
}

func TestPublishTakesWhatWasCollectedWithIt(t *testing.T) {
	s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
	k := link(t,
		owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{Replace: []core.Replacement{oldest(c, 1, "first")}}, nil
		}),
		owner(func(ctx context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{}, c.Publish(ctx, core.Patch{Replace: []core.Replacement{oldest(c, 1, "paid")}})
		}),
	)
	if p := compact(t, k, s); !p.Empty() || s.Published != 1 || len(s.Summaries) != 2 {
		t.Errorf("patch %+v, %d published, %d summaries; want both published in one", p, s.Published, len(s.Summaries))
	}
}

func TestATierThatFailsStopsNobody(t *testing.T) {
	down := errors.New("down")
	s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
	k := link(t,
		owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{Replace: []core.Replacement{oldest(c, 1, "before it failed")}}, down
		}),
		owner(func(_ context.Context, c core.Compaction) (core.Patch, error) {
			return core.Patch{Replace: []core.Replacement{oldest(c, 1, "behind it")}}, nil
		}),
	)
	p, err := k.Compact(t.Context(), s.Task())
	if !errors.Is(err, down) || len(p.Replace) != 2 {
		t.Errorf("Compact = %+v, %v, want both patches and the error", p, err)
	}
}

func TestAChainStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k := link(t,
		owner(func(ctx context.Context, c core.Compaction) (core.Patch, error) {
			cancel()
			return core.Patch{Replace: []core.Replacement{oldest(c, 1, "finished")}}, ctx.Err()
		}),
		owner(func(context.Context, core.Compaction) (core.Patch, error) {
			t.Error("a tier was asked behind the end")
			return core.Patch{}, nil
		}),
	)
	s := compactingtest.New(compactingtest.Conversation(10), 100, 5)
	p, err := k.Compact(ctx, s.Task())
	if !errors.Is(err, context.Canceled) || len(p.Replace) != 1 {
		t.Errorf("Compact = %+v, %v, want what was finished and context.Canceled", p, err)
	}
}

func TestNothingAchievedLeavesANote(t *testing.T) {
	idle := owner(func(context.Context, core.Compaction) (core.Patch, error) {
		return core.Patch{Reason: "nothing to do for me"}, nil
	})
	s := compactingtest.New(compactingtest.Conversation(10), 800, 5)
	compact(t, link(t, idle, idle), s)
	if s.Tokens > 800 || len(s.Summaries) != 1 || s.Summaries[0].Kind != "note" {
		t.Errorf("%d tokens and summaries %+v, want a note and at most 800", s.Tokens, s.Summaries)
	}
	s = compactingtest.New(compactingtest.Conversation(2), 10, 10)
	if p := compact(t, link(t, idle), s); !p.Empty() || p.Reason != "nothing to do for me" {
		t.Errorf("patch = %+v, want the tier's reason", p)
	}
}

func TestNewRefuses(t *testing.T) {
	own, pass := owner(nil), &tier{}
	for name, tiers := range map[string][]core.Compactor{"none": {}, "nil": {own, nil}, "mixed": {own, pass}, "two that pass on": {pass, pass}} {
		if _, err := chain.New(tiers...); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: New = %v, want ErrInvalid", name, err)
		}
	}
	want := core.CompactResult{OK: true, Compacted: true}
	pass.work = func(context.Context, core.Compaction) (core.Patch, error) { return core.Patch{Delegated: &want}, nil }
	k := link(t, pass)
	if p, err := k.Compact(t.Context(), core.Compaction{}); k.OwnsCompaction() || err != nil || p.Delegated == nil || *p.Delegated != want {
		t.Errorf("a chain of one that passes on: owns %v, patch %+v, %v", k.OwnsCompaction(), p, err)
	}
	if got := k.Tiers(); !slices.Equal(got, []core.Compactor{pass}) {
		t.Errorf("Tiers = %v", got)
	}
	if !strings.Contains(func() string { _, err := chain.New(own, pass); return err.Error() }(), "works alone") {
		t.Error("the error does not say what to do")
	}
}
