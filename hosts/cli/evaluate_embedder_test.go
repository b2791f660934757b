package cli_test

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/internal/datadir"
	"github.com/contextengine/contextengine/registry/builtin"
)

// conversationFile returns the first conversation of the development half as a file, and what it holds; the test is skipped where there is none.
func conversationFile(t *testing.T) (string, *questions.Dataset) {
	t.Helper()
	data, err := os.ReadFile(datadir.File(t, "locomo/locomo-dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []json.RawMessage
	if err := json.Unmarshal(data, &samples); err != nil {
		t.Fatal(err)
	}
	file := write(t, "one.json", "["+string(samples[0])+"]")
	set, err := questions.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, set
}

const dimensions = 64

// direction is the same random direction for the same text.
func direction(text string) []float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	out := make([]float64, dimensions)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

// signal makes the vectors of a data set: messages point anywhere, questions to their evidence and, with more weight, anywhere. Which of them succeed has
// nothing to do with words.
func signal(set *questions.Dataset) map[string][]float64 {
	out := make(map[string][]float64)
	texts := make(map[string]string)
	for _, c := range set.Conversations {
		for _, s := range c.Sessions {
			for _, m := range s.Messages {
				texts[m.ID] = strings.TrimSpace(m.Text())
				out[texts[m.ID]] = direction(texts[m.ID])
			}
		}
		for _, q := range c.Questions {
			v := direction(q.Text)
			for i := range v {
				v[i] *= 1.9
			}
			for _, id := range q.Evidence {
				for i, x := range direction(texts[id]) {
					v[i] += x / float64(min(len(q.Evidence), 2))
				}
			}
			out[strings.TrimSpace(q.Text)] = v
		}
	}
	return out
}

// embedderConfig starts an endpoint that speaks OpenAI's embeddings and returns a configuration that asks it beside the lexical index.
func embedderConfig(t *testing.T, vectors map[string][]float64, healthy bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || !healthy {
			http.Error(w, `{"error":{"message":"down"}}`, http.StatusServiceUnavailable)
			return
		}
		type item struct {
			Object    string    `json:"object"`
			Index     int       `json:"index"`
			Embedding []float64 `json:"embedding"`
		}
		var items []item
		for i, text := range req.Input {
			v := vectors[strings.TrimSpace(text)]
			if v == nil {
				v = direction(text)
			}
			items = append(items, item{"embedding", i, v})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": "test", "data": items})
	}))
	t.Cleanup(server.Close)
	return write(t, "embedder.yaml", "searchers: [lexical, vector]\nembedder: {type: openai, baseUrl: \""+server.URL+"/v1\", model: test, maxRetries: 0}\n")
}

func armOf(t *testing.T, res recall.Result, name string) recall.ArmResult {
	t.Helper()
	for _, a := range res.Arms {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no arm %q among %s", name, armNames(res))
	return recall.ArmResult{}
}

// TestEvaluateEmbedder: words and vectors together are at least as good as the better of the two alone.
func TestEvaluateEmbedder(t *testing.T) {
	t.Parallel()
	file, set := conversationFile(t)
	res := evaluation(t, nil, file, "--config", embedderConfig(t, signal(set), true), "--parts", "--candidates", "200")
	both, words, vectors := armOf(t, res, "hybrid(lexical+vector)+memory"), armOf(t, res, "only(lexical)+memory"), armOf(t, res, "only(vector)+memory")
	for i, m := range res.Measures {
		of := func(a recall.ArmResult) float64 { return 100 * a.Groups[0].Measures[i].Recall.Mean }
		t.Logf("%s: both %.1f, words %.1f, vectors %.1f", m.Name, of(both), of(words), of(vectors))
		if m.Name == "R@10" && of(vectors) < 40 {
			t.Errorf("the vectors carry too little signal: %.1f", of(vectors))
		}
		if of(both) < max(of(words), of(vectors)) {
			t.Errorf("%s: together %.1f, words alone %.1f, vectors alone %.1f", m.Name, of(both), of(words), of(vectors))
		}
	}
	if both.Degraded > 0 || both.Failed > 0 {
		t.Errorf("%d degraded, %d failed: %+v", both.Degraded, both.Failed, both.Warnings)
	}
}

// TestEvaluateEmbedderDown: without its embedder a configuration recalls what words find, and the report says so.
func TestEvaluateEmbedderDown(t *testing.T) {
	t.Parallel()
	file, set := conversationFile(t)
	config, plain := embedderConfig(t, nil, false), write(t, "plain.yaml", "retriever: hybrid\n")
	res := evaluation(t, nil, file, "--config", plain, "--config", config, "--candidates", "200")
	words, down := armOf(t, res, "plain:hybrid(lexical)+memory"), armOf(t, res, "embedder:hybrid(lexical+vector)+memory")
	if o := res.Orders[0]; o.Same != o.Of || words.Groups[0].Measures[1].Recall.Mean != down.Groups[0].Measures[1].Recall.Mean {
		t.Errorf("the order is that of words alone for %d of %d questions", o.Same, o.Of)
	}
	if down.Degraded != set.Measured() || len(down.Warnings) == 0 || words.Degraded != 0 {
		t.Errorf("%d of %d degraded, %+v", down.Degraded, set.Measured(), down.Warnings)
	}
	run(t, builtin.New(), "", "evaluate", evaluateFixtures+"beam", "--config", config).want(t, cli.ExitOK,
		"degraded: 4 of 4 questions were answered without a part of the configuration", "a searcher is left out searcher=vector")
}
