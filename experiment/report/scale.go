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
	raw := (hi - lo) / float64(max(n, 1))
	mag := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * mag
	for _, f := range []float64{1, 2, 2.5, 5} {
		if f*mag >= raw*0.999 {
			step = f * mag
			break
		}
	}
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

// valueAxis has a tick at each of the values, as far as there is room, and at round numbers otherwise. translate is what values become on
// the axis.
func valueAxis(values []float64, room int, translate func(float64) float64) axis {
	slices.Sort(values)
	values = slices.Compact(values)
	a := axis{min: translate(values[0]), max: translate(values[len(values)-1])}
	if a.max <= a.min {
		a.min, a.max = a.min-0.5, a.max+0.5
	}
	const perLabel = 46
	last := math.Inf(-1)
	for _, v := range values {
		at := (translate(v) - a.min) / (a.max - a.min) * float64(room)
		if at-last >= perLabel {
			a.ticks = append(a.ticks, chart.Tick{Value: translate(v), Label: short(v)})
			last = at
		}
	}
	// The library takes an axis's ends from its ticks.
	if end := a.ticks[len(a.ticks)-1].Value; end < a.max {
		a.ticks = append(a.ticks, chart.Tick{Value: a.max})
	}
	if a.ticks[0].Value > a.min {
		a.ticks = append([]chart.Tick{{Value: a.min}}, a.ticks...)
	}
	return a
}
