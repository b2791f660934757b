package builtin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/registry"
)

// embeddings is an endpoint that speaks OpenAI's API and makes vectors of the words of a text.
func embeddings(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Input []string `json:"input"`
			Model string   `json:"model"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		type embedding struct {
			Object    string    `json:"object"`
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var data []embedding
		for i, text := range req.Input {
			v := make([]float32, 32)
			v[0] = 0.1
			for word := range strings.FieldsSeq(strings.ToLower(text)) {
				h := fnv.New32a()
				_, _ = h.Write([]byte(word))
				v[h.Sum32()%32]++
			}
			data = append(data, embedding{"embedding", i, v})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": req.Model, "data": data, "usage": map[string]int{"total_tokens": 1}})
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// holding lists the files below dir that hold a text.
func holding(t *testing.T, dir, text string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(b, []byte(text)) {
			out = append(out, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestForgetReachesEverything: store, index on disk, vectors, views and summaries, in the files as they lie there.
func TestForgetReachesEverything(t *testing.T) {
	const secret = "xylophoneruby4711"
	dir, url := t.TempDir(), embeddings(t)
	values := map[string]any{
		"store":     map[string]any{"type": "sqlite", "path": filepath.Join(dir, "store.db")},
		"searchers": map[string]any{"lexical": map[string]any{}, "vector": map[string]any{}},
		"embedder":  map[string]any{"type": "openai", "baseUrl": url + "/v1", "model": "test", "apiKey": "none"},
		"recall":    map[string]any{"acrossSessions": true},
	}
	one, two := core.SessionID{Agent: "ann", Session: "one"}, core.SessionID{Agent: "ann", Session: "two"}
	say := func(e core.ContextEngine, id core.SessionID, texts ...string) {
		t.Helper()
		for i, text := range texts {
			role := message.User
			if i%2 == 1 {
				role = message.Assistant
			}
			if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(role, text)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	prompt := func(e core.ContextEngine, id core.SessionID) string {
		t.Helper()
		res, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 2000})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(res.Messages)
	}
	eng := func(i *registry.Instance) core.ContextEngine {
		t.Helper()
		e, _, err := i.Engine(t.Context(), one.Agent, one.Session)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	i := build(t, values, nil)
	e := eng(i)
	say(e, one, "my locker opens with "+secret, "noted")
	for n := range 80 {
		say(e, one, fmt.Sprintf("question %d about the weather in the mountains and what to pack for it", n), "take a coat, and a hat")
	}
	if _, err := e.Compact(t.Context(), core.CompactRequest{Session: one, Budget: 2000, Force: true}); err != nil {
		t.Fatal(err)
	}
	say(e, two, "which word opens my locker?")
	if !strings.Contains(prompt(e, two), secret) {
		t.Fatal("the other session does not recall it: nothing to forget there")
	}
	if err := i.Close(t.Context()); err != nil { // the index is written
		t.Fatal(err)
	}
	if len(holding(t, dir, secret)) == 0 {
		t.Fatal("no file holds the text: the test looks in the wrong place")
	}
	i = build(t, values, nil)
	e = eng(i)
	prompt(e, two)
	var id string
	composed, ok := e.(*engine.Engine)
	if !ok {
		t.Fatalf("engine is a %T", e)
	}
	for entry, err := range core.All(t.Context(), composed.Store(), one.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(entry.Text(), secret) {
			id = entry.ID
			break
		}
	}
	rec, err := i.Forget(t.Context(), engine.ForgetRequest{Scope: core.Scope{Agent: "ann"}, Entries: []string{id}})
	if err != nil || rec.Entries != 1 || len(rec.Left) > 0 {
		t.Fatalf("receipt %+v, %v", rec, err)
	}
	if got := holding(t, dir, secret); got != nil {
		t.Errorf("while it is open the text is still in %q", got)
	}
	if strings.Contains(prompt(e, two), secret) || strings.Contains(prompt(e, one), secret) {
		t.Error("it is still shown")
	}
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := holding(t, dir, secret); got != nil {
		t.Errorf("after closing the text is in %q", got)
	}
	if vs, ok := core.As[vector.Store](composed.Store()); !ok || vs == nil {
		t.Error("the store keeps no vectors: they were not tested")
	}
}
