package stats

import (
	"math"
	"strconv"
)

// Verdict says in words what a difference of shares (b minus a) means, in points of a hundred:
//
//	B better by 3.1 points, 95 % 1.2 to 5.0
//	A better by 0.8 points, 95 % 0.1 to 1.5
//	no difference shown (0.4 points, 95 % -0.9 to 1.7)
//	no difference: the same on every question
func Verdict(a, b string, d Interval) string {
	switch {
	case d.N == 0:
		return "nothing to compare"
	case d.Basis == "":
		return "too few questions to tell"
	case d.Mean == 0 && d.Low == 0 && d.High == 0:
		return "no difference: the same on every question"
	case !d.ExcludesZero():
		return "no difference shown (" + Points(d.Mean) + " points, 95 % " + Points(d.Low) + " to " + Points(d.High) + ")"
	case d.Mean > 0:
		return b + " better by " + Points(d.Mean) + " points, 95 % " + Points(d.Low) + " to " + Points(d.High)
	default:
		return a + " better by " + Points(-d.Mean) + " points, 95 % " + Points(-d.High) + " to " + Points(-d.Low)
	}
}

// Points writes a share in points of a hundred, with one decimal.
func Points(share float64) string {
	v := math.Round(1000*share) / 10
	if v == 0 {
		v = 0 // never "-0.0"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
