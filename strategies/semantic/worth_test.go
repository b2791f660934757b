package semantic_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/strategies/semantic"
)

// dullEmbedder answers what it is told to while it is told to, and then as it should.
type dullEmbedder struct {
	*wordEmbedder
	answer []float32
}

func (d *dullEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if d.answer == nil {
		return d.wordEmbedder.Embed(ctx, texts)
	}
	out := make([][]float32, len(texts))
	for i := range out {
		out[i] = d.answer
	}
	return out, nil
}

// TestVectorsThatCannotBeCompared: an embedder that answers zeros, no numbers, or the same for everything is an error and finds nothing, and what it was asked
// for meanwhile is found once it answers as it should, also after a restart.
func TestVectorsThatCannotBeCompared(t *testing.T) {
	nan, same := make([]float32, 256), make([]float32, 256)
	for i := range same {
		nan[i], same[i] = float32(math.NaN()), 1
	}
	for name, answer := range map[string][]float32{"zeros": make([]float32, 256), "no numbers": nan, "the same": same} {
		t.Run(name, func(t *testing.T) {
			store := &listStore{}
			texts := []string{"the kite is red", "the boat is blue", "the house is white", "a tree", "two hills", "some bread", "the last train", "nobody home"}
			for i, text := range texts {
				store.add(entry(string(rune('a'+i)), "s", int64(i), text))
			}
			e := &dullEmbedder{&wordEmbedder{}, answer}
			x, err := semantic.NewVector(semantic.DefaultVectorConfig(), e)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Attach(store); err != nil {
				t.Fatal(err)
			}
			r, err := semantic.New(semantic.DefaultConfig(), x)
			if err != nil {
				t.Fatal(err)
			}
			ask := func() ([]core.Candidate, error) {
				return r.Retrieve(t.Context(), core.Query{
					Scope: core.Scope{Agent: "ada"}, Prompt: "which kite is red?", Limit: 1, Tokens: 100, InWindow: func(string) bool { return false },
				})
			}
			if got, err := ask(); !errors.Is(err, core.ErrUnavailable) || len(got) > 0 {
				t.Errorf("%d candidates, error %v, want core.ErrUnavailable", len(got), err)
			}
			if err := x.Load(t.Context(), "ada"); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("Load: error %v, want core.ErrUnavailable", err)
			}
			if x.Pending("ada") != len(texts) {
				t.Errorf("%d entries wait for an embedder that works, want all %d", x.Pending("ada"), len(texts))
			}
			e.answer = nil
			if got, err := ask(); err != nil || len(got) != 1 || got[0].Entry.ID != "a" {
				t.Errorf("once it answers: %+v, %v", got, err)
			}
			e.answer = make([]float32, 256)
			if got, err := ask(); !errors.Is(err, core.ErrUnavailable) || len(got) > 0 {
				t.Errorf("zeros again: %d candidates, error %v", len(got), err)
			}
		})
	}
}

// TestOneTextWithoutAVector does not hold up the others.
func TestOneTextWithoutAVector(t *testing.T) {
	store := &listStore{}
	store.add(entry("a", "s", 0, "the kite is red"))
	blank := entry("b", "s", 1, "\u00a0\u2060")
	blank.Message = message.New(message.User, "\u2060")
	store.add(blank)
	e := &wordEmbedder{}
	x, err := semantic.NewVector(semantic.DefaultVectorConfig(), silent{e})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Attach(store); err != nil {
		t.Fatal(err)
	}
	got, err := x.Search(t.Context(), core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: "red kite", Limit: 5})
	if err != nil || len(got) != 1 || got[0].Entry.ID != "a" || x.Pending("ada") != 0 {
		t.Errorf("%+v, %v, %d pending", got, err, x.Pending("ada"))
	}
}

// silent has zeros for a text without a letter.
type silent struct{ *wordEmbedder }

func (s silent) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out, err := s.wordEmbedder.Embed(ctx, texts)
	for i, text := range texts {
		if text == "\u2060" {
			out[i] = make([]float32, s.Dimensions())
		}
	}
	return out, err
}
