package conformance_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// vectorsInShort keep few vectors soundly, and those of one agent: what is wrong shows in many, in long texts, between two pages, or to others.
func vectorsInShort() []broken {
	put := func(name string, change func(v *vector.Vector)) broken {
		return brokenCompanionOf("vectors", name, func(c *companied) {
			c.put = func(ctx context.Context, space string, vectors []vector.Vector) error {
				vectors = slices.Clone(vectors)
				for i := range vectors {
					change(&vectors[i])
				}
				return c.Store.PutVectors(ctx, space, vectors)
			}
		})
	}
	return []broken{
		put("parts of 8 bits", func(v *vector.Vector) { v.Part = int(uint8(v.Part)) }),                                  //nolint:gosec // that is the fault
		put("offsets of 16 bits", func(v *vector.Vector) { v.Start, v.End = int(uint16(v.Start)), int(uint16(v.End)) }), //nolint:gosec // as above
		put("offsets as numbers of a vector", func(v *vector.Vector) { v.Start, v.End = single(v.Start), single(v.End) }),
		put("numbers of eight digits", func(v *vector.Vector) {
			v.Values = slices.Clone(v.Values)
			for i, x := range v.Values {
				digits, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', 8, 32), 32)
				v.Values[i] = float32(digits)
			}
		}),
		brokenCompanionOf("vectors", "one page of at most 100", func(c *companied) {
			c.scan = func(ctx context.Context, q vector.Query) (vector.Page, error) {
				short := q.Limit > 100
				q.Limit = min(q.Limit, 100)
				p, err := c.Store.ScanVectors(ctx, q)
				if short {
					p.Next = ""
				}
				return p, err
			}
		}),
		brokenCompanionOf("vectors", "who stands on what is gone is at the end", func(c *companied) {
			var mu sync.Mutex
			stands := map[core.Cursor]string{}
			c.scan = func(ctx context.Context, q vector.Query) (vector.Page, error) {
				mu.Lock()
				defer mu.Unlock()
				if q.Cursor != "" {
					all, err := c.Store.ScanVectors(ctx, vector.Query{Space: q.Space, Agent: q.Agent, Limit: core.MaxPage})
					if !slices.ContainsFunc(all.Vectors, func(v vector.Vector) bool { return v.ID == stands[q.Cursor] }) && all.Next == "" {
						return vector.Page{}, err
					}
				}
				p, err := c.Store.ScanVectors(ctx, q)
				if len(p.Vectors) > 0 {
					stands[p.Next] = p.Vectors[len(p.Vectors)-1].ID
				}
				return p, err
			}
		}),
		brokenCompanionOf("vectors", "of all agents the first is counted", func(c *companied) {
			c.spaces = func(ctx context.Context, agent string) ([]vector.Space, error) {
				all, err := c.Store.VectorSpaces(ctx, agent)
				first, _ := c.Store.VectorSpaces(ctx, "agent-a")
				for i := range all {
					if at := slices.IndexFunc(first, func(s vector.Space) bool { return s.Name == all[i].Name }); agent == "" && at >= 0 {
						all[i] = first[at]
					}
				}
				return all, err
			}
		}),
		nearbyOf("makes the vector that it was given as long as 1", "vector.nearest", func(n *nearby) {
			n.closeness = func(a, b []float32) float64 {
				near, length := cosine(a, b), float32(math.Hypot(float64(b[0]), float64(b[1])))
				for i := range b {
					b[i] /= length
				}
				return near
			}
		}),
		vectorsRemembered(),
	}
}

// single is what a float of 32 bits holds of a number.
func single(n int) int { return int(float32(n)) }

// remembering keeps the hits of a search until it changes vectors itself.
type remembering struct {
	*nearby
	path string
	mu   sync.Mutex
	hits []core.Hit
}

func (r *remembering) SearchVectors(ctx context.Context, space string, v []float32, q core.SearchQuery) ([]core.Hit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if len(r.hits) == 0 {
		r.hits, err = r.nearby.SearchVectors(ctx, space, v, q)
	}
	return slices.Clone(r.hits), err
}

func (r *remembering) PutVectors(ctx context.Context, space string, v []vector.Vector) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits = nil
	return r.nearby.PutVectors(ctx, space, v)
}

func (r *remembering) DropVectors(ctx context.Context, space, agent string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits = nil
	return r.nearby.DropVectors(ctx, space, agent)
}

func vectorsRemembered() broken {
	return broken{class: "companion: search by vector", name: "what another opening stores is not found", find: func(t *testing.T, _ ...conformance.Option) []conformance.Finding {
		t.Helper()
		open := func(tb testing.TB, path string) core.Store {
			tb.Helper()
			return &remembering{nearby: newNearby(inFile(tb, path), func(*nearby) {}), path: path}
		}
		return conformance.ExamineStore(t, func(tb testing.TB) core.Store { tb.Helper(); return open(tb, filepath.Join(tb.TempDir(), "store.db")) },
			conformance.WithExactly(1, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims("shared.fresh"),
			conformance.WithAnother(func(tb testing.TB, first core.Store) core.Store {
				tb.Helper()
				return open(tb, first.(*remembering).path) //nolint:forcetypeassert // all are
			}))
	}}
}
