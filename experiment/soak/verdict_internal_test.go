package soak

import (
	"math"
	"slices"
	"testing"
	"time"
)

// made returns a report of ten samples, one for each tenth of the time, changed by change.
func made(change func(at int, s *Sample)) Report {
	r := Report{Time: 10 * time.Second, Before: Sample{Goroutines: 5, Handles: 5}, After: Sample{Goroutines: 5, Handles: 5}}
	for at := 1; at <= 10; at++ {
		s := Sample{At: float64(at), Heap: 100 << 20, Resident: 300 << 20, Goroutines: 100, Handles: 20, assemble: new(counts), store: new(counts)}
		s.assemble[100], s.store[100] = 1000, 1000
		change(at, &s)
		r.Samples = append(r.Samples, s)
	}
	r.judge()
	return r
}

func TestJudge(t *testing.T) {
	last := func(f func(*Sample)) func(int, *Sample) {
		return func(at int, s *Sample) {
			if at == 10 {
				f(s)
			}
		}
	}
	rows := []struct {
		name   string
		change func(int, *Sample)
		want   []string
	}{
		{"flat", func(int, *Sample) {}, nil},
		{"the first tenth does not count", func(at int, s *Sample) {
			if at == 1 {
				s.Heap, s.Goroutines = 1, 1
			}
		}, nil},
		{"heap within 5 %", last(func(s *Sample) { s.Heap = 104 << 20 }), nil},
		{"heap beyond 5 %", last(func(s *Sample) { s.Heap = 107 << 20 }), []string{FoundMemory}},
		{"resident within bounds", last(func(s *Sample) { s.Resident = 340 << 20 }), nil},
		{"resident beyond them", last(func(s *Sample) { s.Resident = 350 << 20 }), []string{FoundResident}},
		{"resident is not known", func(at int, s *Sample) { s.Resident, s.Handles = -1, -1 }, nil},
		{"goroutines", last(func(s *Sample) { s.Goroutines = 117 }), []string{FoundGoroutines}},
		{"handles", last(func(s *Sample) { s.Handles = 29 }), []string{FoundHandles}},
		{"errors", last(func(s *Sample) { s.Errors = 1 }), []string{FoundErrors}},
		{"slower assemble", last(func(s *Sample) { s.assemble[250] = 20 }), []string{FoundLatency}},
		{"slower store", last(func(s *Sample) { s.store[250] = 20 }), []string{FoundLatency}},
		{"one slow call of a thousand", last(func(s *Sample) { s.assemble[250] = 1 }), nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var got []string
			for _, f := range made(r.change).Findings {
				got = append(got, f.What)
			}
			if !slices.Equal(got, r.want) {
				t.Errorf("found %q, want %q", got, r.want)
			}
		})
	}
	short := Report{Time: time.Second}
	short.judge()
	if len(short.Findings) != 1 || short.Findings[0].What != FoundTooShort {
		t.Errorf("without samples found %v, want %q", short.Findings, FoundTooShort)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	h.add(0)
	h.add(1 << 62)
	c := h.take()
	for q, want := range map[float64]float64{0.5: 500, 0.99: 991} {
		if got := c.quantile(q); math.Abs(got-want) > 0.06*want {
			t.Errorf("quantile %v = %.1f ms, want about %v", q, got, want)
		}
	}
	if h.take().quantile(0.5) != 0 {
		t.Error("taking did not empty the histogram")
	}
}
