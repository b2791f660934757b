// Package waiting says on a terminal what a program is busy with, once that has lasted a second, and takes the line away when it is done.
//
//	done := waiting.Say(os.Stderr, "verifying the store")
//	defer done()
//
// What is no terminal gets nothing: neither a file nor a pipe shall hold lines that were meant for a moment.
package waiting

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Say shows what a program does, with the seconds it has lasted, until done is called. Nothing else may be written to the terminal meanwhile. done may be
// called more than once, by one goroutine.
func Say(w io.Writer, what string) (done func()) {
	if !Terminal(w) {
		return func() {}
	}
	return start(w, what)
}

// Terminal says whether somebody looks at what is written.
func Terminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr }) // an *os.File, or what stands for one
	return ok && term.IsTerminal(int(f.Fd()))
}

func start(w io.Writer, what string) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		line := ""
		for n := 1; ; n++ {
			select {
			case <-stop:
				if line != "" {
					fmt.Fprint(w, "\r"+strings.Repeat(" ", len(line))+"\r")
				}
				return
			case <-second.C:
				line = fmt.Sprintf("%s, %d s", what, n)
				fmt.Fprint(w, "\r"+line)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}
