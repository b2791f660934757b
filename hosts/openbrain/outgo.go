package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// answersHeld is how many of the largest bodies have room in memory as answers on their way, all requests together.
	answersHeld = 8
	// answersLeast is what answers may hold however small the largest body is, in bytes: a list holds maxRead.
	answersLeast = 64 << 20
	// readers is how many read thoughts for their answers at the same time. What a read brings is counted before the next one begins.
	readers = 4
	// writeStep is how much of an answer is given to the connection at a time.
	writeStep = 64 << 10
)

var (
	// errGone is the error when the client does not take the answer any more.
	errGone = errors.New("openbrain: the client is gone")
	// errFull is the error when answers hold as much memory as they may.
	errFull = &refusal{status: http.StatusServiceUnavailable, detail: "Too many requests at the same time", retryAfter: 1}
)

// recorder is an answer on its way. It notes what was answered, and ends the connection of a client that takes nothing.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64

	// held is what the answer holds in memory, among all answers.
	answers *intake
	held    *arrival
	// stall is how long a step may take; until is when all of the answer must be gone.
	stall time.Duration
	until time.Time
	// end is the time that the last step has.
	end time.Time
	// cut says why the connection was ended.
	cut string
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (n int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for n < len(b) && err == nil {
		if err = w.step(); err == nil {
			var some int
			some, err = w.ResponseWriter.Write(b[n:min(n+writeStep, len(b))])
			n, w.bytes = n+some, w.bytes+int64(some)
		}
	}
	if err == nil {
		return n, nil
	}
	switch {
	case w.cut != "":
	case !w.answers.moves(w.held, func() {}):
		w.cut = "the client was slow, and others needed the room in memory"
	case !time.Now().Before(w.end):
		w.cut = fmt.Sprintf("the client took nothing for %v, or not all in time", w.stall)
	}
	return n, errors.Join(errGone, err)
}

// step gives the client time to take more. An answer that made room for others gets none.
func (w *recorder) step() error {
	w.end = time.Now().Add(w.stall)
	if w.end.After(w.until) {
		w.end = w.until
	}
	if !w.answers.moves(w.held, func() { _ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.end) }) {
		return errGone
	}
	return nil
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// read calls f, which reads something for the answer, when it is its turn, and counts the bytes more, or less, that the answer holds then.
func (s *Server) read(ctx context.Context, w *recorder, f func() (more int, err error)) error {
	select {
	case s.reads <- struct{}{}:
		defer func() { <-s.reads }()
	case <-ctx.Done():
		return ctx.Err()
	}
	more, err := f()
	if err == nil && !s.answers.grow(w.held, more, false) {
		err = errFull
	}
	return err
}
