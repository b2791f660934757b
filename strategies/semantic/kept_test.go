package semantic_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// vectorStore is a listStore that keeps vectors.
type vectorStore struct {
	listStore
	spaces map[string]map[string]vector.Vector // by space and id
	putErr error
	read   int
}

func (s *vectorStore) agentOf(id string) string {
	for _, e := range s.entries {
		if e.ID == id {
			return e.Agent
		}
	}
	return ""
}

func (s *vectorStore) PutVectors(_ context.Context, space string, vectors []vector.Vector) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.putErr != nil {
		return s.putErr
	}
	if s.spaces == nil {
		s.spaces = map[string]map[string]vector.Vector{}
	}
	if s.spaces[space] == nil {
		s.spaces[space] = map[string]vector.Vector{}
	}
	for _, v := range vectors {
		if s.agentOf(v.ID) != "" {
			v.Values = slices.Clone(v.Values)
			s.spaces[space][v.ID] = v
		}
	}
	return nil
}

func (s *vectorStore) ScanVectors(_ context.Context, q vector.Query) (vector.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []vector.Vector
	for id, v := range s.spaces[q.Space] {
		if s.agentOf(id) == q.Agent {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b vector.Vector) int { return cmp.Compare(a.ID, b.ID) })
	from, _ := strconv.Atoi(string(q.Cursor))
	end := min(from+min(q.Limit, 4), len(all))
	page := vector.Page{Vectors: all[from:end]}
	if end < len(all) {
		page.Next = core.Cursor(strconv.Itoa(end))
	}
	s.read += len(page.Vectors)
	return page, nil
}

func (s *vectorStore) VectorSpaces(_ context.Context, agent string) ([]vector.Space, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []vector.Space
	for name, vectors := range s.spaces {
		space := vector.Space{Name: name}
		for id, v := range vectors {
			if s.agentOf(id) == agent {
				space.Entries++
				space.Dimensions = len(v.Values)
			}
		}
		if space.Entries > 0 {
			out = append(out, space)
		}
	}
	slices.SortFunc(out, func(a, b vector.Space) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

func (s *vectorStore) DropVectors(_ context.Context, space, agent string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.spaces[space] {
		if agent == "" || s.agentOf(id) == agent {
			delete(s.spaces[space], id)
		}
	}
	return nil
}

// searchingStore compares on its side.
type searchingStore struct {
	vectorStore
	searches int
}

func (s *searchingStore) SearchVectors(ctx context.Context, space string, to []float32, q core.SearchQuery) ([]core.Hit, error) {
	s.searches++
	var hits []core.Hit
	for id, v := range s.spaces[space] {
		var dot float64
		for i := range to {
			dot += float64(to[i]) * float64(v.Values[i])
		}
		es, err := s.Get(ctx, q.Scope, []string{id})
		if err == nil && (q.Exclude == nil || !q.Exclude(id)) {
			hits = append(hits, core.Hit{Entry: es[0], Score: dot})
		}
	}
	slices.SortFunc(hits, func(a, b core.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	return hits[:min(len(hits), q.Limit)], nil
}

// hollowStore is a decorator that promises what its inner store cannot do.
type hollowStore struct{ core.Store }

func (s hollowStore) Unwrap() core.Store { return s.Store }
func (hollowStore) PutVectors(context.Context, string, []vector.Vector) error {
	return errors.ErrUnsupported
}
func (hollowStore) ScanVectors(context.Context, vector.Query) (vector.Page, error) {
	return vector.Page{}, errors.ErrUnsupported
}
func (hollowStore) VectorSpaces(context.Context, string) ([]vector.Space, error) {
	return nil, errors.ErrUnsupported
}
func (hollowStore) DropVectors(context.Context, string, string) error { return errors.ErrUnsupported }
func (hollowStore) SearchVectors(context.Context, string, []float32, core.SearchQuery) ([]core.Hit, error) {
	return nil, errors.ErrUnsupported
}

// otherModel is a wordEmbedder by another name.
type otherModel struct {
	*wordEmbedder
	name   string
	hidden bool // its dimensions are not known before a call
}

func (o otherModel) Model() string { return o.name }
func (o otherModel) Dimensions() int {
	if o.hidden {
		return 0
	}
	return o.wordEmbedder.Dimensions()
}

func kites(n int) []core.Entry {
	var out []core.Entry
	for i := range n {
		out = append(out, entry(fmt.Sprintf("e%02d", i), "s", int64(i), fmt.Sprintf("  red kite number%d ", i)))
	}
	return out
}

func TestVectorsSurviveARestart(t *testing.T) {
	for _, searching := range []bool{false, true} {
		t.Run(fmt.Sprintf("store searches: %v", searching), func(t *testing.T) {
			var store core.Store
			inner := &vectorStore{}
			store = inner
			if searching {
				s := &searchingStore{}
				inner, store = &s.vectorStore, s
			}
			inner.entries = kites(11)
			emb := &wordEmbedder{}
			x := newVector(t, store, emb, nil)
			want := found(t, x, core.SearchQuery{Text: "red kite number7", Limit: 3})
			if !strings.HasPrefix(want, "e07") {
				t.Fatalf("hits = %q, want e07 first", want)
			}
			// While the index is away, one entry is changed, one erased and one added.
			inner.entries[3].Message = message.New(message.User, "green pond")
			inner.entries[4].Type, inner.entries[4].Message = core.TypeErased, message.Message{}
			inner.entries = append(inner.entries, entry("late", "s", 50, "blue barn"))
			emb.calls = 0
			embedded := 0
			emb.during = nil
			y := newVector(t, store, emb, nil)
			if err := y.Reembed(t.Context(), "ada", func(done, total int) {
				embedded++
				if total != 11 {
					t.Errorf("progress: %d of %d, want of 11", done, total)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if emb.calls != 1 || embedded != 1 {
				t.Errorf("%d calls of the embedder, %d of progress, want 1: only two texts are new", emb.calls, embedded)
			}
			if got := found(t, y, core.SearchQuery{Text: "red kite number7", Limit: 3}); got != want {
				t.Errorf("hits = %q after a restart, want %q", got, want)
			}
			if got := found(t, y, core.SearchQuery{Text: "green pond", Limit: 1}); got != "e03" {
				t.Errorf("hits = %q, want the changed entry", got)
			}
			if got := found(t, y, core.SearchQuery{Text: "red", Limit: 99}); strings.Contains(got, "e04") {
				t.Errorf("hits = %q, want no erased entry", got)
			}
			for id, v := range inner.spaces["words/256"] {
				if i := slices.IndexFunc(inner.entries, func(e core.Entry) bool { return e.ID == id }); inner.entries[i].Text() != "" {
					if got := inner.entries[i].Text()[v.Start:v.End]; got != strings.TrimSpace(inner.entries[i].Text()) {
						t.Errorf("vector of %s is of %q", id, got)
					}
				}
			}
			if s, ok := store.(*searchingStore); ok && s.searches == 0 {
				t.Error("the store was never asked to search")
			}
		})
	}
}

func TestVectorsOfAnotherModel(t *testing.T) {
	store := &vectorStore{listStore: listStore{entries: kites(5)}}
	found(t, newVector(t, store, &wordEmbedder{}, nil), core.SearchQuery{Text: "red"})
	emb := otherModel{wordEmbedder: &wordEmbedder{}, name: "better", hidden: true}
	x := newVector(t, store, emb, nil)
	stale, err := x.Stale(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) != 1 || stale[0].Name != "words/256" || stale[0].Entries != 5 {
		t.Fatalf("Stale() = %+v, want words/256 with 5 entries", stale)
	}
	last := 0
	if err := x.Reembed(t.Context(), "ada", func(done, _ int) { last = done }); err != nil {
		t.Fatal(err)
	}
	if last != 5 {
		t.Errorf("progress ended at %d, want 5", last)
	}
	if n := len(store.spaces["words/256"]); n != 0 {
		t.Errorf("%d vectors of the old model left, want none", n)
	}
	if n := len(store.spaces["better/256"]); n != 5 {
		t.Errorf("%d vectors of the new model, want 5", n)
	}
	if stale, err := x.Stale(t.Context(), "ada"); err != nil || len(stale) != 0 {
		t.Errorf("Stale() = %v, %v after Reembed, want none", stale, err)
	}
}

// TestPaidVectorsAreNotBoughtAgain fails to store what was embedded.
func TestPaidVectorsAreNotBoughtAgain(t *testing.T) {
	store := &vectorStore{listStore: listStore{entries: kites(5)}, putErr: core.ErrUnavailable}
	emb := &wordEmbedder{}
	x := newVector(t, store, emb, nil)
	for range 3 {
		if err := x.Load(t.Context(), "ada"); !errors.Is(err, core.ErrUnavailable) {
			t.Fatalf("Load() error = %v, want core.ErrUnavailable", err)
		}
	}
	store.putErr = nil
	if err := x.Load(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if emb.calls != 1 {
		t.Errorf("%d calls of the embedder, want 1", emb.calls)
	}
	if n := len(store.spaces["words/256"]); n != 5 {
		t.Errorf("%d vectors in the store, want 5", n)
	}
}

func TestHollowDecorator(t *testing.T) {
	x := newVector(t, hollowStore{&listStore{entries: kites(3)}}, &wordEmbedder{}, nil)
	if got := found(t, x, core.SearchQuery{Text: "red kite number1", Limit: 1}); got != "e01" {
		t.Errorf("hits = %q, want %q", got, "e01")
	}
	if stale, err := x.Stale(t.Context(), "ada"); err != nil || stale != nil {
		t.Errorf("Stale() = %v, %v, want nothing", stale, err)
	}
	y := newVector(t, hollowStore{&listStore{entries: kites(3)}}, &wordEmbedder{}, nil)
	if err := y.Reembed(t.Context(), "ada", nil); err != nil {
		t.Errorf("Reembed() error = %v, want none", err)
	}
}
