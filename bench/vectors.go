package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/philippgille/chromem-go"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/semantic"
)

const dimensions = 1024

// known is an embedder that knows the vector of every text: its number.
type known struct{ vectors [][]float32 }

func (k *known) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		n, err := strconv.Atoi(t)
		if err != nil {
			return nil, err
		}
		out[i] = k.vectors[n]
	}
	return out, nil
}

func (k *known) Dimensions() int { return dimensions }
func (k *known) Model() string   { return "known" }

// points makes vectors of length 1 that lie in clusters, as those of texts do.
func points(rng *rand.Rand, n int) [][]float32 {
	centres := make([][]float64, 200)
	for i := range centres {
		centres[i] = make([]float64, dimensions)
		for j := range centres[i] {
			centres[i][j] = rng.NormFloat64() + 0.3
		}
	}
	memory := make([]float32, n*dimensions)
	out := make([][]float32, n)
	for i := range out {
		v := memory[i*dimensions : (i+1)*dimensions]
		c := centres[rng.IntN(len(centres))]
		sum := 0.0
		for j := range v {
			x := c[j] + 0.9*rng.NormFloat64()
			v[j] = float32(x)
			sum += x * x
		}
		scale := float32(1 / math.Sqrt(sum))
		for j := range v {
			v[j] *= scale
		}
		out[i] = v
	}
	return out
}

// vectorPart compares the vector index with chromem-go and with reading all numbers once.
func vectorPart(ctx context.Context, b *board, o options) error {
	const queries, limit = 50, 10
	for _, n := range sizes(10_000, max(o.vectors, 10_000)) {
		what := fmt.Sprintf("vectors/n=%d", n)
		rng := rand.New(rand.NewPCG(5, 6))
		all := points(rng, n+queries)
		exact := make([][]int, queries)
		for i := range exact {
			exact[i] = best(all[:n], all[n+i], limit)
		}

		// The floor: all numbers pass the processor once. They lie in one piece.
		memory := all[0][: n*dimensions : n*dimensions]
		var sink float32
		ops, took, _ := repeat(200, func(int) error {
			sink += sum(memory)
			return nil
		})
		if math.IsNaN(float64(sink)) {
			return fmt.Errorf("sum is %v", sink)
		}
		b.add("floor", what, ops, append(took.per(ops), figure{"GB/s", float64(n) * dimensions * 4 / (float64(took.wall) / float64(ops))})...)

		ours, err := openVectors(ctx, all, n)
		if err != nil {
			return err
		}
		hit := 0
		for i := range queries {
			hits, err := ours.x.Search(ctx, core.SearchQuery{Scope: core.Scope{Agent: agent}, Text: strconv.Itoa(n + i), Limit: limit})
			if err != nil {
				return err
			}
			for _, h := range hits {
				at, _ := strconv.Atoi(h.Entry.Text())
				if slices.Contains(exact[i], at) {
					hit++
				}
			}
		}
		ops, took, err = repeat(2000, func(i int) error {
			_, err := ours.x.Search(ctx, core.SearchQuery{Scope: core.Scope{Agent: agent}, Text: strconv.Itoa(n + i%queries), Limit: limit})
			return err
		})
		if err != nil {
			return err
		}
		b.add("semantic", what, ops, append(took.per(ops), figure{"ns-build/entry", float64(ours.build.cpu) / float64(n)},
			figure{"B-heap", ours.heap}, figure{"recall@10", float64(hit) / (queries * limit)})...)
		ours = nil

		c, err := chromem.NewDB().CreateCollection("c", nil, func(context.Context, string) ([]float32, error) { return nil, nil })
		if err != nil {
			return err
		}
		before := heap()
		build, err := timed(func() error {
			for i := range n {
				if err := c.AddDocument(ctx, chromem.Document{ID: strconv.Itoa(i), Embedding: all[i], Content: strconv.Itoa(i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		taken := heap() - before
		hit = 0
		ops, took, err = repeat(500, func(i int) error {
			res, err := c.QueryEmbedding(ctx, all[n+i%queries], limit, nil, nil)
			for _, r := range res {
				at, _ := strconv.Atoi(r.ID)
				if i < queries && slices.Contains(exact[i], at) {
					hit++
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		b.add("chromem-go", what, ops, append(took.per(ops), figure{"ns-build/entry", float64(build.cpu) / float64(n)},
			figure{"B-heap", taken}, figure{"recall@10", float64(hit) / float64(min(ops, queries)*limit)})...)
		b.ratio(what, "ns/op", "semantic", "floor", "at most 1.5")
		b.ratio(what, "ns/op", "chromem-go", "semantic", "more than 1")
	}
	return nil
}

type vectorIndex struct {
	x     *semantic.VectorIndex
	build spent
	heap  float64
}

func openVectors(ctx context.Context, all [][]float32, n int) (*vectorIndex, error) {
	x, err := semantic.NewVector(semantic.DefaultVectorConfig(), &known{all})
	if err != nil {
		return nil, err
	}
	store := &held{byID: make(map[string]int, n), entries: make([]core.Entry, n)}
	c := newCorpus(1)
	for i := range n {
		e := c.entry()
		e.Message.Parts[0].Text, e.Message.Raw = strconv.Itoa(i), nil
		store.entries[i], store.byID[e.ID] = e, i
	}
	if err := x.Attach(store); err != nil {
		return nil, err
	}
	before := heap()
	build, err := timed(func() error { return x.Load(ctx, agent) })
	return &vectorIndex{x, build, heap() - before}, err
}

// best are the numbers of the vectors nearest to one, all compared.
func best(all [][]float32, to []float32, limit int) []int {
	type near struct {
		at    int
		score float64
	}
	var top []near
	for i, v := range all {
		s := 0.0
		for j := range v {
			s += float64(v[j]) * float64(to[j])
		}
		if len(top) == limit && s <= top[limit-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, s, func(n near, s float64) int {
			if n.score > s {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, at, near{i, s})
		top = top[:min(len(top), limit)]
	}
	out := make([]int, len(top))
	for i := range top {
		out[i] = top[i].at
	}
	return out
}

// sum adds all numbers, in eight sums that do not wait for each other.
func sum(v []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for i := 0; i+8 <= len(v); i += 8 {
		x := v[i : i+8 : i+8]
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
		s4 += x[4]
		s5 += x[5]
		s6 += x[6]
		s7 += x[7]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
