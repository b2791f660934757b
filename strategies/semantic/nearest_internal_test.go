package semantic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/drawn"
)

// shapes are ways in which vectors lie in space. Each returns the i-th vector, before it is made one of length 1.
func shapes(rng *rand.Rand) map[string]func(dimensions int) []float32 {
	centres := map[int][][]float32{}
	return map[string]func(int) []float32{
		"even": func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(rng.NormFloat64())
			}
			return v
		},
		"clusters": func(n int) []float32 {
			if centres[n] == nil {
				for range 40 {
					c := make([]float32, n)
					for i := range c {
						c[i] = float32(rng.NormFloat64()) + 0.5
					}
					centres[n] = append(centres[n], c)
				}
			}
			v := slices.Clone(centres[n][rng.IntN(40)])
			for i := range v {
				v[i] += float32(rng.NormFloat64()) * 0.7
			}
			return v
		},
		"few dimensions": func(n int) []float32 { // as of hashed words
			v := make([]float32, n)
			for range 20 {
				v[rng.IntN(n)]++
			}
			return v
		},
	}
}

func filled(n, dimensions int, vector func(int) []float32) *vectors {
	v := newVectors("ada", &source{})
	for i := range n {
		it := &item{id: fmt.Sprintf("e%05d", i), session: fmt.Sprintf("s%d", i%3), seq: int64(i), time: time.Unix(int64(i), 0)}
		v.items[it.id] = it
		v.have(it, normal(vector(dimensions)))
	}
	return v
}

// all ranks every vector in full.
func all(v *vectors, to []float32, q core.SearchQuery) []near {
	r := &ranking{q: q}
	for _, m := range v.rows {
		m.scan(to, r)
	}
	return r.best
}

// TestNearestMissesLittle compares the search by codes with the exhaustive one.
func TestNearestMissesLittle(t *testing.T) {
	rng := drawn.Rand(t)
	// About one of 1,500 hits is missed at most. So many queries make it all but certain that chance alone does not miss ten of a shape's 960.
	const n, queries = exactBelow + 500, 96
	for name, vector := range shapes(rng) {
		for _, dimensions := range []int{100, 512} {
			v := filled(n, dimensions, vector)
			found, want := 0, 0
			for i := range queries {
				to := normal(vector(dimensions))
				q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Limit: 10}
				switch i % 4 {
				case 1:
					q.Scope.Session = "s1"
				case 2:
					q.From, q.To = time.Unix(500, 0), time.Unix(3000, 0)
				case 3:
					q.Exclude = func(id string) bool { return id[len(id)-1] == '7' }
				}
				exact, got := all(v, to, q), v.nearest(to, q)
				if len(got) != len(exact) {
					t.Fatalf("%s/%d: %d hits, want %d", name, dimensions, len(got), len(exact))
				}
				in := map[string]float64{}
				for _, g := range got {
					in[g.id] = g.score
					if q.Exclude != nil && q.Exclude(g.id) || q.Scope.Session != "" && g.session != q.Scope.Session || !q.From.IsZero() && g.time.Before(q.From) {
						t.Fatalf("%s/%d: %q was not asked for", name, dimensions, g.id)
					}
				}
				if !slices.IsSortedFunc(got, compare) {
					t.Fatalf("%s/%d: hits are not in order", name, dimensions)
				}
				for _, e := range exact {
					want++
					if s, ok := in[e.id]; ok {
						found++
						if s != e.score {
							t.Fatalf("%s/%d: score of %q = %v, want that of the full vector, %v", name, dimensions, e.id, s, e.score)
						}
					}
				}
			}
			if got := float64(found) / float64(want); got < 0.99 {
				t.Errorf("%s, %d dimensions: recall %.4f, want at least 0.99", name, dimensions, got)
			}
		}
	}
}

// TestEstimates: they are not biased, and err by what is said of them.
func TestEstimates(t *testing.T) {
	rng := drawn.Rand(t)
	for name, vector := range shapes(rng) {
		for _, dimensions := range []int{64, 100, 512} {
			v := filled(500, dimensions, vector)
			m := v.rows[dimensions]
			estimates := make([]float32, len(m.items))
			var sum, squares, n float64
			for range 8 {
				to := normal(vector(dimensions))
				p := m.coder.probe(to)
				p.estimates(m, estimates)
				for slot, e := range estimates {
					d := (float64(e) - dot(m.at(slot), to)) / float64(m.doubt[slot])
					sum += d
					squares += d * d
					n++
				}
			}
			mean, deviation := sum/n, math.Sqrt(squares/n)
			if math.Abs(mean) > 0.25 || deviation < 0.5 || deviation > 1.2 {
				t.Errorf("%s, %d dimensions: errors have mean %.2f and deviation %.2f, in units of what is said", name, dimensions, mean, deviation)
			}
		}
	}
}

// TestMatrixFollows adds and removes at random and compares with a plain map.
func TestMatrixFollows(t *testing.T) {
	rng := drawn.Rand(t)
	const dimensions = 10
	m := newMatrix(dimensions)
	want := map[*item][]float32{}
	var live []*item
	for i := range 2000 {
		if len(live) > 0 && (rng.IntN(3) == 0 || i > 1500) {
			at := rng.IntN(len(live))
			it := live[at]
			live = slices.Delete(live, at, at+1)
			delete(want, it)
			m.remove(it)
			if it.rows != nil {
				t.Fatal("a removed item names its matrix")
			}
		} else {
			it := &item{id: fmt.Sprint(i)}
			vec := make([]float32, dimensions)
			for j := range vec {
				vec[j] = float32(rng.NormFloat64())
			}
			vec = normal(vec)
			m.add(it, vec)
			want[it], live = vec, append(live, it)
		}
		if i%97 != 0 {
			continue
		}
		if len(m.items) != len(want) {
			t.Fatalf("%d vectors, want %d", len(m.items), len(want))
		}
		for slot, it := range m.items {
			code := make([]uint64, m.coder.words)
			scale, doubt := m.coder.encode(want[it], code)
			if it.slot != slot || !slices.Equal(m.at(slot), want[it]) || !slices.Equal(m.code(slot), code) || m.scale[slot] != scale || m.doubt[slot] != doubt {
				t.Fatalf("slot %d does not hold the vector of its item", slot)
			}
		}
	}
}

// TestRemovedVectorIsOverwritten: a vector may stand for what had to be erased.
func TestRemovedVectorIsOverwritten(t *testing.T) {
	m := newMatrix(8)
	a, b := &item{id: "a"}, &item{id: "b"}
	m.add(a, []float32{1, 0, 0, 0, 0, 0, 0, 0})
	m.add(b, []float32{0, 1, 0, 0, 0, 0, 0, 0})
	block, codes := m.blocks[0], m.codes
	m.remove(a)
	if got := m.at(b.slot); b.slot != 0 || got[1] != 1 {
		t.Errorf("the last vector is in slot %d as %v, want it moved to 0", b.slot, got)
	}
	m.remove(b)
	for _, x := range block {
		if x != 0 {
			t.Fatal("a removed vector is still in memory")
		}
	}
	for _, c := range codes {
		if c != 0 {
			t.Fatal("the code of a removed vector is still in memory")
		}
	}
}

func TestDot(t *testing.T) {
	for n := range 40 {
		a, b := make([]float32, n), make([]float32, n)
		want := 0.0
		for i := range a {
			a[i], b[i] = float32(i+1), float32(2*i-3)
			want += float64(a[i]) * float64(b[i])
		}
		if got := dot(a, b); got != want {
			t.Errorf("dot of %d dimensions = %v, want %v", n, got, want)
		}
	}
}

// BenchmarkNearest compares the search by codes, the exhaustive one, and what reading all vectors takes.
func BenchmarkNearest(b *testing.B) {
	const n, dimensions = 20_000, 1024
	rng := rand.New(rand.NewPCG(7, 8))
	vector := shapes(rng)["clusters"]
	v := filled(n, dimensions, vector)
	to := normal(vector(dimensions))
	q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Limit: 50}
	b.Run("codes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.nearest(to, q)
		}
	})
	b.Run("full", func(b *testing.B) {
		for b.Loop() {
			all(v, to, q)
		}
	})
	b.Run("read", func(b *testing.B) {
		var sum float32
		for b.Loop() {
			for _, block := range v.rows[dimensions].blocks {
				for i := 0; i+8 <= len(block); i += 8 {
					x := block[i : i+8 : i+8]
					sum += x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]
				}
			}
		}
		if sum == 1 {
			b.Log(sum)
		}
	})
	b.Run("add", func(b *testing.B) {
		m := newMatrix(dimensions)
		b.ReportAllocs()
		for b.Loop() {
			m.add(&item{}, to)
			m.remove(m.items[0])
		}
	})
}
