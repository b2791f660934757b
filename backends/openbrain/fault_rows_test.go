package openbrain_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/openbraintest"
)

// What must never be seen in an error or a log: the text of what is written, of what was asked, of what is stored, and of others.
const (
	writtenText = "the-content-nobody-may-quote in an error"
	askedText   = "the-question-nobody-may-quote word1"
	storedText  = "the-stored-text-nobody-may-quote"
	foreignText = "the-notes-nobody-may-quote"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fault is something that goes wrong with a request, and what a caller must be able to tell.
type fault struct {
	name string
	do   openbraintest.Action
	// down stops the server, restart stops and starts it, before the request is tried again.
	down, restart bool
	// skip is the number of requests of the kind that pass before the first that meets the fault: those of a batch.
	skip int
	// want is the error when it lasts, text a part of it.
	want error
	text string
	// passes says that a retry helps; wait is how long the client then waits, 0 for its own choice.
	passes bool
	wait   time.Duration
	// slow needs a short timeout; stored says that the server did what it was asked to; gone that it says a thought is.
	slow, stored, gone bool
	// late holds requests that reach the server when all is over.
	late *openbraintest.Late
}

// faults are the rows of the table. leak is in all bodies.
func faults(key string) []fault {
	leak := writtenText + " " + askedText + " " + storedText + " " + foreignText + " " + key
	quoted := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	echo := quoted(openbraintest.Validation([]any{"body", "content", 3}, "Value error, bad "+leak, leak))
	own := quoted(openbraintest.Validation([]any{"body", storedText}, "The text is like "+storedText, leak))
	plain := quoted(openbraintest.Validation([]any{"body", "metadata", 0}, "Input should be shorter", leak))
	detail, problem := quoted(map[string]any{"detail": leak}), quoted(map[string]any{"type": "about:blank", "title": leak, "detail": leak})
	reason := quoted(map[string]any{"error": leak, "detail": leak})
	const asJSON, asText, asHTML = "application/json", "text/plain", "text/html"
	status := openbraintest.Status
	refused := func(name string, code int, kind, body string, want error, text string) fault {
		return fault{name: name, do: status(code, kind, body), want: want, text: text}
	}
	broken := func(name string, do openbraintest.Action, text string) fault {
		return fault{name: name, do: do, want: core.ErrUnavailable, text: text, passes: true}
	}
	rows := []fault{
		{name: "connection refused", down: true, want: core.ErrUnavailable, text: "connection refused", passes: true},
		broken("reset", openbraintest.Reset, "connection"),
		broken("reset mid-body", openbraintest.ResetMidBody, "connection"),
		{name: "stall", do: openbraintest.Stall, want: core.ErrUnavailable, text: "timed out", passes: true, slow: true},
		refused("401", 401, asJSON, detail, core.ErrAuth, "apiKey"),
		refused("403", 403, asJSON, detail, core.ErrAuth, "apiKey"),
		{name: "404", do: status(404, asJSON, detail), want: errors.ErrUnsupported, gone: true},
		{name: "404, other words", do: status(404, asJSON, reason), want: errors.ErrUnsupported, gone: true},
		refused("405", 405, asJSON, detail, errors.ErrUnsupported, "does not offer"),
		refused("409", 409, "application/problem+json", problem, core.ErrConflict, "409"),
		refused("413", 413, asHTML, "<html>"+leak, core.ErrInvalid, "413"),
		refused("422 that quotes", 422, asJSON, echo, core.ErrInvalid, "body.content.3: Value error"),
		refused("422 that quotes what is stored", 422, asJSON, own, core.ErrInvalid, "body.?: refused"),
		refused("422", 422, asJSON, plain, core.ErrInvalid, "body.metadata.0: Input should be shorter"),
		refused("400", 400, asJSON, detail, core.ErrInvalid, "400"),
		broken("500 text", status(500, asText, "Internal Server Error "+leak), "500"),
		broken("502 html", status(502, asHTML, "<html>"+leak), "502"),
		broken("502 with reason", status(502, asJSON, reason), "502"),
		broken("200 garbage", status(200, asHTML, "<html>"+leak), "200"),
		broken("200 half", status(200, asJSON, `{"id": "x`), "200"),
		broken("stored, then reset", openbraintest.Then(openbraintest.Reset), ""),
		broken("stored, then reset mid-body", openbraintest.Then(openbraintest.ResetMidBody), ""),
		broken("stored, then 504", openbraintest.Then(status(504, asHTML, "<html>"+leak)), ""),
		broken("stored, then garbage", openbraintest.Then(status(200, asHTML, "<html>"+leak)), ""),
		{name: "stored, then stall", do: openbraintest.Then(openbraintest.Stall), want: core.ErrUnavailable, passes: true, slow: true},
		{name: "restart", do: openbraintest.Reset, restart: true, want: core.ErrUnavailable, passes: true},
		{name: "restart in the middle of a batch", do: openbraintest.Reset, restart: true, skip: 1, want: core.ErrUnavailable, passes: true},
		{name: "restart at the end of a batch", do: openbraintest.Then(openbraintest.Reset), restart: true, skip: 2, want: core.ErrUnavailable, passes: true},
		{name: "half a batch", do: status(503, asText, leak), skip: 1, want: core.ErrUnavailable, passes: true},
		{name: "half a batch refused", do: status(413, asText, leak), skip: 2, want: core.ErrInvalid},
	}
	for _, x := range []struct {
		name, after string
		wait        time.Duration
	}{
		{"seconds", "3", 3 * time.Second},
		{"date", now.Add(7 * time.Second).Format(http.TimeFormat), 7 * time.Second},
		{"a day", "86400", 30 * time.Second},
		{"a far date", now.AddDate(1, 0, 0).Format(http.TimeFormat), 30 * time.Second},
		{"a past date", now.AddDate(-1, 0, 0).Format(http.TimeFormat), 0},
		{"nonsense", "soon", 0},
	} {
		for _, code := range []int{429, 503} {
			rows = append(rows, fault{
				name: http.StatusText(code) + ", " + x.name, do: status(code, asText, leak, "Retry-After", x.after),
				want: core.ErrUnavailable, text: "server answered", passes: true, wait: x.wait,
			})
		}
	}
	for _, then := range []openbraintest.Action{openbraintest.Reset, status(504, asHTML, "<html>")} {
		late := &openbraintest.Late{}
		rows = append(rows, fault{name: "arrives late", do: late.Hold(then), want: core.ErrUnavailable, passes: true, late: late})
	}
	for i := range rows {
		rows[i].stored = len(rows[i].name) > 6 && rows[i].name[:6] == "stored" || rows[i].name == "restart at the end of a batch"
	}
	return rows
}
