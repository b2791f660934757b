package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// maxAnswer bounds an answer in bytes: 2048 vectors of 4096 numbers with room for long digits.
const maxAnswer = 256 << 20

// failure is a failed attempt in words of our own. Nothing of what the server said gets into it but the status, for a server may repeat
// the key or a text anywhere in its answer.
type failure struct {
	text  string
	kind  error // one of core's sentinels
	retry bool
	after time.Duration // what the server asked to wait
}

func (f *failure) Error() string { return f.text + ": " + f.kind.Error() }

// Unwrap returns the sentinel.
func (f *failure) Unwrap() error { return f.kind }

func unavailable(text string) *failure {
	return &failure{text: text, kind: core.ErrUnavailable, retry: true}
}

// nonsense is an answer with status 200 that cannot be used. Asking again at once would give the same.
func nonsense(text string) *failure {
	return &failure{text: "answer " + text, kind: core.ErrUnavailable}
}

// attempt makes one request under the configured timeout.
func (e *Embedder) attempt(ctx context.Context, body []byte, want int) ([][]float32, *failure) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, &failure{text: "baseUrl makes no request", kind: core.ErrInvalid}
	}
	req.Header.Set("Content-Type", "application/json")
	if e.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+e.cfg.APIKey)
	}
	res, err := e.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, unavailable(fmt.Sprintf("no answer within %v", e.cfg.Timeout))
		}
		return nil, unavailable(describe(err))
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, res.Body, 4096) // the little that is usually left, so that the connection can be used again
		_ = res.Body.Close()
	}()
	if res.StatusCode != http.StatusOK {
		return nil, statusFailure(res, time.Now())
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, unavailable(fmt.Sprintf("no whole answer within %v", e.cfg.Timeout))
	case err != nil:
		return nil, unavailable("answer broke off: " + describe(err))
	case len(data) > maxAnswer:
		return nil, nonsense(fmt.Sprintf("is larger than %d bytes", maxAnswer))
	}
	vectors, err := decodeAnswer(data)
	if err != nil {
		return nil, nonsense("is not the JSON it should be, is baseUrl that of an Ollama server")
	}
	if failed := e.settle(vectors, want); failed != nil {
		return nil, failed
	}
	return vectors, nil
}

// decodeAnswer reads the vectors of an answer.
func decodeAnswer(data []byte) ([][]float32, error) {
	var answer struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	return answer.Embeddings, nil
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

func statusFailure(res *http.Response, now time.Time) *failure {
	status := res.StatusCode
	f := &failure{text: fmt.Sprintf("status %d", status), kind: core.ErrInvalid}
	switch {
	case status < 400:
		f.text += ", unexpected answer or redirect, set baseUrl to the final address"
		f.kind = core.ErrUnavailable
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		f.kind = core.ErrAuth
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		// It can be pulled while we run.
		f.text += ", the server does not have the model, pull it; or baseUrl is not that of an Ollama server"
		f.kind = core.ErrUnavailable
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		f.kind, f.retry = core.ErrUnavailable, true
		f.after = retryAfter(res.Header, now)
	case status == http.StatusBadRequest:
		f.text += ", a text is longer than the model takes, or the model makes no vectors"
	}
	return f
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
