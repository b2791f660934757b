//go:build unix

package sqlite_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of all processors, 0 where that is not known.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
