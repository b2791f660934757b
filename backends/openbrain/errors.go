package openbrain

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-resty/resty/v2"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// failure is why one request did not do what it should. Its text is made of our own words and numbers only: what a
// server sends back may repeat the content or the key.
type failure struct {
	// what says what happened; status is 0 when there was no answer.
	what   string
	status int
	// kind is the sentinel callers see.
	kind error
	// retry says that the same request may succeed later.
	retry bool
	// doubt says that the server may have done what it was asked to.
	doubt bool
	// wait is how long the server asked to be left alone, in the form it said it.
	wait string
	// limit says that a smaller page may be accepted, and most how large it may be, 0 when the server did not say.
	limit bool
	most  int
	// extra says that a field of the request may be what the server did not like: it said so, or did not say what it was.
	extra bool
}

func (f *failure) Error() string { return f.what + ": " + f.kind.Error() }

// RetryAfter is how long the server asked to be left alone when the last try failed; 0 when it did not ask. Decorators look for it.
func (f *failure) RetryAfter() time.Duration {
	d, _ := endpoint.RetryAfter(f.wait, time.Now())
	return max(d, 0)
}

// Unwrap returns the sentinel.
func (f *failure) Unwrap() error { return f.kind }

// smaller returns the next limit to try.
func (f *failure) smaller(limit int) int {
	if f.most > 0 && f.most < limit {
		return f.most
	}
	// Where servers do not say it, their bound is most likely one of these.
	for _, usual := range []int{100, 50, 20} {
		if limit > usual && limit <= 2*usual+usual/2 {
			return usual
		}
	}
	return (limit + 1) / 2
}

// statusFailure classifies an answer that is not 2xx. sent is the request's body.
func statusFailure(status int, header http.Header, body, sent []byte, key string) *failure {
	f := &failure{what: fmt.Sprintf("server answered %d", status), status: status, kind: core.ErrUnavailable}
	switch {
	case status >= 300 && status < 400:
		f.what = fmt.Sprintf("server answered %d, a redirect, and redirects are not followed: set baseUrl to the final address", status)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.kind = core.ErrAuth
		// The word before a colon is taken for the name of a secret by programs that clean logs, and what follows for the secret.
		f.what += " and does not accept the apiKey that is configured"
	case status == http.StatusNotFound:
		f.kind = core.ErrNotFound
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		f.kind = errors.ErrUnsupported
	case status == http.StatusConflict:
		f.kind = core.ErrConflict
		f.doubt = true // a try before this one may be what it is in conflict with
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		f.retry, f.doubt = true, true
	case status == http.StatusTooManyRequests:
		f.retry, f.wait = true, header.Get("Retry-After")
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		f.kind, f.limit = core.ErrInvalid, true
		d := readRefusal(body, sent, key)
		f.most, f.extra = d.most, status != http.StatusRequestEntityTooLarge && (d.extra || d.text == "")
		switch {
		case d.text != "":
			f.what += ": " + d.text
		case status == http.StatusRequestEntityTooLarge && len(sent) > 0:
			f.what += fmt.Sprintf(": %d bytes are more than it takes in one request; raise the server's limit", len(sent))
		}
	case status >= 500:
		f.retry, f.doubt, f.wait = true, true, header.Get("Retry-After")
	}
	return f
}

// transportFailure classifies a request that got no usable answer.
func transportFailure(err error) *failure {
	f := &failure{what: endpoint.Describe(err), kind: core.ErrUnavailable, retry: true, doubt: true}
	switch {
	case errors.Is(err, resty.ErrResponseBodyTooLarge):
		f.what, f.retry, f.limit = "answer is too large", false, true
	case endpoint.NotSent(err):
		f.doubt = false
	}
	return f
}

// garbage is a 2xx answer that is not what the interface promises.
func garbage(status int, what string) *failure {
	return &failure{
		what: fmt.Sprintf("server answered %d with %s", status, what), status: status,
		kind: core.ErrUnavailable, retry: true, doubt: true,
	}
}

// lacks reports whether err says that the server does not have the call at all.
func lacks(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.status == http.StatusNotFound || errors.Is(f.kind, errors.ErrUnsupported))
}

// isStatus reports whether err is an answer with this status.
func isStatus(err error, status int) bool {
	var f *failure
	return errors.As(err, &f) && f.status == status
}

// tooMuch reports whether err may go away with a smaller limit.
func tooMuch(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.limit
}

// failed wraps the cause of a failed operation in the form all errors of this package have.
func failed(op, id string, cause error) error {
	if id == "" {
		return fmt.Errorf("openbrain: %s: %w", op, cause)
	}
	return fmt.Errorf("openbrain: %s %q: %w", op, id, cause)
}
