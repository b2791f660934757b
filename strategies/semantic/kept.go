package semantic

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
	"github.com/contextengine/contextengine/internal/asking"
)

// source is a store and what it can do with vectors.
type source struct {
	store    core.Store
	vectors  vector.Store    // nil when there is none
	searcher vector.Searcher // nil when there is none; never without vectors
}

func sourceOf(store core.Store) *source {
	src := &source{store: store}
	var ok bool
	if src.vectors, ok = core.As[vector.Store](store); ok {
		src.searcher, _ = core.As[vector.Searcher](store)
	}
	return src
}

// doWithout forgets a companion that turned out to be that of a decorator over a store without one, and reports whether there was any: the
// search on the store's side first.
func (x *VectorIndex) doWithout(v *vectors) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.src != v.src { // somebody else did, or another store was attached
		return true
	}
	switch {
	case v.src.searcher != nil:
		x.src = &source{store: v.src.store, vectors: v.src.vectors}
	case v.src.vectors != nil:
		x.src = &source{store: v.src.store}
	default:
		return false
	}
	clear(x.agents)
	return true
}

// paid is a vector that the store did not take yet.
type paid struct {
	hash   uint64
	vector []float32
}

// embedded returns what of an entry is embedded.
func embedded(e core.Entry, maxChars int) string {
	return asking.Head(strings.TrimSpace(e.Text()), maxChars)
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// space names what the embedder makes: vectors of another model, or another number of dimensions, cannot be compared with them. An embedder that
// knows its dimensions only after a call is asked something.
func (x *VectorIndex) space(ctx context.Context) (string, error) {
	if n := x.embedder.Dimensions(); n > 0 {
		return x.spaceOf(n), nil
	}
	if n := x.dimensions.Load(); n > 0 {
		return x.spaceOf(int(n)), nil
	}
	if _, err := x.embed(ctx, []string{"dimensions"}); err != nil {
		return "", err
	}
	return x.spaceOf(int(x.dimensions.Load())), nil
}

func (x *VectorIndex) spaceOf(dimensions int) string {
	return fmt.Sprintf("%s/%d", x.embedder.Model(), dimensions)
}

// keep stores the vectors of a batch. What the store does not take is remembered for the next try.
func (x *VectorIndex) keep(ctx context.Context, v *vectors, kept []vector.Vector, found map[string][]float32) error {
	if v.src.vectors == nil {
		return nil
	}
	space, err := x.space(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, k := range kept {
		if k.Values = found[k.ID]; k.Values != nil {
			kept[n] = k
			n++
		}
	}
	if n == 0 {
		return nil
	}
	if err := v.src.vectors.PutVectors(ctx, space, kept[:n]); err != nil {
		v.paid = make(map[string]paid, n)
		for _, k := range kept[:n] {
			v.paid[k.ID] = paid{k.Hash, k.Values}
		}
		return fmt.Errorf("keep vectors in space %q: %w", space, err)
	}
	v.paid = nil
	return nil
}

// restore finds out which entries have a vector in the store, and reads it unless the store compares on its side. The vector of a text
// that changed since counts as none. The caller holds v's turn.
func (x *VectorIndex) restore(ctx context.Context, v *vectors) error {
	if v.src.vectors == nil {
		return nil
	}
	spaces, err := v.src.vectors.VectorSpaces(ctx, v.agent)
	if err != nil {
		return err
	}
	if len(spaces) == 0 {
		return nil
	}
	space, err := x.space(ctx)
	if err != nil {
		return err
	}
	present := false
	for _, s := range spaces {
		if s.Name == space {
			present = true
			continue
		}
		x.log.WarnContext(ctx, "semantic: vectors of another model lie unused: embed the entries again to replace them",
			slog.String("agent", v.agent), slog.String("space", s.Name), slog.String("used", space))
	}
	if !present {
		return nil
	}
	q := vector.Query{Space: space, Agent: v.agent, Limit: core.MaxPage}
	for {
		page, err := v.src.vectors.ScanVectors(ctx, q)
		if err != nil {
			return err
		}
		v.mu.Lock()
		for _, k := range page.Vectors {
			it := v.items[k.ID]
			if k.Part != 0 || it == nil || it.embedded || it.hash != k.Hash {
				continue
			}
			if values := normal(k.Values); values != nil { // zeros were no answer
				v.have(it, values)
				x.worth.note(strconv.FormatUint(k.Hash, 16), values)
			}
		}
		v.mu.Unlock()
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, it := range v.pending {
		if !it.embedded {
			v.pending[n] = it
			n++
		}
	}
	clear(v.pending[n:])
	v.pending = v.pending[:n]
	return nil
}

// searchStore has the store compare.
func (v *vectors) searchStore(ctx context.Context, space string, to []float32, q core.SearchQuery) ([]core.Hit, error) {
	hits, err := v.src.searcher.SearchVectors(ctx, space, to, q)
	if err != nil {
		return nil, err
	}
	out := make([]core.Hit, 0, len(hits))
	for _, h := range hits {
		if h.Entry.Type != core.TypeErased && h.Entry.Type != core.TypeHeartbeat {
			out = append(out, h)
		}
	}
	return out, nil
}

// Stale lists the spaces that hold vectors of an agent made by another model, or with other dimensions, than the embedder's: they are not used.
// There are none where the store keeps no vectors.
func (x *VectorIndex) Stale(ctx context.Context, agent string) ([]vector.Space, error) {
	x.mu.Lock()
	src := x.src
	x.mu.Unlock()
	if src == nil || src.vectors == nil {
		return nil, nil
	}
	stale, err := x.stale(ctx, src, agent)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("semantic: stale vectors of %q: %w", agent, err)
	}
	return stale, nil
}

func (x *VectorIndex) stale(ctx context.Context, src *source, agent string) ([]vector.Space, error) {
	spaces, err := src.vectors.VectorSpaces(ctx, agent)
	if err != nil || len(spaces) == 0 {
		return nil, err
	}
	space, err := x.space(ctx)
	if err != nil {
		return nil, err
	}
	var out []vector.Space
	for _, s := range spaces {
		if s.Name != space {
			out = append(out, s)
		}
	}
	return out, nil
}

// Reembed embeds all entries of an agent that have no vector of the embedder's model and dimensions, and then removes its vectors of other
// models. It tells progress, unless that is nil, from this goroutine: entries embedded, of all to embed. What was embedded before an
// error stays; the next call goes on from there.
func (x *VectorIndex) Reembed(ctx context.Context, agent string, progress func(done, total int)) error {
	v, err := x.embedAll(ctx, agent, progress)
	if err == nil && v.src.vectors != nil {
		err = x.dropStale(ctx, v)
	}
	if err != nil {
		return fmt.Errorf("semantic: reembed %q: %w", agent, err)
	}
	return nil
}

func (x *VectorIndex) dropStale(ctx context.Context, v *vectors) error {
	stale, err := x.stale(ctx, v.src, v.agent)
	if err != nil {
		return err
	}
	for _, s := range stale {
		if err := v.src.vectors.DropVectors(ctx, s.Name, v.agent); err != nil {
			return err
		}
	}
	return nil
}
