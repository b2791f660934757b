package stats

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/contextengine/contextengine/core"
)

// Options shape an interval. The zero value is ready.
type Options struct {
	// Seed makes the resampling repeatable: the same values and seed give the same interval.
	Seed uint64
	// Resamples is how often is resampled, 2000 when it is 0.
	Resamples int
}

// The values of Interval.Basis: what was drawn at random.
const (
	OverConversations = "conversations"
	OverQuestions     = "questions"
)

// Interval is a mean and where it lies with a confidence of 95 %. The unit is that of the values.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// N is the number of values, Clusters the number of conversations that had any; for a difference of two arms of a live experiment, the sessions of the smaller one.
	N        int `json:"n"`
	Clusters int `json:"conversations"`
	// Basis is OverConversations, OverQuestions where there is one conversation alone, or empty where there are too few values for an interval: Low
	// and High are the mean then.
	Basis string `json:"basis,omitempty"`
}

// ExcludesZero reports whether zero lies outside the interval: a difference is shown.
func (i Interval) ExcludesZero() bool { return i.Basis != "" && (i.Low > 0 || i.High < 0) }

// Zero reports whether nothing differs at all.
func (i Interval) Zero() bool { return i.Mean == 0 && i.Low == 0 && i.High == 0 }

// Within returns the interval with its ends moved into a range that the values cannot leave, such as 0 to 1 for shares.
func (i Interval) Within(low, high float64) Interval {
	i.Low, i.High = max(i.Low, low), min(i.High, high)
	return i
}

// Mean returns the mean of all values with its interval. Clusters without values do not count. Without any value it is the zero Interval.
func Mean(clusters [][]float64, o Options) Interval {
	groups := make([]group, 0, len(clusters))
	for _, values := range clusters {
		if len(values) > 0 {
			groups = append(groups, sum(values))
		}
	}
	out := Interval{Clusters: len(groups), Basis: OverConversations}
	if len(groups) == 1 {
		out.Basis = OverQuestions
		groups = groups[:0]
		for _, values := range clusters {
			for _, v := range values {
				groups = append(groups, group{v, 1})
			}
		}
	}
	var all group
	for _, g := range groups {
		all.sum += g.sum
		all.n += g.n
	}
	if all.n == 0 {
		return Interval{}
	}
	out.N, out.Mean = int(all.n), all.sum/all.n
	out.Low, out.High = out.Mean, out.Mean
	if len(groups) < 2 {
		out.Basis = ""
		return out
	}
	half := quantile975(len(groups)-1) * standardError(groups, out.Mean, o)
	out.Low, out.High = out.Mean-half, out.Mean+half
	return out
}

// Difference returns the mean of b minus a, value by value: a[c][q] and b[c][q] are what two configurations got for the same question. It is
// ErrInvalid when the two have not the same shape.
func Difference(a, b [][]float64, o Options) (Interval, error) {
	if len(a) != len(b) {
		return Interval{}, fmt.Errorf("stats: difference: %d and %d conversations cannot be paired: %w", len(a), len(b), core.ErrInvalid)
	}
	d := make([][]float64, len(a))
	for c := range a {
		if len(a[c]) != len(b[c]) {
			return Interval{}, fmt.Errorf("stats: difference: conversation %d: %d and %d questions cannot be paired: %w", c, len(a[c]), len(b[c]), core.ErrInvalid)
		}
		d[c] = make([]float64, len(a[c]))
		for q := range a[c] {
			d[c][q] = b[c][q] - a[c][q]
		}
	}
	return Mean(d, o), nil
}

// group is the sum of a cluster's values and their number.
type group struct{ sum, n float64 }

func sum(values []float64) group {
	g := group{n: float64(len(values))}
	for _, v := range values {
		g.sum += v
	}
	return g
}

const resamples = 2000

// standardError resamples whole groups.
func standardError(groups []group, mean float64, o Options) float64 {
	n := o.Resamples
	if n <= 0 {
		n = resamples
	}
	r := rand.New(rand.NewPCG(o.Seed, uint64(len(groups))))
	squares := 0.0
	for range n {
		var s group
		for range groups {
			g := groups[r.IntN(len(groups))]
			s.sum += g.sum
			s.n += g.n
		}
		d := s.sum/s.n - mean
		squares += d * d
	}
	g := float64(len(groups))
	return math.Sqrt(squares / float64(n) * g / (g - 1))
}

// quantile975 returns the 97.5 % quantile of Student's t distribution. From 30 degrees of freedom on the expansion around the normal quantile is exact to
// five decimals (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5).
func quantile975(freedom int) float64 {
	table := [...]float64{
		12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314,
		2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452,
	}
	if freedom <= len(table) {
		return table[max(freedom, 1)-1]
	}
	const z = 1.959964
	v := float64(freedom)
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v)
}
