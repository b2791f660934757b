package sqlite_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// vectorsOf makes two vectors for each entry.
func vectorsOf(of []core.Entry, dimensions int) []vector.Vector {
	var out []vector.Vector
	for i, e := range of {
		for part := range 2 {
			values := make([]float32, dimensions)
			for j := range values {
				values[j] = float32(i*100+part*10+j) / 7
			}
			out = append(out, vector.Vector{ID: e.ID, Part: part, Start: part * 5, End: part*5 + 5, Hash: ^uint64(i), Values: values})
		}
	}
	return out
}

// allVectors returns the vectors of ann in a space.
func allVectors(tb testing.TB, s vector.Store, space string, limit int) []vector.Vector {
	tb.Helper()
	var out []vector.Vector
	q := vector.Query{Space: space, Agent: "ann", Limit: limit}
	for {
		page, err := s.ScanVectors(tb.Context(), q)
		if err != nil {
			tb.Fatalf("ScanVectors: %v", err)
		}
		if len(page.Vectors) > limit {
			tb.Fatalf("ScanVectors returned %d vectors for a limit of %d", len(page.Vectors), limit)
		}
		out = append(out, page.Vectors...)
		if page.Next == "" {
			return out
		}
		q.Cursor = page.Next
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	bob := core.SessionID{Agent: "bob", Session: "b"}
	mustAppend(t, s, append(entries(ann, 0, 10), entries(bob, 0, 3)...)...)
	want := vectorsOf(entries(ann, 0, 10), 3)
	put := append(vectorsOf(entries(bob, 0, 3), 3), vectorsOf(entries(ann, 90, 92), 3)...) // the last ones are of no entry
	if err := s.PutVectors(t.Context(), "m/3", append(put, want...)); err != nil {
		t.Fatal(err)
	}
	if err := s.PutVectors(t.Context(), "n/2", vectorsOf(entries(ann, 0, 2), 2)); err != nil {
		t.Fatal(err)
	}
	want[3].Values, want[3].Hash = []float32{1, -2, 3}, 7
	if err := s.PutVectors(t.Context(), "m/3", want[3:4]); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 20, 1000} {
		if diff := cmp.Diff(want, allVectors(t, s, "m/3", limit)); diff != "" {
			t.Errorf("vectors in pages of %d (-want +got):\n%s", limit, diff)
		}
	}
	for _, bad := range [][]vector.Vector{{{ID: "ann-one-1", Values: []float32{1, 2}}}, {{ID: "ann-one-1"}},
		{{ID: "ann-one-1", Values: []float32{1, 2, 3}}, {ID: "ann-one-2", Values: []float32{1}}}} {
		if err := s.PutVectors(t.Context(), "m/3", bad); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("PutVectors of another length = %v, want ErrInvalid", err)
		}
	}
	spaces := func(agent string) []vector.Space {
		t.Helper()
		out, err := s.VectorSpaces(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if diff := cmp.Diff([]vector.Space{{Name: "m/3", Dimensions: 3, Entries: 13}, {Name: "n/2", Dimensions: 2, Entries: 2}}, spaces("")); diff != "" {
		t.Errorf("VectorSpaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]vector.Space{{Name: "m/3", Dimensions: 3, Entries: 3}}, spaces("bob")); diff != "" {
		t.Errorf("VectorSpaces of bob (-want +got):\n%s", diff)
	}
	// They go with their entries.
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{"ann-one-0"}); err != nil {
		t.Fatal(err)
	}
	m := message.New(message.User, "other")
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-9", core.Change{Message: &m, Fingerprint: "f"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-8", core.Change{Meta: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2:18], allVectors(t, s, "m/3", 5)); diff != "" {
		t.Errorf("vectors after a deletion and a change (-want +got):\n%s", diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg)
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.DropVectors(t.Context(), "m/3", "bob"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2:18], allVectors(t, s, "m/3", 5)); diff != "" || len(spaces("bob")) > 0 {
		t.Errorf("vectors after those of bob were dropped (-want +got):\n%s", diff)
	}
	if err := s.DropVectors(t.Context(), "m/3", ""); err != nil {
		t.Fatal(err)
	}
	if err := s.PutVectors(t.Context(), "m/3", vectorsOf(entries(ann, 2, 3), 5)); err != nil {
		t.Errorf("PutVectors of another length into an empty space: %v", err)
	}
	if got := slices.Collect(func(yield func(string) bool) {
		for _, sp := range spaces("ann") {
			yield(fmt.Sprint(sp))
		}
	}); !slices.Equal(got, []string{"{m/3 5 1}", "{n/2 2 1}"}) {
		t.Errorf("VectorSpaces at the end = %v", got)
	}
}
