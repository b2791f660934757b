// Package cputime measures processor time, which says the same on a busy machine as on an idle one. It serves benchmarks.
//
//	begun := cputime.Used(b)
//	...
//	b.ReportMetric((cputime.Used(b) - begun).Seconds(), "cpu-s")
package cputime

import (
	"testing"
	"time"
)

// Used returns the processor time that this process has used so far, in all of its threads and in the system for it, garbage collection too. A
// system that does not say ends the test.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	d, err := used()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
