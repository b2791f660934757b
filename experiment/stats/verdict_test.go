package stats_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/experiment/stats"
	"github.com/contextengine/contextengine/internal/drawn"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	over := func(n int, mean, low, high float64) stats.Interval {
		return stats.Interval{Mean: mean, Low: low, High: high, N: 10 * n, Clusters: n, Basis: stats.OverConversations}
	}
	share, cost, tokens := stats.Share(1), stats.Share(-1), stats.Amount("tokens", 0)
	for _, c := range []struct {
		m        stats.Measure
		d        stats.Interval
		decision stats.Decision
		text     string
	}{
		{share, over(9, 0.031, 0.012, 0.05), stats.Better, "B better by 3.1 points, 95 % 1.2 to 5.0"},
		{share, over(9, -0.031, -0.05, -0.012), stats.Worse, "A better by 3.1 points, 95 % 1.2 to 5.0"},
		{cost, over(9, -0.031, -0.05, -0.012), stats.Better, "B better by 3.1 points, 95 % 1.2 to 5.0"},
		{cost, over(9, 0.031, 0.012, 0.05), stats.Worse, "A better by 3.1 points, 95 % 1.2 to 5.0"},
		{tokens, over(5, -120, -160, -80), stats.Differs, "A higher by 120 tokens, 95 % 80 to 160"},
		{share, over(9, -0.0001, -0.01, 0.012), stats.NotShown, "no difference shown (-0.0 points, 95 % -1.0 to 1.2)"},
		{share, over(9, 0, 0, 0), stats.Same, "no difference: the same everywhere"},
		// However clear it looks.
		{share, over(4, 0.7, 0.6, 0.8), stats.TooFew, "too few to tell (4 conversations, 5 are needed): 70.0 points more"},
		{share, over(1, -0.016, -0.016, -0.016), stats.TooFew, "too few to tell (1 conversation, 5 are needed): 1.6 points less"},
		{share, over(3, 0, 0, 0), stats.TooFew, "too few to tell (3 conversations, 5 are needed): the same so far"},
		{share, over(3, 0.0002, -0.1, 0.1), stats.TooFew, "too few to tell (3 conversations, 5 are needed): about the same"},
		{share, stats.Interval{}, stats.TooFew, "nothing to compare"},
		// An end that is written as zero is zero.
		{share, over(9, 0.02, 0.0004, 0.04), stats.NotShown, "no difference shown (2.0 points, 95 % 0.0 to 4.0)"},
		// No interval leaves what is possible.
		{share, over(6, 0.7, 0.157, 1.243), stats.Better, "B better by 70.0 points, 95 % 15.7 to 100.0"},
		{stats.Amount("", 0), stats.Interval{Mean: 2, Low: 1, High: 3, N: 12, Clusters: 6, Basis: stats.OverSessions}, stats.Differs, "B higher by 2, 95 % 1 to 3"},
		{stats.Amount("", 0), stats.Interval{Mean: 2, Low: 1, High: 3, N: 12, Clusters: 2, Basis: stats.OverSessions}, stats.TooFew, "too few to tell (2 sessions in the smaller arm, 5 are needed): 2 more"},
	} {
		got := c.m.Judge("A", "B", c.d)
		text := strings.ReplaceAll(got.Text, "-0.0 ", "0.0 ")
		if text != strings.ReplaceAll(c.text, "-0.0 ", "0.0 ") || got.Decision != c.decision {
			t.Errorf("Judge(%+v) = %q, %q; want %q, %q", c.d, got.Decision, got.Text, c.decision, c.text)
		}
	}
}

// TestNoVerdictIsStrongerThanItsInterval: whatever was measured, words, decision and numbers say the same.
func TestNoVerdictIsStrongerThanItsInterval(t *testing.T) {
	t.Parallel()
	r := drawn.Rand(t)
	for range 2000 {
		n := 1 + r.IntN(9)
		a, b := make([][]float64, n), make([][]float64, n)
		for c := range a {
			for range 1 + r.IntN(4) {
				a[c], b[c] = append(a[c], float64(r.IntN(2))), append(b[c], float64(r.IntN(2)))
			}
		}
		d, err := stats.Difference(a, b, stats.Options{Seed: r.Uint64(), Resamples: 50})
		if err != nil {
			t.Fatal(err)
		}
		v := stats.Share(1).Judge("A", "B", d)
		inside := v.Effect.Low <= 0 && v.Effect.High >= 0
		if v.Decision.Shown() && (inside || n < stats.Fewest) || !v.Decision.Shown() && strings.Contains(v.Text, "better") || n < stats.Fewest && v.Decision != stats.TooFew ||
			v.Effect.Low < -1 || v.Effect.High > 1 || strings.Contains(v.Text, "-0.0") {
			t.Fatalf("%d conversations: %+v", n, v)
		}
	}
}

// What is known of figures is what they are: outcomes of 0 and 1 have no mean of 1.5.
func TestMeasureOf(t *testing.T) {
	t.Parallel()
	figures := []float64{1, 1, 1, 0}
	if i := stats.MeasureOf(figures).Mean(stats.Independent(figures)); i.Low < 0 || i.High > 1 || i.Mean != 0.75 {
		t.Errorf("%+v", i)
	}
	counts := []float64{0, 0, 0, 12}
	if i := stats.MeasureOf(counts).Mean(stats.Independent(counts)); i.Low != 0 || i.High <= 12 {
		t.Errorf("%+v", i)
	}
	if got := fmt.Sprint(stats.MeasureOf([]float64{-1, 2})); got != fmt.Sprint(stats.Measure{}) {
		t.Errorf("figures on both sides of zero: %s", got)
	}
}
