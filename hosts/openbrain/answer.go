package openbrain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// refusal is an error that is answered to the client. Its text is made of our own words, never of what was sent.
type refusal struct {
	status int
	detail any
	// retryAfter is in seconds; 0 says nothing.
	retryAfter int
}

func (r *refusal) Error() string { return fmt.Sprintf("openbrain: refused with %d", r.status) }

func refuse(status int, detail string) *refusal { return &refusal{status: status, detail: detail} }

// problem is one element of a 422 answer.
type problem struct {
	Type string `json:"type"`
	// Loc is where: "body" or "query", and the field.
	Loc []any  `json:"loc"`
	Msg string `json:"msg"`
}

func unprocessable(problems ...problem) *refusal {
	return &refusal{status: http.StatusUnprocessableEntity, detail: problems}
}

func bodyProblem(kind, field, msg string) problem {
	loc := []any{"body"}
	if field != "" {
		loc = append(loc, field)
	}
	return problem{Type: kind, Loc: loc, Msg: msg}
}

func queryProblem(kind, field, msg string) problem {
	return problem{Type: kind, Loc: []any{"query", field}, Msg: msg}
}

var (
	errNoThought = refuse(http.StatusNotFound, "Thought not found")
	errSource    = refuse(http.StatusForbidden, "Not allowed for this source")
)

// statusClosed is logged when the client went away before there was an answer.
const statusClosed = 499

// refusalOf turns any error into an answer. logged says that the operator should see the cause.
func refusalOf(ctx context.Context, err error) (r *refusal, logged bool) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &r):
		return r, false
	case errors.As(err, &tooLarge):
		return refuse(http.StatusRequestEntityTooLarge, "Request body too large"), false
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, errGone):
		return refuse(statusClosed, "Client closed the request"), false
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusServiceUnavailable, detail: "Timed out", retryAfter: 1}, true
	case errors.Is(err, core.ErrNotFound):
		return errNoThought, false
	case errors.Is(err, core.ErrConflict):
		return refuse(http.StatusConflict, "Conflict"), true
	case errors.Is(err, core.ErrInvalid):
		return refuse(http.StatusUnprocessableEntity, "The store refused the thought"), true
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed):
		return &refusal{status: http.StatusServiceUnavailable, detail: "The store is not available", retryAfter: 1}, true
	case errors.Is(err, errors.ErrUnsupported):
		return refuse(http.StatusNotImplemented, "The store does not offer this"), true
	}
	return refuse(http.StatusInternalServerError, "Internal Server Error"), true
}

// write sends the refusal.
func (r *refusal) write(w http.ResponseWriter) {
	if r.status == statusClosed {
		w.WriteHeader(statusClosed)
		return
	}
	if r.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if r.retryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(r.retryAfter))
	}
	_ = answer(w, r.status, map[string]any{"detail": r.detail}) // strings and numbers
}

// answer writes v as JSON. What cannot be encoded is an error, and nothing is written.
func answer(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("openbrain: encode answer: %w", err)
	}
	answerHeader(w.Header())
	w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client is gone when this fails
	return nil
}

// answerHeader sets what every answer says.
func answerHeader(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
