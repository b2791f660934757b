package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

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
		return nil, endpoint.Unavailable(endpoint.Describe(err))
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body = &body{ReadCloser: resp.Body, left: x.limit, err: &x.read}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, statusFailure(resp, x.now())
}

// failure explains an error of the library after this exchange.
func (x *exchange) failure(err error) *endpoint.Failure {
	var failed *endpoint.Failure
	switch {
	case errors.As(err, &failed):
		return failed
	case !x.sent:
		// The library refuses a few combinations of model and parameters itself, with constant texts.
		return &endpoint.Failure{Text: "request refused before sending, model and parameters do not fit (see maxTokensField)", Kind: core.ErrInvalid}
	case errors.Is(x.read, errTooLarge):
		return &endpoint.Failure{Text: fmt.Sprintf("answer is larger than %d bytes", x.limit), Kind: core.ErrUnavailable}
	case x.read != nil:
		return endpoint.Unavailable("answer broke off: " + endpoint.Describe(x.read))
	default:
		return endpoint.Nonsense("is not the JSON it should be, does baseUrl end with the API's version")
	}
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

// codes are the error codes and types of the API that are safe and useful to repeat.
var codes = [...]string{
	"billing_hard_limit_reached", "content_policy_violation", "context_length_exceeded", "insufficient_quota",
	"invalid_api_key", "invalid_request_error", "model_not_found", "rate_limit_exceeded", "server_error",
	"string_above_max_length", "tokens", "unsupported_parameter", "unsupported_value",
}

func statusFailure(resp *http.Response, now time.Time) *endpoint.Failure {
	f := endpoint.StatusFailure(resp, now)
	code := errorCode(resp.Body)
	if code != "" {
		f.Text += " (" + code + ")"
	}
	switch {
	case f.Status < 400:
		f.Text += ", redirect refused, set baseUrl to the final address"
	case f.Status == http.StatusPaymentRequired || !errors.Is(f.Kind, core.ErrAuth) && (code == "insufficient_quota" || code == "billing_hard_limit_reached"):
		f.Kind, f.Retry, f.After = core.ErrUnavailable, false, 0 // waiting does not fill an account
	case f.Status == http.StatusConflict:
		f.TryLater(resp.Header, now)
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
