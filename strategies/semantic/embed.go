package semantic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// embedPending embeds up to limit pending entries of an agent, all of them when limit is negative, batch by batch. Texts are read from
// the store at that moment, so a pending entry costs no text in memory and is never embedded in an old version. It tells progress, unless that
// is nil, after each batch.
func (x *VectorIndex) embedPending(ctx context.Context, v *vectors, limit int, progress func(done, total int)) error {
	if limit == 0 || len(v.first(1)) == 0 {
		return nil
	}
	if err := v.enter(ctx); err != nil {
		return err
	}
	defer v.leave()
	for limit != 0 {
		n := x.cfg.Batch
		if limit > 0 {
			n = min(n, limit)
			limit -= n
		}
		batch := v.first(n)
		if len(batch) == 0 {
			return nil
		}
		found, err := x.embedBatch(ctx, v, batch)
		if err != nil {
			return err
		}
		v.settle(batch, found)
		if progress != nil {
			progress(v.count())
		}
	}
	return nil
}

// embedBatch returns the vectors of items, and keeps them in the store where it has room for them.
func (x *VectorIndex) embedBatch(ctx context.Context, v *vectors, batch []*item) (map[string][]float32, error) {
	ids := make([]string, len(batch))
	for i, it := range batch {
		ids[i] = it.id
	}
	entries, err := getSome(ctx, v.src.store, core.Scope{Agent: v.agent}, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]float32, len(entries))
	texts, of := make([]string, 0, len(entries)), make([]string, 0, len(entries))
	kept := make([]vector.Vector, 0, len(entries))
	for _, e := range entries {
		text := embedded(e, x.cfg.MaxChars)
		if text == "" || e.Type == core.TypeErased {
			continue
		}
		start := strings.Index(e.Text(), text)
		kept = append(kept, vector.Vector{ID: e.ID, Start: start, End: start + len(text), Hash: hashOf(text)})
		if p, ok := v.paid[e.ID]; ok && p.hash == hashOf(text) {
			found[e.ID] = p.vector
			continue
		}
		texts, of = append(texts, text), append(of, e.ID)
	}
	fresh, err := x.embedTexts(ctx, texts, of)
	if err != nil {
		return nil, err
	}
	maps.Copy(found, fresh)
	return found, x.keep(ctx, v, kept, found)
}

// embedTexts returns the vectors of texts by entry id. Where the embedder calls a batch invalid, each text is tried on its own, and those
// that it will never take are left out: one such text must not hold up all others.
func (x *VectorIndex) embedTexts(ctx context.Context, texts, ids []string) (map[string][]float32, error) {
	found := make(map[string][]float32, len(ids))
	if len(texts) == 0 {
		return found, nil
	}
	got, err := x.embed(ctx, texts)
	switch {
	case err == nil:
		for i, id := range ids {
			if found[id] = got[i]; got[i] == nil {
				x.log.WarnContext(ctx, "semantic: entry cannot be compared", slog.String("entry", id))
			}
		}
		return found, nil
	case !errors.Is(err, core.ErrInvalid):
		return nil, err
	}
	for i, id := range ids {
		got, err := x.embed(ctx, texts[i:i+1])
		switch {
		case err == nil:
			found[id] = got[0]
		case errors.Is(err, core.ErrInvalid):
			x.log.WarnContext(ctx, "semantic: entry cannot be embedded", slog.String("entry", id), slog.String("error", err.Error()))
		default:
			return nil, err
		}
	}
	return found, nil
}

// embed asks the embedder and returns vectors of length 1, nil for a text whose vector has no length in numbers: it cannot be compared. Where no text's can, or
// all texts have the same one, it is an error.
func (x *VectorIndex) embed(ctx context.Context, texts []string) ([][]float32, error) {
	got, err := x.embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed with %q: %w", x.embedder.Model(), err)
	}
	if len(got) != len(texts) {
		return nil, fmt.Errorf("embed with %q: %d vectors for %d texts", x.embedder.Model(), len(got), len(texts))
	}
	want := x.embedder.Dimensions()
	out := make([][]float32, len(got))
	for i, v := range got {
		if len(v) == 0 || want > 0 && len(v) != want {
			return nil, fmt.Errorf("embed with %q: vector of %d dimensions, want %d", x.embedder.Model(), len(v), want)
		}
		out[i] = normal(v)
	}
	if len(out) > 0 {
		x.dimensions.Store(int64(len(got[0])))
	}
	if err := x.worth.judge(texts, out); err != nil {
		return nil, fmt.Errorf("embed with %q: %w", x.embedder.Model(), err)
	}
	return out, nil
}

// normal returns a copy of v of length 1; nil for the zero vector, and for one with no length in numbers.
func normal(v []float32) []float32 {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil
	}
	out := make([]float32, len(v))
	scale := 1 / math.Sqrt(sum)
	for i, f := range v {
		out[i] = float32(float64(f) * scale)
	}
	return out
}
