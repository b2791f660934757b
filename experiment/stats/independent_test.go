package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/contextengine/contextengine/experiment/stats"
)

// TestUnpairedCovers: without a true difference 95 % intervals exclude zero in about 5 % of the runs, whatever the arms' sizes and spreads.
func TestUnpairedCovers(t *testing.T) {
	for _, c := range []struct {
		name   string
		na, nb int
		sa, sb float64
	}{{"even", 40, 40, 1, 1}, {"uneven", 12, 90, 3, 1}, {"few", 5, 6, 1, 1}} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(c.na)))
			draw := func(n int, spread float64) []float64 {
				out := make([]float64, n)
				for i := range out {
					out[i] = r.NormFloat64() * spread
				}
				return out
			}
			wrong := 0
			const runs = 2000
			for range runs {
				if stats.Unpaired(draw(c.na, c.sa), draw(c.nb, c.sb)).ExcludesZero() {
					wrong++
				}
			}
			if share := float64(wrong) / runs; share < 0.03 || share > 0.07 {
				t.Errorf("%.1f %% of the intervals exclude zero", 100*share)
			}
		})
	}
}

func TestIndependent(t *testing.T) {
	i := stats.Independent([]float64{1, 2, 3, 4})
	if i.Mean != 2.5 || math.Abs(i.High-i.Mean-3.1824*math.Sqrt(5.0/12)) > 1e-4 || i.Basis == "" {
		t.Errorf("%+v", i)
	}
	if i := stats.Independent([]float64{7}); i.Basis != "" || i.ExcludesZero() {
		t.Errorf("one value: %+v", i)
	}
	d := stats.Unpaired([]float64{1, 1.1, 0.9}, []float64{3, 3.1, 2.9})
	if !d.ExcludesZero() || math.Abs(d.Mean-2) > 1e-9 {
		t.Errorf("%+v", d)
	}
}
