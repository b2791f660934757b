package openbrain_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

// fakeEmbedder puts synonyms at the same place, and can be down.
type fakeEmbedder struct {
	mu      sync.Mutex
	down    bool
	missing bool   // the model is not there yet: every text is refused
	bad     string // a text that it never takes
	calls   int
	texts   map[string]int
}

func (e *fakeEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	if e.down {
		return nil, fmt.Errorf("fake: embed: %w", core.ErrUnavailable)
	}
	var out [][]float32
	for _, text := range texts {
		if e.missing || (e.bad != "" && strings.Contains(text, e.bad)) {
			return nil, fmt.Errorf("fake: embed: %w", core.ErrInvalid)
		}
		if e.texts == nil {
			e.texts = map[string]int{}
		}
		e.texts[text]++
		v := []float32{0.01, 0, 0}
		for i, words := range []string{"car automobile vehicle", "rain drizzle weather"} {
			for w := range strings.FieldsSeq(words) {
				if strings.Contains(text, w) {
					v[i+1] = 1
				}
			}
		}
		out = append(out, v)
	}
	return out, ctx.Err()
}

func (e *fakeEmbedder) Dimensions() int { return 3 }
func (e *fakeEmbedder) Model() string   { return "fake" }

func (e *fakeEmbedder) set(down bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.down = down
}

type stats struct{ Total, Embedded, Pending int }

// settle waits until the statistics are as they should be; the test's own deadline is the alternative.
func (f *fixture) settle(t *testing.T, want stats) {
	t.Helper()
	for {
		var got stats
		f.want(t, http.StatusOK, "", "GET", "/v1/stats", "", &got)
		if got == want {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("stats = %+v, want %+v", got, want)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// searched returns how the server says it searched.
func (f *fixture) searched(t *testing.T, query string) string {
	t.Helper()
	return f.want(t, http.StatusOK, "", "POST", "/v1/search", encode(t, map[string]any{"query": query}), nil).header.Get(openbrain.HeaderSearch)
}

// What was embedded stays so after a restart over a store that keeps vectors, and what was not is known.
func TestVectorsLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thoughts.db")
	store := openSQLite(t, path)
	if _, keeps := core.As[vector.Store](store); !keeps {
		t.Skip("not run: the sqlite store keeps no vectors")
	}
	e := &fakeEmbedder{}
	f := serve(t, store, quick, openbrain.WithEmbedder(e))
	f.post(t, "", "a", "my automobile is red", `{}`)
	f.post(t, "", "b", "light drizzle today", `{}`)
	f.settle(t, stats{Total: 2, Embedded: 2})
	e.set(true)
	f.post(t, "", "a", "a car at last", `{}`)
	f.settle(t, stats{Total: 3, Embedded: 2, Pending: 1})
	if err := f.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = openSQLite(t, path)
	t.Cleanup(func() { _ = store.Close() })
	again := &fakeEmbedder{}
	f = serve(t, store, quick, openbrain.WithEmbedder(again))
	f.settle(t, stats{Total: 3, Embedded: 3})
	again.mu.Lock()
	defer again.mu.Unlock()
	if diff := cmp.Diff(map[string]int{"a car at last": 1}, again.texts); diff != "" {
		t.Errorf("embedded after the restart (-want +got):\n%s", diff)
	}
}

// The header of an answer says whether vectors were used.
func TestSearchSaysHow(t *testing.T) {
	if got := serve(t, nil, nil).searched(t, "x"); got != openbrain.SearchedWords {
		t.Errorf("without an embedder: %q, want %q", got, openbrain.SearchedWords)
	}
	clock, e := newClock(), &fakeEmbedder{}
	f := serve(t, nil, quick, openbrain.WithEmbedder(e), openbrain.WithClock(clock.Now))
	f.post(t, "", "SECRETSOURCE", "my automobile is red", `{}`)
	f.settle(t, stats{Total: 1, Embedded: 1})
	if got := f.searched(t, "car one"); got != openbrain.SearchedBoth {
		t.Errorf("with an embedder: %q, want %q", got, openbrain.SearchedBoth)
	}
	e.set(true)
	for range 3 { // nobody waits for it every time
		if got := f.searched(t, "car two"); got != openbrain.SearchedDegraded {
			t.Errorf("with a broken embedder: %q, want %q", got, openbrain.SearchedDegraded)
		}
	}
	if n := strings.Count(f.log.String(), "search goes without vectors"); n != 1 {
		t.Errorf("%d searches asked the broken embedder, want 1", n)
	}
	e.set(false)
	clock.add(10 * time.Second)
	if got := f.searched(t, "car three"); got != openbrain.SearchedBoth {
		t.Errorf("with the embedder back: %q, want %q", got, openbrain.SearchedBoth)
	}
	if strings.Contains(f.log.String(), "SECRETSOURCE") {
		t.Error("the log names a source")
	}
}

// Thoughts wait for a model that is not there yet; only a text that the model does not take, while it takes others, is given up.
func TestModelThatIsNotThereYet(t *testing.T) {
	e := &fakeEmbedder{missing: true, bad: "unembeddable"}
	f := serve(t, nil, quick, openbrain.WithEmbedder(e))
	f.post(t, "", "SECRETSOURCE", "my automobile is red", `{}`)
	f.post(t, "", "SECRETSOURCE", "unembeddable", `{}`)
	f.settle(t, stats{Total: 2, Pending: 2})
	for !strings.Contains(f.log.String(), "stay pending") { // until the worker has tried
		select {
		case <-t.Context().Done():
			t.Fatal("the worker never tried")
		case <-time.After(2 * time.Millisecond):
		}
	}
	f.settle(t, stats{Total: 2, Pending: 2})
	e.mu.Lock()
	e.missing = false
	e.mu.Unlock()
	f.settle(t, stats{Total: 2, Embedded: 2}) // the one that was given up does not wait any more
	if l := f.search(t, "", map[string]any{"query": "unembeddable", "limit": 1}); l.Count != 1 || l.Thoughts[0].Content != "unembeddable" {
		t.Errorf("words find %q, want the thought without a vector", l.contents())
	}
	if strings.Contains(f.log.String(), "SECRETSOURCE") {
		t.Errorf("the log names a source:\n%s", f.log)
	}
}

func quick(c *openbrain.Config) { c.EmbedMaxWait = 5 * time.Millisecond }

func TestEmbedderDownThenUp(t *testing.T) {
	store, e := memory.New(), &fakeEmbedder{down: true}
	f := serve(t, store, quick, openbrain.WithEmbedder(e))
	f.post(t, "", "a", "my automobile is red", `{}`)
	f.post(t, "", "b", "light drizzle today", `{}`)
	f.settle(t, stats{Total: 2, Pending: 2})
	if l := f.search(t, "", map[string]any{"query": "automobile"}); l.Count != 1 {
		t.Errorf("while down, words find %q, want the automobile", l.contents())
	}
	if l := f.search(t, "", map[string]any{"query": "car"}); l.Count != 0 {
		t.Errorf("while down, %q is found for a synonym", l.contents())
	}
	e.set(false)
	f.settle(t, stats{Total: 2, Embedded: 2})
	l := f.search(t, "", map[string]any{"query": "car", "limit": 1})
	for l.Count == 0 && t.Context().Err() == nil { // until the worker has noted its success
		l = f.search(t, "", map[string]any{"query": "car", "limit": 1})
	}
	if l.Count != 1 || l.Thoughts[0].Content != "my automobile is red" || *l.Thoughts[0].Similarity > 1 {
		t.Errorf("a synonym finds %+v, want the automobile", l.Thoughts)
	}
	// A search over several sources embeds its query once.
	e.mu.Lock()
	if n := e.texts["car"]; n != 1 {
		t.Errorf("the query was embedded %d times, want once", n)
	}
	e.mu.Unlock()
	made := f.post(t, "", "a", "drizzle again", `{}`)
	f.settle(t, stats{Total: 3, Embedded: 3})
	f.want(t, 200, "", "PATCH", "/v1/thoughts/"+made.ID, `{"content":"another vehicle"}`, nil)
	f.settle(t, stats{Total: 3, Embedded: 3})
	l = f.search(t, "", map[string]any{"query": "car", "source": "a", "limit": 2})
	if got := strings.Join(l.contents(), "|"); got != "another vehicle|my automobile is red" && got != "my automobile is red|another vehicle" {
		t.Errorf("after PATCH a synonym finds %q", got)
	}
	f.want(t, 200, "", "DELETE", "/v1/thoughts/"+made.ID, "", nil)
	f.settle(t, stats{Total: 2, Embedded: 2})

	t.Run("after a restart everything is embedded again", func(t *testing.T) {
		again := serve(t, store, quick, openbrain.WithEmbedder(&fakeEmbedder{}))
		again.settle(t, stats{Total: 2, Embedded: 2})
	})
	t.Run("an embedder that dies does not break searches", func(t *testing.T) {
		e.set(true)
		if l := f.search(t, "", map[string]any{"query": "drizzle or so"}); l.Count != 1 {
			t.Errorf("search = %q, want the drizzle by its word", l.contents())
		}
	})
}

func TestCloseWaitsForTheWorker(t *testing.T) {
	e := &fakeEmbedder{down: true}
	f := serve(t, nil, quick, openbrain.WithEmbedder(e))
	f.post(t, "", "a", "x", `{}`)
	for range 2 {
		if err := f.server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	e.mu.Lock()
	calls := e.calls
	e.mu.Unlock()
	f.post(t, "", "a", "y", `{}`) // stored; nobody embeds any more
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls != calls {
		t.Errorf("embedder was called %d times after Close", e.calls-calls)
	}
}
