package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// nearby is a store in a file that compares vectors itself, plainly and soundly.
type nearby struct {
	*sqlite.Store
	closeness func(a, b []float32) float64
	query     func(*core.SearchQuery)
	// keep decides over each entry; entries without say so are left out.
	keep  func(core.Entry) bool
	after func([]core.Hit) []core.Hit
	// parts is how the closeness of several parts is joined, err what becomes of errors.
	parts func(a, b float64) float64
	err   func(error) error
	ties  func(a, b core.Hit) int
	twice bool
	// most is how many vectors are looked at, 0 for all.
	most int
}

func cosine(a, b []float32) float64 {
	var dot, x, y float64
	for i := range min(len(a), len(b)) {
		dot, x, y = dot+float64(a[i]*b[i]), x+float64(a[i]*a[i]), y+float64(b[i]*b[i])
	}
	return dot / math.Sqrt(x*y)
}

func (n *nearby) SearchVectors(ctx context.Context, space string, v []float32, q core.SearchQuery) ([]core.Hit, error) {
	if n.query != nil {
		n.query(&q)
	}
	hits, err := n.hits(ctx, space, v, q)
	if n.err != nil {
		err = n.err(err)
	}
	slices.SortFunc(hits, func(a, b core.Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return n.ties(a, b)
	})
	hits = hits[:min(len(hits), q.Limit)]
	if n.after != nil {
		hits = n.after(hits)
	}
	return hits, err
}

func (n *nearby) hits(ctx context.Context, space string, v []float32, q core.SearchQuery) ([]core.Hit, error) {
	best, looked := map[string]float64{}, 0
	var hits []core.Hit
	for vq := (vector.Query{Space: space, Agent: q.Scope.Agent, Limit: 100}); ; {
		page, err := n.ScanVectors(ctx, vq)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Vectors {
			if looked++; n.most > 0 && looked > n.most {
				break
			}
			if len(x.Values) != len(v) {
				return nil, fmt.Errorf("nearby: %w", core.ErrInvalid)
			}
			score := n.closeness(x.Values, v)
			if old, ok := best[x.ID]; ok && !n.twice {
				best[x.ID] = n.parts(old, score)
				continue
			}
			best[x.ID] = score
			if n.twice {
				hits = append(hits, core.Hit{Entry: core.Entry{ID: x.ID}, Score: score})
			}
		}
		if vq.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	if !n.twice {
		for id, score := range best {
			hits = append(hits, core.Hit{Entry: core.Entry{ID: id}, Score: score})
		}
	}
	out := hits[:0]
	for _, h := range hits {
		got, err := n.Get(ctx, core.Scope{Agent: q.Scope.Agent}, []string{h.Entry.ID})
		if err != nil {
			return nil, err
		}
		e := got[0]
		if !n.keep(e) || !q.Scope.Contains(e.SessionID()) || q.Exclude != nil && q.Exclude(e.ID) || !q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) {
			continue
		}
		out = append(out, core.Hit{Entry: e, Score: h.Score})
	}
	return out, nil
}

// inFile opens a store in a file of its own.
func inFile(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	cfg := sqlite.DefaultConfig()
	cfg.Path = path
	s, err := sqlite.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func nearbyOf(name, claim string, change func(*nearby)) broken {
	return broken{class: "companion: search by vector", name: name, find: func(t *testing.T, _ ...conformance.Option) []conformance.Finding {
		t.Helper()
		return conformance.ExamineStore(t, func(tb testing.TB) core.Store {
			tb.Helper()
			return newNearby(inFile(tb, filepath.Join(tb.TempDir(), "store.db")), change)
		}, conformance.WithExactly(1, 20260301), conformance.WithoutShrinking(), conformance.WithFirst(), conformance.WithClaims(claim))
	}}
}

func newNearby(s *sqlite.Store, change func(*nearby)) *nearby {
	n := &nearby{
		Store: s, closeness: cosine, parts: func(a, b float64) float64 { return max(a, b) },
		keep: func(e core.Entry) bool { return e.Type != core.TypeHeartbeat && e.Type != core.TypeErased },
		ties: func(a, b core.Hit) int {
			return cmp.Or(b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(a.Entry.ID, b.Entry.ID))
		},
	}
	change(n)
	return n
}

func tableNearest() []broken {
	var out []broken
	add := func(name string, change func(*nearby)) { out = append(out, nearbyOf(name, "vector.nearest", change)) }
	add("by product", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return float64(a[0]*b[0] + a[1]*b[1]) }
	})
	add("by distance", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return -math.Hypot(float64(a[0]-b[0]), float64(a[1]-b[1])) }
	})
	add("score is a distance", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			for i := range h {
				h[i].Score = 1 - h[i].Score
			}
			return h
		}
	})
	add("without regard to the sign", func(n *nearby) {
		n.closeness = func(a, b []float32) float64 { return math.Abs(cosine(a, b)) }
	})
	add("score between 0 and 1", func(n *nearby) { n.closeness = func(a, b []float32) float64 { return (cosine(a, b) + 1) / 2 } })
	add("farthest first", func(n *nearby) { n.after = func(h []core.Hit) []core.Hit { slices.Reverse(h); return h } })
	add("nothing", func(n *nearby) { n.after = func([]core.Hit) []core.Hit { return nil } })
	add("the best left out", func(n *nearby) { n.after = func(h []core.Hit) []core.Hit { return h[min(1, len(h)):] } })
	add("without those that point away", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			return slices.DeleteFunc(h, func(h core.Hit) bool { return h.Score < 0 })
		}
	})
	add("each part a hit", func(n *nearby) { n.twice = true })
	add("the last part counts", func(n *nearby) { n.parts = func(_, b float64) float64 { return b } })
	add("the farthest part counts", func(n *nearby) { n.parts = func(a, b float64) float64 { return min(a, b) } })
	add("parts added up", func(n *nearby) { n.parts = func(a, b float64) float64 { return a + b } })
	add("limit ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Limit += 2 } })
	add("limit counts those left out", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if q.Exclude != nil {
				q.Limit--
			}
		}
	})
	add("exclude ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Exclude = nil } })
	add("session ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.Scope.Session = "" } })
	add("times ignored", func(n *nearby) { n.query = func(q *core.SearchQuery) { q.From, q.To = time.Time{}, time.Time{} } })
	add("end of time included", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if !q.To.IsZero() {
				q.To = q.To.Add(time.Second)
			}
		}
	})
	add("the end alone is no bound", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if q.From.IsZero() {
				q.To = time.Time{}
			}
		}
	})
	add("the beginning alone is no bound", func(n *nearby) {
		n.query = func(q *core.SearchQuery) {
			if q.To.IsZero() {
				q.From = time.Time{}
			}
		}
	})
	add("ties of one second by id", func(n *nearby) {
		n.ties = func(a, b core.Hit) int {
			return cmp.Or(b.Entry.Time.Truncate(time.Second).Compare(a.Entry.Time.Truncate(time.Second)), cmp.Compare(a.Entry.ID, b.Entry.ID))
		}
	})
	add("heartbeats found", func(n *nearby) { n.keep = func(core.Entry) bool { return true } })
	add("ties to the older one", func(n *nearby) { n.ties = func(a, b core.Hit) int { return a.Entry.Time.Compare(b.Entry.Time) } })
	add("hits without entries", func(n *nearby) {
		n.after = func(h []core.Hit) []core.Hit {
			for i := range h {
				h[i].Entry = core.Entry{ID: h[i].Entry.ID, Agent: h[i].Entry.Agent, Session: h[i].Entry.Session}
			}
			return h
		}
	})
	add("a text narrows it", func(n *nearby) {
		var text string
		n.query = func(q *core.SearchQuery) { text = q.Text }
		n.after = func(h []core.Hit) []core.Hit {
			return slices.DeleteFunc(h, func(h core.Hit) bool { return text != "" && !strings.Contains(h.Entry.Text(), text) })
		}
	})
	add("another length is no error", func(n *nearby) {
		n.err = func(err error) error {
			if errors.Is(err, core.ErrInvalid) {
				return nil
			}
			return err
		}
	})
	out = append(out, nearbyOf("closed is empty", "close.closed", func(n *nearby) { n.err = func(error) error { return nil } }))
	out = append(out, nearbyOf("context ignored", "cancel.store", func(n *nearby) { n.err = func(error) error { return nil } }))
	return out
}
