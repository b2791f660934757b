package stats_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/stats"
)

// conversations makes two measurements of the same questions without a true difference between them. Recall is mostly 0 or 1; on a share of
// the questions the two disagree, and how often each one wins differs between conversations.
func conversations(r *rand.Rand, count int, spread float64) (a, b [][]float64) {
	for range count {
		n := 100 + r.IntN(101)
		lean := spread * r.NormFloat64()
		easy := 0.8 + 0.08*r.NormFloat64()
		x, y := make([]float64, n), make([]float64, n)
		for q := range n {
			if r.Float64() < easy {
				x[q] = 1
			}
			y[q] = x[q]
			if u := r.Float64(); u < 0.15 { // they disagree here
				x[q], y[q] = 0, float64(1+r.IntN(2))/2
				if r.Float64() < 0.5-lean {
					x[q], y[q] = y[q], x[q]
				}
			}
		}
		a, b = append(a, x), append(b, y)
	}
	return a, b
}

// TestNoDifference: with no true difference, 95 % intervals exclude zero in 3 to 7 % of the runs.
func TestNoDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		count  int
		spread float64
	}{
		{"5 conversations that hardly differ", 5, 0.02},
		{"5 conversations that differ", 5, 0.15},
		{"10 conversations that hardly differ", 10, 0.02},
		{"10 conversations that differ", 10, 0.15},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(c.count), math.Float64bits(c.spread)))
			const runs = 1000
			excluded := 0
			for i := range runs {
				a, b := conversations(r, c.count, c.spread)
				d, err := stats.Difference(a, b, stats.Options{Seed: uint64(i)})
				if err != nil {
					t.Fatal(err)
				}
				if d.ExcludesZero() {
					excluded++
				}
			}
			share := 100 * float64(excluded) / runs
			t.Logf("%.1f %% of the intervals exclude zero", share)
			if share < 3 || share > 7 {
				t.Errorf("%.1f %% of the intervals exclude zero, want 3 to 7 %%", share)
			}
		})
	}
}

// TestPower: a difference that is there is found, and the interval holds it.
func TestPower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	const runs, by = 200, 0.05
	found, held := 0, 0
	for i := range runs {
		a, b := conversations(r, 10, 0.05)
		for _, x := range b {
			for q := range x {
				x[q] += by
			}
		}
		d, err := stats.Difference(a, b, stats.Options{Seed: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if d.ExcludesZero() && d.Mean > 0 {
			found++
		}
		if d.Low <= by && by <= d.High {
			held++
		}
	}
	if found < runs*9/10 || held < runs*9/10 {
		t.Errorf("of %d runs %d found the difference and %d held it, want nearly all", runs, found, held)
	}
}

func TestMean(t *testing.T) {
	t.Parallel()
	clusters := [][]float64{{1, 0, 1, 1}, {}, {0, 0, 1}, {1, 1}}
	got := stats.Mean(clusters, stats.Options{Seed: 7})
	if got.N != 9 || got.Clusters != 3 || math.Abs(got.Mean-6.0/9) > 1e-12 || got.Basis != stats.OverConversations {
		t.Errorf("Mean = %+v", got)
	}
	if got.Low >= got.Mean || got.High <= got.Mean || math.Abs(got.Mean-got.Low-(got.High-got.Mean)) > 1e-12 {
		t.Errorf("the interval of %+v does not lie around the mean", got)
	}
	if again := stats.Mean(clusters, stats.Options{Seed: 7}); again != got {
		t.Errorf("the same seed gives %+v, then %+v", got, again)
	}
	if in := got.Within(0, 1); in.Low < 0 || in.High > 1 {
		t.Errorf("Within = %+v", in)
	}
	one := stats.Mean([][]float64{{1, 0, 1, 0, 1, 1, 0, 1}}, stats.Options{})
	if one.Basis != stats.OverQuestions || one.Clusters != 1 || one.N != 8 || one.Low >= one.High {
		t.Errorf("of one conversation: %+v", one)
	}
	for name, few := range map[string][][]float64{"nothing": nil, "one value": {{0.5}}} {
		if got := stats.Mean(few, stats.Options{}); got.Basis != "" || got.ExcludesZero() || got.Low != got.High {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestExact: with the resampling error small, the standard error is that of the mean of equally large clusters.
func TestExact(t *testing.T) {
	t.Parallel()
	clusters := [][]float64{{0.1, 0.3}, {0.5, 0.5}, {0.9, 0.7}, {0.4, 0.2}, {0.6, 0.6}, {0.8, 1}}
	squares, mean := 0.0, 0.55
	for _, c := range clusters {
		d := (c[0]+c[1])/2 - mean
		squares += d * d
	}
	want := 2.5706 * math.Sqrt(squares/5/6)
	got := stats.Mean(clusters, stats.Options{Seed: 1, Resamples: 200_000})
	if half := got.High - got.Mean; math.Abs(half-want) > 0.01*want {
		t.Errorf("half the interval is %v, want %v", half, want)
	}
}

func TestDifferenceNeedsPairs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string][][]float64{"conversations": {{1}}, "questions": {{1}, {1}}} {
		if _, err := stats.Difference([][]float64{{1}, {1, 2}}, b, stats.Options{}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}
