package cputime

import (
	"syscall"
	"time"
)

func used() (time.Duration, error) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var began, ended, kernel, user syscall.Filetime
	err = syscall.GetProcessTimes(self, &began, &ended, &kernel, &user)
	return span(kernel) + span(user), err
}

// span reads a length of time, which is counted in steps of 100 ns.
func span(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
