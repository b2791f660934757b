package semantic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/semantic"
)

func newVector(t *testing.T, store core.Store, e core.Embedder, change func(*semantic.VectorConfig)) *semantic.VectorIndex {
	t.Helper()
	cfg := semantic.DefaultVectorConfig()
	if change != nil {
		change(&cfg)
	}
	x, err := semantic.NewVector(cfg, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Attach(store); err != nil {
		t.Fatal(err)
	}
	return x
}

func found(t *testing.T, s core.Searcher, q core.SearchQuery) string {
	t.Helper()
	if q.Scope.Agent == "" {
		q.Scope.Agent = "ada"
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	hits, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range hits {
		ids = append(ids, h.Entry.ID)
	}
	return strings.Join(ids, " ")
}

func TestVectorOrderAndFilters(t *testing.T) {
	beat := entry("beat", "one", 9, "red kite")
	beat.Type = core.TypeHeartbeat
	foreign := entry("foreign", "one", 9, "red kite")
	foreign.Agent = "bob"
	store := &listStore{entries: []core.Entry{
		entry("far", "one", 0, "red barn door"), entry("near", "one", 1, "red kite sky"), entry("b", "two", 2, "red kite"),
		entry("a", "one", 2, "red kite"), entry("empty", "one", 3, " "), beat, foreign,
	}}
	x := newVector(t, store, &wordEmbedder{}, nil)
	rows := []struct {
		name string
		q    core.SearchQuery
		want string
	}{
		{"nearest first, ties by id", core.SearchQuery{Text: "red kite"}, "a b near far"},
		{"limit", core.SearchQuery{Text: "red kite", Limit: 2}, "a b"},
		{"session", core.SearchQuery{Scope: core.Scope{Agent: "ada", Session: "two"}, Text: "red kite"}, "b"},
		{"exclude before the limit", core.SearchQuery{Text: "red kite", Limit: 1, Exclude: func(id string) bool { return id != "far" }}, "far"},
		{"times", core.SearchQuery{Text: "red kite", From: noon.Add(time.Minute), To: noon.Add(2 * time.Minute)}, "near"},
		{"unknown agent", core.SearchQuery{Scope: core.Scope{Agent: "eve"}, Text: "red kite"}, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if got := found(t, x, r.q); got != r.want {
				t.Errorf("hits = %q, want %q", got, r.want)
			}
		})
	}
}

func TestVectorFollowsTheStore(t *testing.T) {
	store := &listStore{entries: []core.Entry{entry("old", "s", 0, "red kite")}}
	x := newVector(t, store, &wordEmbedder{}, nil)
	late := entry("late", "s", 1, "red kite")
	store.add(late)
	if err := x.Appended(t.Context(), []core.Entry{late}); err != nil { // before anything is read: the scan finds it
		t.Fatal(err)
	}
	if got := found(t, x, core.SearchQuery{Text: "red kite"}); got != "late old" {
		t.Fatalf("hits = %q, want %q", got, "late old")
	}
	next := entry("next", "s", 2, "red kite")
	store.add(next)
	for range 2 {
		if err := x.Appended(t.Context(), []core.Entry{next}); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.Pending("ada"); got != 1 {
		t.Errorf("Pending() = %d, want 1", got)
	}
	store.drop("old")
	if err := x.Deleted(t.Context(), core.Scope{Agent: "ada"}, []string{"old"}); err != nil {
		t.Fatal(err)
	}
	store.drop("late")
	late.Message = message.New(message.User, "green pond")
	store.add(late)
	if err := x.Updated(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := x.Pending("ada"); got != 0 {
		t.Errorf("Pending() after Flush = %d, want 0", got)
	}
	if got := found(t, x, core.SearchQuery{Text: "green pond", Limit: 1}); got != "late" {
		t.Errorf("hits = %q, want the changed entry", got)
	}
	if got := found(t, x, core.SearchQuery{Text: "red kite"}); got != "next late" {
		t.Errorf("hits = %q, want %q", got, "next late")
	}
}

// TestVectorErasureWhileEmbedding deletes and changes entries whose texts are on their way to the embedder.
func TestVectorErasureWhileEmbedding(t *testing.T) {
	store := &listStore{entries: []core.Entry{entry("gone", "s", 0, "red kite"), entry("changed", "s", 1, "red kite"), entry("stays", "s", 2, "red kite")}}
	emb := &wordEmbedder{}
	x := newVector(t, store, emb, nil)
	var once sync.Once
	emb.during = func() {
		once.Do(func() {
			store.drop("gone")
			_ = x.Deleted(t.Context(), core.Scope{Agent: "ada"}, []string{"gone"})
			store.drop("changed")
			e := entry("changed", "s", 1, "green pond")
			store.add(e)
			_ = x.Updated(t.Context(), e)
		})
	}
	if got := found(t, x, core.SearchQuery{Text: "red kite", Limit: 1}); got != "stays" {
		t.Errorf("hits = %q, want %q", got, "stays")
	}
	if got := found(t, x, core.SearchQuery{Text: "green pond", Limit: 1}); got != "changed" {
		t.Errorf("hits = %q, want %q: its new text", got, "changed")
	}
	if got := found(t, x, core.SearchQuery{Text: "red kite", Limit: 9}); got != "stays changed" {
		t.Errorf("hits = %q, want nothing of what was deleted", got)
	}
}

// TestVectorDeletedWhileReading deletes an entry of a page that was read but not indexed yet.
func TestVectorDeletedWhileReading(t *testing.T) {
	store := &listStore{entries: []core.Entry{entry("gone", "s", 0, "red kite"), entry("stays", "s", 1, "red kite")}}
	x := newVector(t, store, &wordEmbedder{}, nil)
	store.onScan = func() { _ = x.Deleted(t.Context(), core.Scope{Agent: "ada"}, []string{"gone"}) }
	if got := found(t, x, core.SearchQuery{Text: "red kite"}); got != "stays" {
		t.Errorf("hits = %q, want %q", got, "stays")
	}
}

func TestVectorEmbedderDown(t *testing.T) {
	store := &listStore{entries: []core.Entry{entry("a", "s", 0, "red kite")}}
	emb := &wordEmbedder{err: core.ErrUnavailable}
	x := newVector(t, store, emb, nil)
	q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "red kite", Limit: 5}
	if _, err := x.Search(t.Context(), q); !errors.Is(err, core.ErrUnavailable) {
		t.Fatalf("Search() error = %v, want core.ErrUnavailable: nothing is embedded", err)
	}
	if err := x.Flush(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Flush() error = %v, want core.ErrUnavailable", err)
	}
	emb.set(func(w *wordEmbedder) { w.err = nil })
	if got := found(t, x, q); got != "a" {
		t.Fatalf("hits = %q, want %q after the embedder is back", got, "a")
	}
	// Texts of entries fail, the query does not: what is embedded answers.
	b := entry("b", "s", 1, "red kite")
	store.add(b)
	if err := x.Appended(t.Context(), []core.Entry{b}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	emb.set(func(w *wordEmbedder) {
		w.err = core.ErrUnavailable
		w.during = func() {
			if calls++; calls == 1 {
				emb.set(func(w *wordEmbedder) { w.err = nil })
			}
		}
	})
	if got := found(t, x, q); got != "a" {
		t.Errorf("hits = %q, want %q", got, "a")
	}
	if got := x.Pending("ada"); got != 1 {
		t.Errorf("Pending() = %d, want 1", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("Search() error = %v, want context.Canceled", err)
	}
}

func TestVectorBatches(t *testing.T) {
	store := &listStore{}
	for i := range 30 {
		store.entries = append(store.entries, entry(fmt.Sprintf("e%d", i), "s", int64(i), "red kite"))
	}
	store.entries = append(store.entries, entry("bad", "s", 99, "red poison"))
	emb := &wordEmbedder{poison: "poison"}
	x := newVector(t, store, emb, func(c *semantic.VectorConfig) { c.Batch, c.PerSearch = 4, 10 })
	found(t, x, core.SearchQuery{Text: "red"})
	if got := x.Pending("ada"); got != 21 {
		t.Errorf("Pending() = %d after one search, want 21", got)
	}
	if err := x.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := len(strings.Fields(found(t, x, core.SearchQuery{Text: "red", Limit: 100}))); got != 30 {
		t.Errorf("%d hits, want 30: one invalid text holds up nobody", got)
	}
	if emb.largest != 4 {
		t.Errorf("largest batch = %d, want 4", emb.largest)
	}
}

func TestVectorConcurrentUse(t *testing.T) {
	store := &listStore{}
	x := newVector(t, store, &wordEmbedder{}, nil)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				e := entry(fmt.Sprintf("w%d-%d", w, i), "s", int64(i), "red kite")
				store.add(e)
				if err := x.Appended(t.Context(), []core.Entry{e}); err != nil {
					t.Error(err)
				}
				if _, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "red", Limit: 3}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(strings.Fields(found(t, x, core.SearchQuery{Text: "red", Limit: 1000}))); got != 100 {
		t.Errorf("%d hits, want 100: nothing lost, nothing twice", got)
	}
}

func TestVectorInvalid(t *testing.T) {
	if _, err := semantic.NewVector(semantic.DefaultVectorConfig(), nil); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("NewVector(nil) error = %v, want core.ErrInvalid", err)
	}
	x, err := semantic.NewVector(semantic.DefaultVectorConfig(), &wordEmbedder{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "x", Limit: 1}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("Search() before Attach: error = %v, want core.ErrInvalid", err)
	}
}
