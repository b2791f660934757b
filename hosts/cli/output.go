package cli

import (
	"io"
	"sync"
)

// output is standard output. It remembers what could not be written: a command whose answer nobody got has not succeeded, whatever it looked at when it printed.
type output struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// Fd says which file it is, so that a terminal is recognised; what is no file is none.
func (o *output) Fd() uintptr {
	if f, ok := o.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// lost is the first error of a write.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
