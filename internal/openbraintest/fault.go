package openbraintest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault makes some requests fail.
type Fault struct {
	// Method and Path select requests; empty ones match all. Path matches its beginning, and all of it when it begins with "=".
	Method, Path string
	// Skip is the number of matching requests that pass before, Times the number that fail: 0 means one, -1 all.
	Skip, Times int
	// Do answers instead of the server.
	Do Action
}

// Action answers a request, or breaks the connection. serve is what the server would have done.
type Action func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)

// Inject adds a fault. Where several match a request, the oldest has it.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// fault returns what to do with a request, nil to serve it.
func (s *Server) fault(r *http.Request) Action {
	for i, f := range s.faults {
		path, whole := strings.CutPrefix(f.Path, "=")
		if (f.Method != "" && f.Method != r.Method) || !strings.HasPrefix(r.URL.Path, path) || (whole && r.URL.Path != path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		return f.Do
	}
	return nil
}

// Status answers with a status, a content type and a body. header holds names and values in turn.
func Status(status int, contentType, body string, header ...string) Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Redirect answers with a redirect to the same path on another host.
func Redirect(status int, base string) Action {
	return func(w http.ResponseWriter, r *http.Request, _ http.HandlerFunc) {
		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(status)
	}
}

// Reset breaks the connection without an answer.
func Reset(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		abort(conn)
	}
}

// ResetMidBody begins an answer and breaks the connection before its end.
func ResetMidBody(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = fmt.Fprint(buf, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"thoughts\": [")
	_ = buf.Flush()
	abort(conn)
}

func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Stall answers nothing until the client gives up or the server stops.
func Stall(_ http.ResponseWriter, r *http.Request, _ http.HandlerFunc) { <-r.Context().Done() }

// Slow answers as the server would, after d.
func Slow(d time.Duration) Action {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		wait := time.NewTimer(d)
		defer wait.Stop()
		select {
		case <-wait.C:
			serve(w, r)
		case <-r.Context().Done():
		}
	}
}

// TooMany answers 429, and asks to be left alone for that many seconds.
func TooMany(seconds int) Action {
	return Status(http.StatusTooManyRequests, "application/json", `{"detail":"Too many requests"}`, "Retry-After", strconv.Itoa(seconds))
}

// Broken answers 500 as an unhandled exception does.
func Broken(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
	Status(http.StatusInternalServerError, "text/plain", "Internal Server Error")(w, r, serve)
}

// Then lets the server do what it was asked to, throws the answer away, and does then instead: the client cannot know.
func Then(then Action) Action {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		serve(httptest.NewRecorder(), r)
		then(w, r, serve)
	}
}

// Late keeps requests that were sent and hands them to the server when Deliver is called: a proxy that gave up on them had passed them
// on.
type Late struct {
	mu   sync.Mutex
	held []func()
}

// Hold returns an action that keeps the request and does then instead.
func (l *Late) Hold(then Action) Action {
	return func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc) {
		kept := r.Clone(context.WithoutCancel(r.Context()))
		l.mu.Lock()
		l.held = append(l.held, func() { serve(httptest.NewRecorder(), kept) })
		l.mu.Unlock()
		then(w, r, serve)
	}
}

// Deliver hands over what was kept, the last first, and returns how much that was.
func (l *Late) Deliver() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range slices.Backward(l.held) {
		f()
	}
	n := len(l.held)
	l.held = nil
	return n
}

// TooLarge returns the 422 body for a limit above the largest.
func TooLarge(limit, most int) any {
	return map[string]any{"detail": []any{map[string]any{
		"type": "less_than_equal", "loc": []any{"query", "limit"}, "msg": "Input should be less than or equal to " + strconv.Itoa(most),
		"input": strconv.Itoa(limit), "ctx": map[string]any{"le": most},
	}}}
}

// Validation returns a 422 body as FastAPI makes it, with the input echoed.
func Validation(loc []any, msg string, input any) any {
	return map[string]any{"detail": []any{map[string]any{"type": "value_error", "loc": loc, "msg": msg, "input": input}}}
}
