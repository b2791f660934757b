package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/endpoint"
)

// maxAnswer bounds an answer in bytes: 2048 vectors of 4096 numbers with room for long digits.
const maxAnswer = 256 << 20

// attempt makes one request. The vectors are nil where it failed.
func (e *Embedder) attempt(ctx context.Context, body []byte, want int) ([][]float32, *endpoint.Failure) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, &endpoint.Failure{Text: "baseUrl makes no request", Kind: core.ErrInvalid}
	}
	req.Header.Set("Content-Type", "application/json")
	if e.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+e.cfg.APIKey)
	}
	res, err := e.client.HTTP.Do(req)
	if err != nil {
		return nil, endpoint.Unavailable(endpoint.Describe(err))
	}
	defer func() {
		_, _ = io.CopyN(io.Discard, res.Body, 4096) // the little that is usually left, so that the connection can be used again
		_ = res.Body.Close()
	}()
	if res.StatusCode != http.StatusOK {
		return nil, statusFailure(res, e.client.Now())
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, endpoint.Unavailable("answer broke off: " + endpoint.Describe(err))
	case len(data) > maxAnswer:
		return nil, endpoint.Nonsense(fmt.Sprintf("is larger than %d bytes", maxAnswer))
	}
	vectors, err := decodeAnswer(data)
	if err != nil {
		return nil, endpoint.Nonsense("is not the JSON it should be, is baseUrl that of an Ollama server")
	}
	// Another length is about the model, not about a text: all texts wait until it is set right.
	if failed := e.dimensions.Settle(vectors, want, core.ErrUnavailable, "set dimensions to the model's"); failed != nil {
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

func statusFailure(res *http.Response, now time.Time) *endpoint.Failure {
	f := endpoint.StatusFailure(res, now)
	switch {
	case f.Status < 400:
		f.Text += ", unexpected answer or redirect, set baseUrl to the final address"
		f.Kind = core.ErrUnavailable
	case f.Status == http.StatusNotFound || f.Status == http.StatusMethodNotAllowed:
		// It can be pulled while we run.
		f.Text += ", the server does not have the model, pull it; or baseUrl is not that of an Ollama server"
		f.Kind = core.ErrUnavailable
	case f.Status == http.StatusBadRequest:
		f.Text += ", a text is longer than the model takes, or the model makes no vectors"
	}
	return f
}
