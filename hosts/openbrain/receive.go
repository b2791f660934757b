package openbrain

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// readStep is how much of a body is read before it is counted.
	readStep = 64 << 10
	// firstStep is readStep for the beginning of a small body.
	firstStep = 4 << 10
	// bodiesHeld is how many of the largest bodies have room in memory while they arrive and are worked on, all requests together.
	bodiesHeld = 16
)

// receive reads a request's body, as a whole, before the request takes its turn. What all requests hold together is bounded, see intake. The caller calls free
// when the body is not needed any more.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, who *caller) (received io.ReadCloser, free func(), err error) {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return http.NoBody, func() {}, nil
	}
	a := s.bodies.begin(who.name, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now()) })
	end := func() { s.bodies.end(a) }
	defer func() {
		if err != nil {
			end()
		}
	}()
	var blocks net.Buffers // as they came: one piece that grows would be in memory several times
	body := http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	for {
		step := readStep
		if blocks == nil && r.ContentLength < firstStep {
			step = firstStep
		}
		block, n := make([]byte, step), 0
		var err error
		for n < len(block) && err == nil {
			var more int
			more, err = body.Read(block[n:])
			n += more
		}
		blocks = append(blocks, block[:n])
		whole := errors.Is(err, io.EOF)
		if !s.bodies.grow(a, n, whole) {
			return nil, nil, &refusal{status: http.StatusServiceUnavailable, detail: "Too many requests at the same time", retryAfter: 1}
		}
		switch {
		case err == nil:
			continue
		case whole:
			return io.NopCloser(&blocks), end, nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil, refuse(http.StatusRequestTimeout, "Request body took too long")
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, nil, err
		}
		if err := r.Context().Err(); err != nil {
			return nil, nil, err
		}
		return nil, nil, refuse(http.StatusBadRequest, "Request body is incomplete")
	}
}
