package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/contextengine/contextengine/hosts/cli"
	"github.com/contextengine/contextengine/registry/builtin"
)

// paid is a server with models that counts what it is asked.
func paid(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if filepath.Base(r.URL.Path) != "embeddings" {
			fmt.Fprint(w, `{"model":"m","choices":[{"message":{"role":"assistant","content":"They spoke of a harbour."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010}}`)
			return
		}
		var req struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		type vector struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		list := make([]vector, len(req.Input))
		for i, text := range req.Input {
			list[i] = vector{i, []float32{1, float32(len(text)) / 100}}
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"data": list, "model": "m"}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", asked
}

// TestNoModelIsAsked: a model that is configured, and may cost money, is asked only when that was said, and then its calls are told beforehand and afterwards.
func TestNoModelIsAsked(t *testing.T) {
	address, asked := paid(t)
	model := "{type: openai, baseUrl: \"" + address + "\", model: m}"
	summary := write(t, "summary.yaml", "compactor: {type: summary, fallbacks: ["+model+"]}\nmodel: "+model+"\n")
	recent := write(t, "recent.yaml", "retriever: recent\n")
	page := filepath.Join(t.TempDir(), "report.html")
	for _, args := range [][]string{
		{"replay", "--config", summary, "--budget", "2k"},
		{"explain", "--config", summary, "--budget", "2k"},
		{"compare", "--config", summary, "--config", recent, "--budget", "2k", "--html", page, "--force"},
	} {
		t.Run(args[0], func(t *testing.T) {
			asked.Store(0)
			run(t, builtin.New(), "", args...).want(t, cli.ExitOK, "note: openai is configured and not asked; --model asks it")
			if n := asked.Load(); n != 0 {
				t.Errorf("a model was asked %d times", n)
			}
			got := run(t, builtin.New(), "", append(args, "--model", "--price", "2,10")...)
			got.want(t, cli.ExitOK, "models: about ", ", as rehearsed", " at 2 and 10 a million")
			said := regexp.MustCompile(`(?m)^models: (\d+) calls?, `).FindStringSubmatch(got.errors)
			if said == nil || said[1] != fmt.Sprint(asked.Load()) || asked.Load() == 0 {
				t.Errorf("the model was asked %d times; it says\n%s", asked.Load(), got.errors)
			}
		})
	}
}

// An embedder is a model, too.
func TestNoEmbedderIsAsked(t *testing.T) {
	address, asked := paid(t)
	config := write(t, "vector.yaml", "searchers: [vector]\nembedder: {type: openai, baseUrl: \""+address+"\", model: m}\n")
	run(t, builtin.New(), "", "replay", "--config", config, "--budget", "2k").want(t, cli.ExitUsage, "the configuration embeds messages with openai: --model lets it be asked")
	if n := asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
	run(t, builtin.New(), "", "replay", "--config", config, "--budget", "2k", "--model").want(t, cli.ExitOK, "0 violations", "texts embedded in")
	if asked.Load() == 0 {
		t.Error("it was not asked")
	}
	run(t, builtin.New(), "", "replay", "--price", "1,2").want(t, cli.ExitUsage, "--price: goes with --model")
	run(t, builtin.New(), "", "replay", "--model", "--price", "1").want(t, cli.ExitUsage, "--price: give two prices")
}
