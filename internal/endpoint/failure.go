package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Failure is a failed attempt in words of our own. Nothing of what the service said may get into it but numbers and codes from a fixed list, for a service
// may repeat the key or a text anywhere in its answer.
type Failure struct {
	// Text says what happened.
	Text string
	// Kind is one of core's sentinels.
	Kind error
	// Status is that of the answer, 0 where there was none.
	Status int
	// Retry says that the same request may succeed later.
	Retry bool
	// After is how long the service asked to wait, 0 where it did not.
	After time.Duration
}

// Error returns the text and the sentinel's.
func (f *Failure) Error() string { return f.Text + ": " + f.Kind.Error() }

// Unwrap returns the sentinel.
func (f *Failure) Unwrap() error { return f.Kind }

// Unavailable is a failure that may be over at the next attempt.
func Unavailable(text string) *Failure {
	return &Failure{Text: text, Kind: core.ErrUnavailable, Retry: true}
}

// Nonsense is an answer with a good status that cannot be used. Asking again at once would give the same.
func Nonsense(text string) *Failure {
	return &Failure{Text: "answer " + text, Kind: core.ErrUnavailable}
}

// StatusFailure classifies an answer with a bad status by what all services mean by it. The caller adds what its own means.
func StatusFailure(resp *http.Response, now time.Time) *Failure {
	status := resp.StatusCode
	f := &Failure{Text: fmt.Sprintf("status %d", status), Status: status, Kind: core.ErrInvalid}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.Kind = core.ErrAuth
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		f.TryLater(resp.Header, now)
	}
	return f
}

// TryLater makes f one that is retried, not before the time that the header asks for.
func (f *Failure) TryLater(header http.Header, now time.Time) {
	f.Kind, f.Retry = core.ErrUnavailable, true
	after, _ := RetryAfter(header.Get("Retry-After"), now)
	f.After = max(0, after)
}

// RetryAfter reads the value of a Retry-After header, in seconds or as a date (RFC 9110, 10.2.3). A date that has passed gives a negative time; ok is false
// where the value is neither.
func RetryAfter(value string, now time.Time) (d time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 1e6) * float64(time.Second)), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now), true
	}
	return 0, false
}

// NotSent reports whether the connection was never made.
func NotSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return (errors.As(err, &op) && op.Op == "dial") || errors.As(err, &dns)
}

// Describe says what went wrong below HTTP. It does not repeat the error's own text, which may hold the address or a piece of what the service sent.
func Describe(err error) string {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "host name of baseUrl cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: is the server running at baseUrl?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed before the answer was complete"
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &alert):
		return "server's certificate is not trusted"
	case errors.As(err, &record):
		return "server does not speak TLS on this port"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "request timed out"
	}
	return "connection failed"
}
