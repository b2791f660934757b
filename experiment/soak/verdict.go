package soak

import (
	"fmt"
	"math"
	"slices"
)

// What can be found.
const (
	FoundMemory     = "memory"     // the heap grew
	FoundResident   = "resident"   // what the process takes of the machine grew, although the heap did not
	FoundGoroutines = "goroutines" // their number grew, or some were left when the engine was closed
	FoundHandles    = "handles"    // open files and sockets: likewise
	FoundLatency    = "latency"    // the slowest calls became slower
	FoundErrors     = "errors"     // calls failed
	FoundTooShort   = "too short"  // there is too little to judge by
)

// Finding is something that is wrong.
type Finding struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// The bounds of the verdict. The second tenth of the time is compared with the last one: a minute each, of ten.
const (
	// heapShare is by how much the heap may grow, and heapSlack what it may grow in any case, in bytes: pools and maps breathe.
	heapShare, heapSlack = 0.05, 1 << 20
	// The resident set also depends on when memory is handed back.
	residentShare, residentSlack = 0.10, 16 << 20
	// slackGoroutines and slackHandles cover timers and connections that come and go; left is what may be there more than before when all is closed.
	slackGoroutines, slackHandles, left = 16, 8, 4
	// latencyShare is by how much the 99th percentile may grow, latencySlack what it may grow in any case, in milliseconds.
	latencyShare, latencySlack = 0.5, 2.0
)

// window adds up the samples of a part of the time.
type window struct {
	n                   int
	heap, resident      float64 // means
	goroutines, handles int     // the smallest: calls under way come and go, what leaks stays
	assemble, store     counts
}

// during returns the window of the samples with from < At <= to.
func (r *Report) during(from, to float64) window {
	var w window
	for _, s := range r.Samples {
		if s.At <= from || s.At > to+1e-9 {
			continue
		}
		w.n++
		w.heap += float64(s.Heap)
		w.resident += float64(s.Resident)
		if w.n == 1 {
			w.goroutines, w.handles = s.Goroutines, s.Handles
		}
		w.goroutines, w.handles = min(w.goroutines, s.Goroutines), min(w.handles, s.Handles)
		if s.assemble != nil {
			w.assemble.add(s.assemble)
			w.store.add(s.store)
		}
	}
	if w.n > 0 {
		w.heap /= float64(w.n)
		w.resident /= float64(w.n)
	}
	return w
}

func (r *Report) has(what string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.What == what })
}

// judge compares the second tenth of the time with the last.
func (r *Report) judge() {
	add := func(what, format string, args ...any) {
		r.Findings = append(r.Findings, Finding{what, fmt.Sprintf(format, args...)})
	}
	failed := int64(0)
	for _, s := range r.Samples {
		failed += s.Errors
	}
	if failed > 0 {
		add(FoundErrors, "%d calls failed", failed)
	}
	total := r.Time.Seconds()
	if n := len(r.Samples); n > 0 {
		total = math.Max(total, r.Samples[n-1].At)
	}
	a, b := r.during(0.1*total, 0.2*total), r.during(0.9*total, total)
	if a.n == 0 || b.n == 0 {
		add(FoundTooShort, "no samples in the second or the last tenth of the time")
		return
	}
	if grown := b.heap - a.heap; grown > heapShare*a.heap+heapSlack {
		add(FoundMemory, "the heap grew from %.1f to %.1f MiB, by %.1f %%", a.heap/(1<<20), b.heap/(1<<20), 100*grown/a.heap)
	}
	if grown := b.resident - a.resident; !r.has(FoundMemory) && a.resident > 0 && grown > residentShare*a.resident+residentSlack {
		add(FoundResident, "the resident set grew from %.1f to %.1f MiB, by %.1f %%", a.resident/(1<<20), b.resident/(1<<20), 100*grown/a.resident)
	}
	number := func(what string, before, then, now, after, slack int) {
		if then < 0 {
			return
		}
		if now > then+slack {
			add(what, "%d in the second tenth of the time, %d in the last", then, now)
		} else if after > before+left {
			add(what, "%d before the engine was opened, %d after it was closed", before, after)
		}
	}
	number(FoundGoroutines, r.Before.Goroutines, a.goroutines, b.goroutines, r.After.Goroutines, slackGoroutines)
	number(FoundHandles, r.Before.Handles, a.handles, b.handles, r.After.Handles, slackHandles)
	for _, l := range []struct {
		name string
		a, b *counts
	}{{"assemble", &a.assemble, &b.assemble}, {"store", &a.store, &b.store}} {
		if then, now := l.a.quantile(0.99), l.b.quantile(0.99); then > 0 && now > (1+latencyShare)*then+latencySlack {
			add(FoundLatency, "%s: the 99th percentile grew from %.2f to %.2f ms", l.name, then, now)
		}
	}
}
