package lexical_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/datadir"
)

// readData decodes a file of the measurement data, or skips the test.
func readData(tb testing.TB, into any, name string) {
	tb.Helper()
	path := datadir.File(tb, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// question is a query and the ids of the entries that answer it.
type question struct {
	text     string
	evidence map[string]bool
	also     []*tally // counted there, too
}

// tally sums recall over questions.
type tally struct {
	n                     int
	at5, at10, at25, at50 float64 // within so many hits
	k1, k2, k4, k8        float64 // within so many thousand tokens
}

// add scores the hits of one question: recall within the first hits, and within what fits a number of tokens.
func (s *tally) add(q question, hits []core.Hit, quote func(core.Hit) string) {
	n := float64(len(q.evidence))
	s.n++
	costs := make([]int, len(hits))
	for i, h := range hits {
		costs[i] = int(math.Ceil(1.3 * float64(len(strings.Fields(quote(h))))))
		if !q.evidence[h.Entry.ID] {
			continue
		}
		for limit, sum := range map[int]*float64{5: &s.at5, 10: &s.at10, 25: &s.at25, 50: &s.at50} {
			if i < limit {
				*sum += 1 / n
			}
		}
	}
	for budget, sum := range map[int]*float64{1000: &s.k1, 2000: &s.k2, 4000: &s.k4, 8000: &s.k8} {
		for i, h := range hits {
			if costs[i] > budget {
				continue
			}
			budget -= costs[i]
			if q.evidence[h.Entry.ID] {
				*sum += 1 / n
			}
		}
	}
}

func (s *tally) mean(sum float64) float64 { return 100 * sum / float64(s.n) }

func (s *tally) String() string {
	var b strings.Builder
	b.WriteString("n=" + strconv.Itoa(s.n))
	for _, f := range []struct {
		name string
		sum  float64
	}{{"R@5", s.at5}, {"R@10", s.at10}, {"R@25", s.at25}, {"R@50", s.at50}, {"1k", s.k1}, {"2k", s.k2}, {"4k", s.k4}, {"8k", s.k8}} {
		b.WriteString(" " + f.name + "=" + strconv.FormatFloat(s.mean(f.sum), 'f', 1, 64))
	}
	return b.String()
}

// measure asks an index over entries all questions.
func measure(t *testing.T, sum *tally, entries []core.Entry, questions []question, quote func(core.Hit) string) {
	t.Helper()
	x := newIndex(t, newMapStore(entries))
	for _, q := range questions {
		hits, err := x.Search(t.Context(), core.SearchQuery{
			Scope: core.Scope{Agent: entries[0].Agent}, Text: q.text, Limit: 1000,
		})
		if err != nil {
			t.Fatal(err)
		}
		sum.add(q, hits, quote)
		for _, also := range q.also {
			also.add(q, hits, quote)
		}
	}
}
