package openbrain

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
)

const (
	// readStep is how much of a body is read before it is counted.
	readStep = 64 << 10
	// bodiesHeld is how many of the largest bodies have room in memory while they arrive and are worked on, all requests together.
	bodiesHeld = 16
)

// receive reads a request's body, as a whole, before the request takes its turn. What all requests hold together is bounded. The caller calls free when the
// body is not needed any more.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) (received io.ReadCloser, free func(), err error) {
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return http.NoBody, func() {}, nil
	}
	held := int64(0)
	release := func() { s.held.Add(-held) }
	defer func() {
		if err != nil {
			release()
		}
	}()
	var b bytes.Buffer
	body := http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	for {
		n, err := io.CopyN(&b, body, readStep)
		held += n
		if s.held.Add(n) > bodiesHeld*s.cfg.MaxBody {
			return nil, nil, &refusal{status: http.StatusServiceUnavailable, detail: "Too many requests at the same time", retryAfter: 1}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			return io.NopCloser(&b), release, nil
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
