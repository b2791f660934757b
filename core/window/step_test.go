package window

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/internal/drawn"
)

func turns(costs ...int) []Group {
	out := make([]Group, len(costs))
	for i, c := range costs {
		out[i] = Group{Cost: c, Turn: i%2 == 0}
	}
	return out
}

func TestStep(t *testing.T) {
	m := Marks{High: 900, Low: 700, Hard: 990}
	for _, tc := range []struct {
		name   string
		groups []Group
		fixed  int
		keep   int
		want   Plan
	}{
		{"nothing to do", turns(100, 100), 0, 0, Plan{Total: 200}},
		{"oldest turns leave", turns(300, 300, 300, 100), 0, 0, Plan{Drop: 1, Total: 700}},
		{
			"results are masked first, only as many as needed",
			[]Group{{Cost: 400, Results: []Result{{Saves: 350}}}, {Cost: 400, Results: []Result{{Saves: 350}}}, {Cost: 200, Turn: true}},
			0, 0,
			Plan{Masks: []Mask{{0, 0}}, Total: 650},
		},
		{
			"the newest results stay as long as something else can leave",
			[]Group{{Cost: 300}, {Cost: 400, Results: []Result{{Saves: 350}}}, {Cost: 200, Turn: true}, {Cost: 100}},
			0, 2,
			Plan{Drop: 1, Total: 700},
		},
		{
			"a group that would have to leave is masked where that is enough",
			[]Group{{Cost: 400, Results: []Result{{Saves: 350}}}, {Cost: 400, Results: []Result{{Saves: 350}}}, {Cost: 200, Turn: true}},
			0, 2,
			Plan{Masks: []Mask{{0, 0}}, Total: 650},
		},
		{
			"a turn that outgrew the window keeps its user message",
			[]Group{{Cost: 100, Turn: true}, {Cost: 400}, {Cost: 400}, {Cost: 300}},
			0, 10,
			Plan{Drop: 3, Pin: true, PinGroup: 0, Total: 430},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Step(tc.groups, tc.fixed, m, tc.keep, 30)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Step differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A step never leaves out the newest group nor an unpinned user message of the newest turn, and masks only what stays.
func TestStepKeepsTheNewest(t *testing.T) {
	r := drawn.Rand(t)
	for range 5000 {
		groups := make([]Group, 1+r.IntN(12))
		for i := range groups {
			groups[i] = Group{Cost: 1 + r.IntN(400), Turn: r.IntN(3) == 0}
			for range r.IntN(3) {
				groups[i].Results = append(groups[i].Results, Result{Saves: r.IntN(groups[i].Cost)})
			}
		}
		m := Marks{High: 500 + r.IntN(1000), Hard: 2000}
		m.Low = m.High * 3 / 4
		p := Step(groups, r.IntN(300), m, r.IntN(4), 20)
		if p.Drop >= len(groups) {
			t.Fatalf("%+v: %+v leaves nothing", groups, p)
		}
		if turn := newestTurn(groups); turn >= 0 && p.Drop > turn && (!p.Pin || p.PinGroup != turn) {
			t.Fatalf("%+v: %+v loses the user message %d", groups, p, turn)
		}
		for _, mask := range p.Masks {
			if mask.Group < p.Drop {
				t.Fatalf("%+v: %+v masks what leaves", groups, p)
			}
		}
	}
}

func TestReferenceIgnoresJitter(t *testing.T) {
	ref := 0
	for i := range 50 {
		ref = Reference(ref, 1000+(i*37%61)-30)
	}
	if ref != 970 {
		t.Errorf("reference of budgets 970..1030 = %d, want the smallest, 970", ref)
	}
	if got := Reference(ref, 4000); got != 4000 {
		t.Errorf("reference after the budget grew to 4000 = %d", got)
	}
	if got := Reference(4000, 970); got != 970 {
		t.Errorf("reference after the budget shrank to 970 = %d", got)
	}
}

func TestMarks(t *testing.T) {
	p := Policy{High: 0.9, Low: 0.5, LowTokens: 20_000, Reserve: 0.01, CachePrice: 0.1}
	for _, tc := range []struct {
		name                    string
		budget, recall, added   int
		high, lowFrom, lowUntil int
	}{
		{"much is added: as deep as allowed", 10_000, 1000, 600, 8900, 5000, 5000},
		{"little is added: a shallow step costs least", 10_000, 1000, 10, 8900, 7500, 8500},
		{"without recall the window has all of the budget", 10_000, 0, 600, 9900, 5000, 5200},
		{"low is lowTokens: that stays at least", 40_000, 1500, 1_000_000, 36_000, 20_000, 20_000},
		{"a window twice as large keeps half of lowTokens at least", 80_000, 1500, 1_000_000, 72_000, 10_000, 10_000},
		{"large windows go down to little", 100_000, 1500, 1700, 90_000, 8000, 12_000},
		{"a large window that grows slowly stays fuller", 100_000, 1500, 200, 90_000, 14_000, 30_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := p.Marks(tc.budget, tc.budget, tc.recall, tc.added)
			// Shares are binary fractions: a token more or less is not a difference.
			if abs(got.High-tc.high) > 1 || got.Low < tc.lowFrom || got.Low > tc.lowUntil || got.Hard != tc.budget*99/100 || got.Recall != tc.recall {
				t.Errorf("Marks = %+v, want high %d, low %d to %d", got, tc.high, tc.lowFrom, tc.lowUntil)
			}
		})
	}
}

// Where cached tokens cost as much as any other, nothing is gained by stepping rarely; the cheaper they are, the deeper a step goes.
func TestStepsAreDeeperTheCheaperCachedTokensAre(t *testing.T) {
	before := -1
	for _, price := range []float64{0.05, 0.1, 0.25, 0.5, 1} {
		p := Policy{High: 0.9, Low: 0.1, LowTokens: 20_000, Reserve: 0.01, CachePrice: price}
		low := p.Marks(64_000, 64_000, 1500, 300).Low
		if low <= before {
			t.Errorf("at a price of %v a step ends at %d, at the price before at %d", price, low, before)
		}
		before = low
	}
}

func abs(v int) int { return max(v, -v) }

func words(s string) int { return len(strings.Fields(s)) }

func TestClip(t *testing.T) {
	text := strings.Repeat("one two three four five six seven eight\n", 100)
	got := Clip(text, words(text), 60, " CUT ", words)
	if n := words(got); n > 60 || n < 40 {
		t.Errorf("clipped to %d words, want 40 to 60", n)
	}
	if !strings.HasPrefix(got, "one two") || !strings.HasSuffix(got, "seven eight\n") || strings.Count(got, "CUT") != 1 {
		t.Errorf("clipped text lacks head, marker or tail:\n%s", got)
	}
	if Clip("short", 1, 60, "CUT", words) != "short" {
		t.Error("a text that fits was changed")
	}
	if got := Clip(text, words(text), 1, "CUT", words); got != "CUT" {
		t.Errorf("without room: %q, want the marker", got)
	}
}

func FuzzClip(f *testing.F) {
	f.Add("héllo wörld, こんにちは世界", 20)
	f.Add(strings.Repeat("🙂", 50), 30)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		count := func(s string) int { return len(s) }
		got := Clip(text, len(text), limit, "|", count)
		if len(text) <= limit {
			if got != text {
				t.Errorf("Clip(%q, %d) = %q", text, limit, got)
			}
			return
		}
		if got != "|" && len(got) > limit {
			t.Errorf("Clip(%q, %d) = %q: too long", text, limit, got)
		}
	})
}
