package postgres_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/internal/drawn"
)

func TestNoVectorsWithoutTheExtension(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	if _, ok := core.As[vector.Store](s); ok {
		t.Error("a server without the extension shows a core.VectorStore")
	}
	if _, ok := core.As[vector.Searcher](s); ok {
		t.Error("a server without the extension shows a core.VectorSearcher")
	}
	if err := s.IndexVectors(t.Context(), "m"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("IndexVectors: %v, want ErrUnsupported", err)
	}
	cfg.Vectors = postgres.VectorsOn
	if _, err := postgres.Open(t.Context(), cfg); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Open with vectors on: %v, want ErrUnsupported", err)
	}
}

// vectorSide opens a store with vectors on the server that can keep them.
func vectorSide(t *testing.T, change func(*postgres.Config)) (*postgres.Store, vector.Store, vector.Searcher) {
	t.Helper()
	server := servers.Vector(t)
	cfg := config(t, server, server.Database(t))
	cfg.Vectors, cfg.Pooler = postgres.VectorsOn, true
	if change != nil {
		change(&cfg)
	}
	s := open(t, cfg)
	store, ok1 := core.As[vector.Store](s)
	searcher, ok2 := core.As[vector.Searcher](s)
	if !ok1 || !ok2 {
		t.Fatal("a server with the extension shows no vectors")
	}
	return s, store, searcher
}

// random returns a vector of length 1.
func random(rnd *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func scanAll(t *testing.T, s vector.Store, space, agent string) []vector.Vector {
	t.Helper()
	var out []vector.Vector
	q := vector.Query{Space: space, Agent: agent, Limit: 3}
	for {
		page, err := s.ScanVectors(t.Context(), q)
		if err != nil {
			t.Fatalf("ScanVectors: %v", err)
		}
		out = append(out, page.Vectors...)
		if page.Next == "" {
			return out
		}
		q.Cursor = page.Next
	}
}

func TestVectors(t *testing.T) {
	s, store, searcher := vectorSide(t, nil)
	rnd := drawn.Rand(t)
	bob := core.SessionID{Agent: "bob", Session: "one"}
	mustAppend(t, s, append(entries(ann, 0, 6), entries(bob, 0, 2)...)...)
	var mine []vector.Vector
	for n := range 6 {
		for part := range 1 + n%2 {
			mine = append(mine, vector.Vector{ID: fmt.Sprint("ann-one-", n), Part: part, Start: part * 5, End: 9, Hash: math.MaxUint64 - uint64(n), Values: random(rnd, 8)})
		}
	}
	theirs := vector.Vector{ID: "bob-one-0", Hash: 1, Values: random(rnd, 8)}
	given := append(slices.Clone(mine), theirs, vector.Vector{ID: "nobody", Values: random(rnd, 8)})
	if err := store.PutVectors(t.Context(), "m/8", given); err != nil {
		t.Fatalf("PutVectors: %v", err)
	}
	if diff := cmp.Diff(mine, scanAll(t, store, "m/8", "ann")); diff != "" {
		t.Errorf("ScanVectors (-want +got):\n%s", diff)
	}
	spaces, err := store.VectorSpaces(t.Context(), "")
	if diff := cmp.Diff([]vector.Space{{Name: "m/8", Dimensions: 8, Entries: 7}}, spaces); err != nil || diff != "" {
		t.Errorf("VectorSpaces: %v (-want +got):\n%s", err, diff)
	}
	for name, bad := range map[string][]vector.Vector{
		"other dimensions": {{ID: "ann-one-0", Values: random(rnd, 9)}}, "mixed": {mine[0], {ID: "ann-one-1", Values: random(rnd, 9)}},
		"nothing": {{ID: "ann-one-0"}}, "no number": {{ID: "ann-one-0", Values: []float32{1, 2, 3, 4, 5, 6, 7, float32(math.NaN())}}},
	} {
		if err := store.PutVectors(t.Context(), "m/8", bad); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("PutVectors, %s: %v, want ErrInvalid", name, err)
		}
	}
	hits, err := searcher.SearchVectors(t.Context(), "m/8", mine[0].Values, core.SearchQuery{Scope: core.Scope{Agent: "ann"}, Limit: 4})
	if err != nil || len(hits) != 4 || hits[0].Entry.ID != mine[0].ID || math.Abs(hits[0].Score-1) > 1e-5 || hits[1].Score >= hits[0].Score {
		t.Errorf("SearchVectors: %v, %v, want the entry itself first, with score 1", hits, err)
	}
	if hits, err := searcher.SearchVectors(t.Context(), "other", mine[0].Values, core.SearchQuery{Scope: ann.Scope(), Limit: 4}); err != nil || len(hits) != 0 {
		t.Errorf("SearchVectors of an unknown space: %d hits, %v, want none", len(hits), err)
	}

	// What is deleted, changed or erased has no vectors.
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{"ann-one-0"}); err != nil {
		t.Fatal(err)
	}
	m := message.New(message.User, "new")
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-1", core.Change{Message: &m}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-2", core.Change{Meta: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	left := slices.DeleteFunc(slices.Clone(mine), func(v vector.Vector) bool { return v.ID == "ann-one-0" || v.ID == "ann-one-1" })
	if diff := cmp.Diff(left, scanAll(t, store, "m/8", "ann")); diff != "" {
		t.Errorf("after Delete and Update (-want +got):\n%s", diff)
	}
	if err := store.DropVectors(t.Context(), "m/8", "ann"); err != nil {
		t.Fatal(err)
	}
	if got := scanAll(t, store, "m/8", "ann"); len(got) != 0 {
		t.Errorf("%d vectors after DropVectors, want none", len(got))
	}
	if diff := cmp.Diff([]vector.Vector{theirs}, scanAll(t, store, "m/8", "bob")); diff != "" {
		t.Errorf("another agent's vectors after DropVectors (-want +got):\n%s", diff)
	}
	if err := store.DropVectors(t.Context(), "m/8", ""); err != nil {
		t.Fatal(err)
	}
	if err := store.PutVectors(t.Context(), "m/8", []vector.Vector{{ID: "ann-one-3", Values: random(rnd, 5)}}); err != nil {
		t.Errorf("PutVectors of other dimensions after all were dropped: %v", err)
	}
}

// TestVectorIndex compares what the index finds with what comparing one by one does, in full and in half precision.
func TestVectorIndex(t *testing.T) {
	for dimensions, n := range map[int]int{32: 300, 2100: 50} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			s, store, searcher := vectorSide(t, func(c *postgres.Config) { c.ExactVectors = 20 })
			rnd := rand.New(rand.NewPCG(2, 2))
			whole := map[string][]float32{}
			for _, agent := range []string{"ann", "bob"} {
				id := core.SessionID{Agent: agent, Session: "one"}
				for from := 0; from < n; from += 50 {
					mustAppend(t, s, entries(id, from, from+50)...)
					var some []vector.Vector
					for i := range 50 {
						v := vector.Vector{ID: fmt.Sprintf("%s-one-%d", agent, from+i), Values: random(rnd, dimensions)}
						if agent == "ann" {
							whole[v.ID] = v.Values
						}
						some = append(some, v)
					}
					if err := store.PutVectors(t.Context(), "m", some); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 2 { // the second call finds it made
				if err := s.IndexVectors(t.Context(), "m"); err != nil {
					t.Fatalf("IndexVectors: %v", err)
				}
			}
			found := 0
			const questions, limit = 20, 10
			for range questions {
				query := random(rnd, dimensions)
				hits, err := searcher.SearchVectors(t.Context(), "m", query, core.SearchQuery{Scope: core.Scope{Agent: "ann"}, Limit: limit})
				if err != nil || len(hits) != limit {
					t.Fatalf("SearchVectors: %d hits, %v, want %d", len(hits), err, limit)
				}
				best := nearest(whole, query, limit)
				for _, h := range hits {
					if h.Entry.Agent != "ann" {
						t.Errorf("hit %q is another agent's", h.Entry.ID)
					}
					if slices.Contains(best, h.Entry.ID) {
						found++
					}
				}
			}
			t.Logf("%d dimensions: the index finds %d of %d", dimensions, found, questions*limit)
			if found < questions*limit*9/10 {
				t.Errorf("the index finds %d of the %d nearest, want nine of ten", found, questions*limit)
			}
			if err := store.DropVectors(t.Context(), "m", ""); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func nearest(vectors map[string][]float32, to []float32, n int) []string {
	score := map[string]float64{}
	var out []string
	for id, v := range vectors {
		for i := range v {
			score[id] += float64(v[i]) * float64(to[i])
		}
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b string) int {
		if score[a] > score[b] {
			return -1
		}
		return 1
	})
	return out[:n]
}
