package stats

import "math"

// OverSessions is the Basis of intervals over independent values.
const OverSessions = "sessions"

// Independent returns the mean of independent values, such as one for each session, with Student's interval.
func Independent(values []float64) Interval {
	m := momentsOf(values)
	out := Interval{Mean: m.mean, Low: m.mean, High: m.mean, N: len(values), Clusters: len(values)}
	if len(values) < 2 {
		return out
	}
	half := quantile975(len(values)-1) * math.Sqrt(m.variance/m.n)
	out.Low, out.High, out.Basis = m.mean-half, m.mean+half, OverSessions
	return out
}

// Unpaired returns the mean of b minus that of a, where nothing of a belongs to anything of b: two arms of a live experiment. The interval is Welch's:
// the arms may differ in their spread and their size. N counts the values of both, Clusters those of the smaller one.
func Unpaired(a, b []float64) Interval {
	x, y := momentsOf(a), momentsOf(b)
	out := Interval{Mean: y.mean - x.mean, N: len(a) + len(b), Clusters: min(len(a), len(b))}
	out.Low, out.High = out.Mean, out.Mean
	if len(a) < 2 || len(b) < 2 {
		return out
	}
	out.Basis = OverSessions
	u, v := x.variance/x.n, y.variance/y.n
	if u+v == 0 {
		return out
	}
	// Welch and Satterthwaite's degrees of freedom, never more than both have.
	freedom := (u + v) * (u + v) / (u*u/(x.n-1) + v*v/(y.n-1))
	half := quantile975(int(freedom)) * math.Sqrt(u+v)
	out.Low, out.High = out.Mean-half, out.Mean+half
	return out
}

type moments struct{ n, mean, variance float64 }

func momentsOf(values []float64) moments {
	m := moments{n: float64(len(values))}
	if m.n == 0 {
		return m
	}
	for _, v := range values {
		m.mean += v
	}
	m.mean /= m.n
	for _, v := range values {
		m.variance += (v - m.mean) * (v - m.mean)
	}
	m.variance /= max(m.n-1, 1)
	return m
}
