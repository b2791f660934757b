package partstest

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/models/ollama"
)

// Embedder returns an embedder that asks a server of the test's own, over real HTTP. Texts that share words lie near each other; the same text has the same
// vector every time.
func Embedder(tb testing.TB) core.Embedder {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(embed))
	tb.Cleanup(server.Close)
	cfg := ollama.DefaultConfig()
	cfg.BaseURL, cfg.Model = server.URL, "words"
	e, err := ollama.NewEmbedder(cfg)
	if err != nil {
		tb.Fatalf("ollama.NewEmbedder: %v", err)
	}
	return e
}

// embed answers as much of Ollama's API as an embedder asks.
func embed(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/api/embed" {
		http.Error(w, "want texts to embed", http.StatusBadRequest)
		return
	}
	const dimensions = 64
	vectors := make([][]float32, len(request.Input))
	for i, text := range request.Input {
		vectors[i] = make([]float32, dimensions)
		vectors[i][0] = 0.125 // a text without words lies somewhere too
		for word := range strings.FieldsSeq(text) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(word))
			vectors[i][h.Sum32()%dimensions]++
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": vectors})
}
