package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// failure is a failed attempt in words of our own. Nothing of what the endpoint said gets into it but the status and
// codes from a fixed list, for an endpoint may repeat the key or the prompt anywhere in its answer.
type failure struct {
	text   string
	kind   error // one of core's sentinels
	status int
	retry  bool
	after  time.Duration // what the endpoint asked to wait
}

func (f *failure) Error() string { return f.text + ": " + f.kind.Error() }

// Unwrap returns the sentinel.
func (f *failure) Unwrap() error { return f.kind }

func unavailable(text string) *failure {
	return &failure{text: text, kind: core.ErrUnavailable, retry: true}
}

// exchange is the HTTP side of one attempt, as the library's client: it turns every answer but a success into a
// failure before the library reads it, and bounds what is read.
type exchange struct {
	client *http.Client
	limit  int64
	now    func() time.Time
	sent   bool
	read   error
}

// Do implements the library's HTTPDoer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.sent = true
	resp, err := x.client.Do(req)
	if err != nil {
		return nil, unavailable(describe(err))
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body = &body{ReadCloser: resp.Body, left: x.limit, err: &x.read}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, statusFailure(resp, x.now())
}

// failure explains an error of the library after this exchange.
func (x *exchange) failure(err error) *failure {
	var failed *failure
	switch {
	case errors.As(err, &failed):
		return failed
	case !x.sent:
		// The library refuses a few combinations of model and parameters itself, with constant texts.
		return &failure{text: "request refused before sending, model and parameters do not fit (see maxTokensField)", kind: core.ErrInvalid}
	case errors.Is(x.read, errTooLarge):
		return &failure{text: fmt.Sprintf("answer is larger than %d bytes", x.limit), kind: core.ErrUnavailable}
	case x.read != nil:
		return unavailable("answer broke off: " + describe(x.read))
	default:
		return nonsense("is not the JSON it should be, does baseUrl end with the API's version")
	}
}

// nonsense is an answer with status 2xx that cannot be used. Asking again at once would give the same.
func nonsense(text string) *failure {
	return &failure{text: "answer " + text, kind: core.ErrUnavailable}
}

var errTooLarge = errors.New("answer too large")

// body bounds an answer and remembers how reading it failed.
type body struct {
	io.ReadCloser
	left int64
	err  *error
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		*b.err = errTooLarge
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		*b.err = err
	}
	return n, err
}

// Close reads the little that usually is left behind the JSON, so that the connection can be used again.
func (b *body) Close() error {
	_, _ = io.CopyN(io.Discard, b.ReadCloser, 4096)
	return b.ReadCloser.Close()
}

// describe names a transport error without repeating bytes of the other side, which some of net/http's texts do.
func describe(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "host name cannot be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.As(err, &op) && op.Op == "dial":
		return "cannot connect"
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed early"
	default:
		return "connection failed"
	}
}

// codes are the error codes and types of the API that are safe and useful to repeat.
var codes = [...]string{
	"billing_hard_limit_reached", "content_policy_violation", "context_length_exceeded", "insufficient_quota",
	"invalid_api_key", "invalid_request_error", "model_not_found", "rate_limit_exceeded", "server_error",
	"string_above_max_length", "tokens", "unsupported_parameter", "unsupported_value",
}

func statusFailure(resp *http.Response, now time.Time) *failure {
	status := resp.StatusCode
	f := &failure{text: fmt.Sprintf("status %d", status), status: status, kind: core.ErrInvalid}
	code := errorCode(resp.Body)
	if code != "" {
		f.text += " (" + code + ")"
	}
	switch {
	case status < 400:
		f.text += ", redirect refused, set baseUrl to the final address"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.kind = core.ErrAuth
	case status == http.StatusPaymentRequired || code == "insufficient_quota" || code == "billing_hard_limit_reached":
		f.kind = core.ErrUnavailable // waiting does not fill an account
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
		f.kind, f.retry = core.ErrUnavailable, true
		f.after = retryAfter(resp.Header, now)
	}
	return f
}

// errorCode returns the API's code for an error, or its type, if it is one of codes; else "".
func errorCode(answer io.Reader) string {
	var parsed struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	data, err := io.ReadAll(io.LimitReader(answer, 64<<10))
	if err != nil || json.Unmarshal(data, &parsed) != nil {
		return ""
	}
	code, _ := parsed.Error.Code.(string)
	for _, candidate := range []string{code, parsed.Error.Type} {
		if slices.Contains(codes[:], candidate) {
			return candidate
		}
	}
	return ""
}

// retryAfter reads the Retry-After header, in seconds or as a date (RFC 9110, 10.2.3); 0 if there is none.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
