package openbrain_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/hosts/openbrain"
)

func openSQLite(tb testing.TB, path string) core.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("sqlite: %v", err)
	}
	return s
}

// Ids, keys of requests, order, cursors, offsets, counts and searches are the same after a restart over a file.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thoughts.db")
	store := openSQLite(t, path)
	f := serve(t, store, twoKeys)
	var made []thought
	for i := range 30 {
		made = append(made, f.post(t, adminKey, fmt.Sprintf("s%d", i%3), fmt.Sprintf("heron number%d", i), fmt.Sprintf(`{"id":"k%d"}`, i)))
	}
	var changed thought
	f.want(t, 200, adminKey, http.MethodPatch, "/v1/thoughts/"+made[4].ID, `{"content":"a walrus"}`, &changed)
	made[4] = changed
	f.want(t, 200, adminKey, http.MethodDelete, "/v1/thoughts/"+made[5].ID, "", nil)
	asks := []string{
		"/v1/stats", "/v1/thoughts?limit=100", "/v1/thoughts?limit=7&offset=11", "/v1/thoughts/recent?limit=4&source=s1", "/v1/thoughts?metadata_id=k9",
	}
	var page list
	f.want(t, 200, adminKey, http.MethodGet, "/v1/thoughts?limit=10", "", &page)
	asks = append(asks, "/v1/thoughts?limit=10&cursor="+page.Next)
	before := map[string]string{}
	for _, path := range asks {
		before[path] = string(f.want(t, 200, adminKey, http.MethodGet, path, "", nil).body)
	}
	found := f.search(t, adminKey, map[string]any{"query": "heron number7", "limit": 50})
	if err := f.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store = openSQLite(t, path)
	t.Cleanup(func() { _ = store.Close() })
	f = serve(t, store, twoKeys)
	for _, path := range asks {
		if diff := cmp.Diff(before[path], string(f.want(t, 200, adminKey, http.MethodGet, path, "", nil).body)); diff != "" {
			t.Errorf("GET %s (-before +after):\n%s", path, diff)
		}
	}
	if diff := cmp.Diff(found, f.search(t, adminKey, map[string]any{"query": "heron number7", "limit": 50})); diff != "" {
		t.Errorf("search (-before +after):\n%s", diff)
	}
	for i, th := range made {
		if i == 5 {
			f.want(t, 404, adminKey, http.MethodGet, "/v1/thoughts/"+th.ID, "", nil)
			continue
		}
		var again thought
		body := encode(t, map[string]any{"content": fmt.Sprintf("heron number%d", i), "source": th.Source, "metadata": map[string]string{"id": fmt.Sprintf("k%d", i)}})
		f.want(t, 200, adminKey, http.MethodPost, "/v1/thoughts", body, &again)
		if diff := cmp.Diff(th, again); diff != "" {
			t.Errorf("repeated POST %d (-first +again):\n%s", i, diff)
		}
	}
	if l := f.search(t, adminKey, map[string]any{"query": "walrus", "limit": 1}); l.Count != 1 || l.Thoughts[0].ID != made[4].ID {
		t.Errorf("search for what was changed = %q", l.contents())
	}
}

// A clock that was set back, or is another server's, moves no thought before older ones, and hides none from a count or a delete.
func TestClockSetBack(t *testing.T) {
	store, clock := memory.New(), newClock()
	f := serve(t, store, nil, openbrain.WithClock(clock.Now))
	f.post(t, "", "s", "first", `{}`)
	f.post(t, "", "s", "second", `{}`)
	clock.add(-time.Hour)
	for i, g := range []*fixture{f, serve(t, store, nil, openbrain.WithClock(clock.Now))} {
		name := fmt.Sprint("server ", i)
		g.post(t, "", "s", name, `{}`)
		var l list
		g.want(t, 200, "", http.MethodGet, "/v1/thoughts/recent?limit=1", "", &l)
		if diff := cmp.Diff([]string{name}, l.contents()); diff != "" {
			t.Errorf("newest (-want +got):\n%s", diff)
		}
	}
	fresh := serve(t, store, nil, openbrain.WithClock(clock.Now))
	if r := fresh.want(t, 200, "", http.MethodGet, "/v1/stats", "", nil); !strings.Contains(string(r.body), `"total":4`) {
		t.Errorf("stats = %s, want 4", r.body)
	}
	var gone struct{ Deleted int }
	serve(t, store, nil, openbrain.WithClock(clock.Now)).want(t, 200, "", http.MethodDelete, "/v1/thoughts?source=s", "", &gone)
	if gone.Deleted != 4 {
		t.Errorf("deleted %d, want all 4", gone.Deleted)
	}
}
