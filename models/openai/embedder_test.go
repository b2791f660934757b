package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/openai"
)

func newEmbedder(t *testing.T, cfg openai.Config, opts ...openai.Option) *openai.Embedder {
	t.Helper()
	e, err := openai.NewEmbedder(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// lengths answers each text with the vector (bytes of the text, its first byte, 1), the last text first.
func lengths(s **server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		(*s).mu.Lock()
		input := (*s).bodies[len((*s).bodies)-1]["input"].([]any)
		(*s).mu.Unlock()
		var data []map[string]any
		for i, item := range input {
			text := item.(string)
			data = append(data, map[string]any{"index": i, "embedding": []float64{float64(len(text)), float64(text[0]), 1}})
		}
		slices.Reverse(data)
		answer, _ := json.Marshal(map[string]any{"data": data})
		reply(200, string(answer))(w, r)
	}
}

func TestEmbedOrdersAndBatches(t *testing.T) {
	t.Parallel()
	var s *server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) { lengths(&s)(w, r) })
	cfg := s.config()
	cfg.BatchInputs, cfg.BatchTokens = 3, 10
	e := newEmbedder(t, cfg)
	if e.Dimensions() != 0 || e.Model() != "test-model" {
		t.Errorf("before the first call Dimensions, Model = %d, %q", e.Dimensions(), e.Model())
	}
	long := strings.Repeat("z", 100)
	texts := []string{"a", "", "bb", "ccc", long, "dddddddddddd", "eeeeeeeeeeeeeeeeee", "f"}
	got, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	var want [][]float32
	for _, text := range texts {
		if text == "" {
			text = " "
		}
		want = append(want, []float32{float32(len(text)), float32(text[0]), 1})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Embed (-want +got):\n%s", diff)
	}
	var batches [][]any
	for _, body := range s.bodies {
		batches = append(batches, body["input"].([]any))
		delete(body, "input")
		if diff := cmp.Diff(map[string]any{"model": "test-model", "encoding_format": "float"}, body); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
	// Three inputs; then 1 token, and 34 that go alone; then 4 + 6 of the 10 allowed.
	wantBatches := [][]any{{"a", " ", "bb"}, {"ccc"}, {long}, {"dddddddddddd", "eeeeeeeeeeeeeeeeee"}, {"f"}}
	if diff := cmp.Diff(wantBatches, batches); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	if e.Dimensions() != 3 {
		t.Errorf("Dimensions = %d, want the 3 learnt", e.Dimensions())
	}
	if texts[1] != "" {
		t.Error("Embed changed its argument")
	}
	if s.paths[0] != "/v1/embeddings" || s.auth[0] != "Bearer "+secretKey {
		t.Errorf("request to %q with authorization %q", s.paths[0], s.auth[0])
	}
}

func TestEmbedNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(500, ""))
	got, err := newEmbedder(t, s.config()).Embed(t.Context(), nil)
	if err != nil || len(got) != 0 || s.calls() != 0 {
		t.Errorf("Embed of nothing = %v, %v with %d calls, want none", got, err, s.calls())
	}
}

func TestEmbedAsksForDimensions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		model   string
		request bool
		want    any
	}{
		{"text-embedding-3-small", false, 3.0}, {"bge-m3", false, nil}, {"bge-m3", true, 3.0},
	} {
		var s *server
		s = serve(t, func(w http.ResponseWriter, r *http.Request) { lengths(&s)(w, r) })
		cfg := s.config()
		cfg.Model, cfg.Dimensions, cfg.RequestDimensions = row.model, 3, row.request
		e := newEmbedder(t, cfg)
		if e.Dimensions() != 3 {
			t.Errorf("%v: Dimensions = %d, want 3", row, e.Dimensions())
		}
		if _, err := e.Embed(t.Context(), []string{"x"}); err != nil {
			t.Errorf("%v: %v", row, err)
		}
		if got := s.body(0)["dimensions"]; got != row.want {
			t.Errorf("%v: asked for dimensions %v, want %v", row, got, row.want)
		}
	}
}

func TestEmbedFailures(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer     string
		dimensions int
		want       error
		says       string
	}{
		"fewer vectors":     {`{"data":[{"index":0,"embedding":[1,2]}]}`, 0, core.ErrUnavailable, "1 vectors for 2 texts"},
		"same index":        {`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`, 0, core.ErrUnavailable, "number its vectors"},
		"index outside":     {`{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}`, 0, core.ErrUnavailable, "number its vectors"},
		"negative index":    {`{"data":[{"index":-1,"embedding":[1]},{"index":0,"embedding":[2]}]}`, 0, core.ErrUnavailable, "number its vectors"},
		"empty vector":      {`{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`, 0, core.ErrUnavailable, "empty vector"},
		"two lengths":       {`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2,3]}]}`, 0, core.ErrInvalid, "has 2 numbers, expected are 1"},
		"other than set":    {`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2]}]}`, 4, core.ErrInvalid, "has 1 numbers, expected are 4"},
		"number too large":  {`{"data":[{"index":0,"embedding":[1e99]},{"index":1,"embedding":[2]}]}`, 0, core.ErrUnavailable, "not the JSON"},
		"garbage":           {"Bearer " + secretKey, 0, core.ErrUnavailable, "not the JSON"},
		"ollama's own form": {`{"embeddings":[[1],[2]]}`, 0, core.ErrUnavailable, "0 vectors for 2 texts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, reply(200, row.answer))
			cfg := s.config()
			cfg.Dimensions = row.dimensions
			e := newEmbedder(t, cfg)
			got, err := e.Embed(t.Context(), []string{secretPrompt, "b"})
			if got != nil || !errors.Is(err, row.want) || !strings.Contains(fmt.Sprint(err), row.says) {
				t.Errorf("Embed = %v, %v, want %v with %q", got, err, row.want, row.says)
			}
			noSecrets(t, err)
			if s.calls() != 1 || e.Dimensions() != row.dimensions {
				t.Errorf("after it %d calls, Dimensions %d, want 1 and %d", s.calls(), e.Dimensions(), row.dimensions)
			}
		})
	}
}

func TestEmbedFailsWholeAfterLaterBatch(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, `{"data":[{"index":0,"embedding":[1,2]}]}`), reply(200, `{"data":[{"index":0,"embedding":[1,2,3]}]}`))
	cfg := s.config()
	cfg.BatchInputs = 1
	e := newEmbedder(t, cfg)
	got, err := e.Embed(t.Context(), []string{"a", "b"})
	if got != nil || !errors.Is(err, core.ErrInvalid) || e.Dimensions() != 2 {
		t.Errorf("Embed = %v, %v with Dimensions %d, want ErrInvalid and the 2 learnt first", got, err, e.Dimensions())
	}
}

func TestEmbedRetries(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(429, "", "Retry-After", "1"), reply(500, ""), reply(200, `{"data":[{"index":0,"embedding":[0.5,-2]}]}`))
	var n naps
	got, err := newEmbedder(t, s.config(), openai.WithSleep(n.sleep)).Embed(t.Context(), []string{"a"})
	if err != nil || len(n.taken) != 2 || !cmp.Equal(got, [][]float32{{0.5, -2}}) {
		t.Errorf("Embed = %v, %v after %d waits, want success after 2", got, err, len(n.taken))
	}
}

func TestEmbedConcurrently(t *testing.T) {
	t.Parallel()
	s := serve(t, reply(200, `{"data":[{"index":0,"embedding":[1,2]}]}`))
	e := newEmbedder(t, s.config())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := e.Embed(t.Context(), []string{"a"}); err != nil || e.Dimensions() != 2 {
				t.Errorf("Embed: %v, Dimensions %d", err, e.Dimensions())
			}
		})
	}
	wg.Wait()
}
