package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/wcharczuk/go-chart/v2"
)

// niceAxis covers lo to hi with about n round steps.
func niceAxis(lo, hi float64, n int) axis {
	if !(hi > lo) {
		lo, hi = lo-0.5, lo+0.5
	}
	step := roundStep((hi-lo)/float64(max(n, 1)), 1, 2, 2.5, 5)
	first, last := math.Floor(lo/step), math.Ceil(hi/step)
	a := axis{min: first * step, max: last * step}
	for k := first; k <= last; k++ {
		v := k * step
		a.ticks = append(a.ticks, chart.Tick{Value: v, Label: short(v)})
	}
	return a
}

// short is a number as an axis shows it: 1.5k, 20k, 3M.
func short(v float64) string {
	abs, suffix := math.Abs(v), ""
	switch {
	case abs >= 1e6:
		v, suffix = v/1e6, "M"
	case abs >= 1e4 || (abs >= 1000 && math.Mod(abs, 100) == 0):
		v, suffix = v/1e3, "k"
	}
	v = math.Round(v*1000) / 1000
	return strconv.FormatFloat(v, 'f', -1, 64) + suffix
}

// roundStep is the smallest of the factors, times a power of ten, that is not below raw; the last resort is the next power of ten.
func roundStep(raw float64, factors ...float64) float64 {
	mag := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range factors {
		if f*mag >= raw*0.999 {
			return f * mag
		}
	}
	return 10 * mag
}

// perLabel is how many pixels a label below an axis takes.
const perLabel = 46

// valueAxis has a tick at each of the values where there is room for all of them, and at round numbers otherwise. translate is what values become on
// the axis; log says that it is their logarithm.
func valueAxis(values []float64, room int, log bool, translate func(float64) float64) axis {
	slices.Sort(values)
	values = slices.Compact(values)
	lo, hi := values[0], values[len(values)-1]
	a := axis{min: translate(lo), max: translate(hi)}
	if a.max <= a.min {
		a.min, a.max = a.min-0.5, a.max+0.5
	}
	ticks, all := a.spaced(values, room, translate)
	if !all {
		ticks, _ = a.spaced(roundNumbers(lo, hi, room/perLabel, log), room, translate)
	}
	a.ticks = ticks
	// The library takes an axis's ends from its ticks.
	if len(a.ticks) == 0 || a.ticks[len(a.ticks)-1].Value < a.max {
		a.ticks = append(a.ticks, chart.Tick{Value: a.max})
	}
	if a.ticks[0].Value > a.min {
		a.ticks = append([]chart.Tick{{Value: a.min}}, a.ticks...)
	}
	return a
}

// spaced labels values as far as there is room, and reports whether there was room for all.
func (a axis) spaced(values []float64, room int, translate func(float64) float64) (ticks []chart.Tick, all bool) {
	last := math.Inf(-1)
	for _, v := range values {
		if at := (translate(v) - a.min) / (a.max - a.min) * float64(room); at-last >= perLabel {
			ticks, last = append(ticks, chart.Tick{Value: translate(v), Label: short(v)}), at
		}
	}
	return ticks, len(ticks) == len(values)
}

// roundNumbers are those from lo to hi: about n of them, or one, two and five of every decade.
func roundNumbers(lo, hi float64, n int, log bool) []float64 {
	var out []float64
	if !log {
		step := roundStep((hi-lo)/float64(max(n, 1)), 1, 2, 5)
		for k := math.Ceil(lo / step); k*step <= hi; k++ {
			out = append(out, k*step)
		}
		return out
	}
	for decade := math.Pow(10, math.Floor(math.Log10(lo))); decade <= hi; decade *= 10 {
		for _, f := range []float64{1, 2, 5} {
			if v := f * decade; v >= lo && v <= hi {
				out = append(out, v)
			}
		}
	}
	return out
}
