package report

import (
	"math"
	"slices"
	"testing"
)

func labels(a axis) []string {
	var out []string
	for _, t := range a.ticks {
		if t.Label != "" {
			out = append(out, t.Label)
		}
	}
	return out
}

func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	var odd []float64
	for v := 137.0; v < 9000; v += 271 {
		odd = append(odd, v)
	}
	same := func(v float64) float64 { return v }
	for name, c := range map[string]struct {
		got  axis
		want []string
	}{
		"values with room":          {valueAxis([]float64{1000, 2000, 8000}, 900, true, math.Log2), []string{"1k", "2k", "8k"}},
		"values without":            {valueAxis(slices.Clone(odd), 260, false, same), []string{"2k", "4k", "6k", "8k"}},
		"values without, as powers": {valueAxis(slices.Clone(odd), 260, true, math.Log2), []string{"200", "500", "2k", "5k"}},
		"one value":                 {valueAxis([]float64{137}, 260, false, same), []string{"137"}},
		"two without":               {valueAxis([]float64{137, 139}, 40, false, same), []string{"138"}},
	} {
		if got := labels(c.got); !slices.Equal(got, c.want) {
			t.Errorf("%s: ticks %q, want %q", name, got, c.want)
		}
	}
	var calls []WindowCall
	for n := 1; n <= 48; n++ {
		calls = append(calls, WindowCall{Number: n})
	}
	if got, want := labels(make(callSums, 48).draw(calls, 340, 270).x), []string{"20", "40"}; !slices.Equal(got, want) {
		t.Errorf("ticks of 48 calls: %q, want %q", got, want)
	}
	if got, want := labels(make(callSums, 3).draw(calls[:3], 340, 270).x), []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("ticks of 3 calls: %q, want %q", got, want)
	}
}
