package openbrain

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// handler answers one call. An error is answered by the caller; nothing must be written then.
type handler func(w *recorder, r *http.Request, who *caller) error

// route is what a path answers, by method.
type route struct {
	pattern string
	// open needs no key.
	open    bool
	methods map[string]handler
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range []route{
		{pattern: "/v1/thoughts", methods: map[string]handler{
			http.MethodPost: s.postThought, http.MethodGet: s.getThoughts, http.MethodDelete: s.deleteThoughts,
		}},
		{pattern: "/v1/thoughts/batch", methods: map[string]handler{http.MethodPost: s.postBatch}},
		{pattern: "/v1/thoughts/recent", methods: map[string]handler{http.MethodGet: s.getRecent}},
		{pattern: "/v1/thoughts/{id}", methods: map[string]handler{
			http.MethodGet: s.getThought, http.MethodPatch: s.patchThought, http.MethodDelete: s.deleteThought,
		}},
		{pattern: "/v1/changes", methods: map[string]handler{http.MethodGet: s.getChanges}},
		{pattern: "/v1/search", methods: map[string]handler{http.MethodPost: s.postSearch}},
		{pattern: "/v1/stats", methods: map[string]handler{http.MethodGet: s.getStats}},
		{pattern: "/healthz", open: true, methods: map[string]handler{http.MethodGet: s.getHealth}},
		{pattern: "/readyz", open: true, methods: map[string]handler{http.MethodGet: s.getReady}},
		{pattern: "/"}, // everything else
	} {
		if get := rt.methods[http.MethodGet]; get != nil {
			rt.methods[http.MethodHead] = get
		}
		mux.Handle(rt.pattern, s.serve(rt))
	}
	return mux
}

// serve is what every call goes through.
func (s *Server) serve(rt route) http.Handler {
	allow := strings.Join(slices.Sorted(maps.Keys(rt.methods)), ", ")
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		began := s.now()
		w := &recorder{ResponseWriter: out, answers: s.answers, stall: s.cfg.StallTimeout, until: time.Now().Add(s.cfg.WriteTimeout)}
		w.held = s.answers.begin("", func() { _ = http.NewResponseController(out).SetWriteDeadline(time.Now()) })
		defer s.answers.end(w.held)
		var who *caller
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					s.access(r, rt, w, who, s.now().Sub(began))
					panic(p) // net/http's own way to drop a connection
				}
				// What was panicked with may hold contents; where it happened does not.
				s.log.ErrorContext(r.Context(), "openbrain: a call panicked", slog.String("route", rt.pattern), slog.String("stack", string(debug.Stack())))
				if w.status == 0 {
					refuse(http.StatusInternalServerError, "Internal Server Error").write(w)
				}
			}
			s.access(r, rt, w, who, s.now().Sub(began))
		}()
		err := func() error {
			handle := rt.methods[r.Method]
			if s.keys.anyone != nil && !isLoopback(hostOf(r.Host)) {
				// Without keys, a web page whose name was made to point here must not get in.
				return refuse(http.StatusMisdirectedRequest, "This server has no keys and only answers on a loopback address")
			}
			if !rt.open {
				if who = s.keys.find(r.Context(), r.Header.Get("Authorization"), s.now()); who == nil {
					return refuse(http.StatusUnauthorized, "Not authenticated")
				}
				if wait, ok := who.bucket.take(s.now()); !ok {
					return &refusal{status: http.StatusTooManyRequests, detail: "Too many requests", retryAfter: max(wait, 1)}
				}
			}
			switch {
			case rt.methods == nil:
				return refuse(http.StatusNotFound, "Not Found")
			case handle == nil:
				w.Header().Set("Allow", allow)
				return refuse(http.StatusMethodNotAllowed, "Method Not Allowed")
			}
			if who != nil {
				s.answers.moves(w.held, func() { w.held.key = who.name })
			}
			// A turn is for work: whoever sends slowly takes nobody's.
			received, free, err := s.receive(w, r, who)
			if err != nil {
				return err
			}
			defer free()
			ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
			defer cancel()
			if !rt.open { // health is answered however busy the server is
				release, err := s.slot(ctx)
				if err != nil {
					return err
				}
				defer release()
			}
			timed := r.WithContext(ctx)
			timed.Body = received
			return handle(w, timed, who)
		}()
		if err == nil {
			return
		}
		refusal, logged := refusalOf(r.Context(), err)
		if logged {
			s.logFailure(r.Context(), rt.pattern, err)
		}
		if _, begun := errors.AsType[*broken](err); begun {
			if w.cut == "" && errors.Is(err, errFull) {
				w.cut = "answers hold as much memory as they may"
			}
			panic(http.ErrAbortHandler)
		}
		refusal.write(w)
	})
}

// slotWait is how long a request waits while the server works on as many as it may.
const slotWait = 2 * time.Second

// slot waits for its turn.
func (s *Server) slot(ctx context.Context) (release func(), err error) {
	release = func() { <-s.slots }
	select {
	case s.slots <- struct{}{}:
		return release, nil
	default:
	}
	timer := time.NewTimer(slotWait)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return release, nil
	case <-timer.C:
		return nil, &refusal{status: http.StatusServiceUnavailable, detail: "Too many requests at the same time", retryAfter: 1}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// access writes a line of the access log: who called what and how it went, and nothing that was said.
func (s *Server) access(r *http.Request, rt route, w *recorder, who *caller, took time.Duration) {
	level, name := slog.LevelInfo, ""
	if rt.open {
		level = slog.LevelDebug
	}
	if who != nil {
		name = who.name
	}
	method := r.Method
	switch method { // any other is the client's own text
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "OTHER"
	}
	s.log.LogAttrs(r.Context(), level, "request", slog.String("method", method), slog.String("route", rt.pattern),
		slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("duration", took), slog.String("key", name))
	if w.cut != "" {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "openbrain: an answer was cut off", slog.String("route", rt.pattern), slog.String("cause", w.cut), slog.String("key", name))
	}
}

func (s *Server) logFailure(ctx context.Context, route string, err error) {
	s.log.ErrorContext(ctx, "openbrain: a call failed", slog.String("route", route), slog.Any("error", err))
}
