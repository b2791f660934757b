package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func brokenSearcherOf(name string, open func() core.Store) broken {
	return broken{class: "searcher", name: name, find: func(t *testing.T, only ...conformance.Option) []conformance.Finding {
		t.Helper()
		return early(3, only, func(opts ...conformance.Option) []conformance.Finding {
			return conformance.ExamineStore(t, func(testing.TB) core.Store { return open() }, opts...)
		}, conformance.WithClaims("search", "isolation.search", "deterministic.search", "cancel.search"))
	}}
}

// tableSearchers are wrong searchers over what a store holds.
func tableSearchers() []broken {
	var out []broken
	add := func(name string, change func(*scanSearcher)) {
		out = append(out, brokenSearcherOf(name, func() core.Store {
			s := &scanSearcher{Store: memory.New(), first: map[string]string{}}
			change(s)
			return s
		}))
	}
	add("found by the words of when it was appended", func(s *scanSearcher) { s.says = func(e core.Entry) string { return s.first[e.ID] } })
	add("found by the words of once and of now", func(s *scanSearcher) {
		s.says = func(e core.Entry) string { return s.first[e.ID] + " " + e.Text() }
	})
	add("not found any more once it was changed", func(s *scanSearcher) {
		s.says = func(e core.Entry) string {
			if s.first[e.ID] != e.Text() {
				return ""
			}
			return e.Text()
		}
	})
	add("found by the words of who had the id before", func(s *scanSearcher) {
		words := map[string]string{} // by id
		s.updated = func(id string) { delete(words, id) }
		s.says = func(e core.Entry) string {
			if _, ok := words[e.ID]; !ok {
				words[e.ID] = e.Text()
			}
			return words[e.ID]
		}
	})
	for _, kind := range []core.EntryType{core.TypeHeartbeat, core.TypeErased} {
		add(fmt.Sprintf("what was found is found when its type is %q, too", kind), func(s *scanSearcher) {
			was := map[string]bool{}
			s.change = func(*core.SearchQuery) {}
			s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
				return slices.DeleteFunc(hits, func(h core.Hit) bool {
					was[h.Entry.ID] = was[h.Entry.ID] || !h.Entry.Type.Hidden()
					return h.Entry.Type.Hidden() && (h.Entry.Type != kind || !was[h.Entry.ID])
				}), nil
			}
		})
	}
	add("what was hidden once stays hidden", func(s *scanSearcher) {
		was := map[string]bool{}
		s.change = func(*core.SearchQuery) {}
		s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
			return slices.DeleteFunc(hits, func(h core.Hit) bool {
				was[h.Entry.ID] = was[h.Entry.ID] || h.Entry.Type.Hidden()
				return was[h.Entry.ID]
			}), nil
		}
	})
	add("what people said first, each with the score of its words", func(s *scanSearcher) {
		s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
			slices.SortStableFunc(hits, func(a, b core.Hit) int {
				weight := func(h core.Hit) float64 {
					if h.Entry.Role == message.User {
						return h.Score * 1.5
					}
					return h.Score
				}
				return cmp.Compare(weight(b), weight(a))
			})
			return hits, nil
		}
	})
	bounds := func(name string, f func(q *core.SearchQuery)) { add(name, func(s *scanSearcher) { s.within = f }) }
	bounds("bounds of whole seconds", func(q *core.SearchQuery) { q.From, q.To = q.From.Truncate(time.Second), q.To.Truncate(time.Second) })
	bounds("the end alone is no bound", func(q *core.SearchQuery) {
		if q.From.IsZero() {
			q.To = time.Time{}
		}
	})
	bounds("the beginning alone is no bound", func(q *core.SearchQuery) {
		if q.To.IsZero() {
			q.From = time.Time{}
		}
	})
	bounds("no end is now", func(q *core.SearchQuery) {
		if q.To.IsZero() && !q.From.IsZero() {
			q.To = q.From
		}
	})
	byTime := func(name string, unit time.Duration, then func(a, b core.Hit) int) {
		add(name, func(s *scanSearcher) {
			s.ties = func(a, b core.Hit) int {
				return cmp.Or(b.Entry.Time.Truncate(unit).Compare(a.Entry.Time.Truncate(unit)), then(a, b))
			}
		})
	}
	byID := func(a, b core.Hit) int { return cmp.Compare(a.Entry.ID, b.Entry.ID) }
	bySeq := func(a, b core.Hit) int { return cmp.Or(cmp.Compare(b.Entry.Seq, a.Entry.Seq), byID(a, b)) }
	byTime("ties of one second by id", time.Second, byID)
	byTime("ties of one second by position", time.Second, bySeq)
	byTime("ties of ten milliseconds by id", 10*time.Millisecond, byID)
	out = append(out, brokenSearcherOf("hits are what the store holds", func() core.Store { return newLender() }))
	return out
}

// lender is a searcher whose hits are the entries that it holds itself, and reads.
type lender struct {
	*scanSearcher
	mu   sync.Mutex
	held map[string]core.Entry
}

func newLender() *lender {
	s := &lender{scanSearcher: &scanSearcher{Store: memory.New()}, held: map[string]core.Entry{}}
	s.says = func(e core.Entry) string { return s.its(e).Text() }
	s.after = func(_ context.Context, _ core.SearchQuery, hits []core.Hit) ([]core.Hit, error) {
		for i := range hits {
			hits[i].Entry = s.its(hits[i].Entry)
		}
		return hits, nil
	}
	return s
}

// its returns what it holds of an entry.
func (s *lender) its(e core.Entry) core.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[e.ID]; !ok {
		s.held[e.ID] = e
	}
	return s.held[e.ID]
}

func (s *lender) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	got, err := s.scanSearcher.Get(ctx, scope, ids)
	for i := range got {
		got[i] = s.its(got[i])
	}
	return entriesOf(got, nil), err
}

func (s *lender) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id)
	return s.scanSearcher.Update(ctx, scope, id, c)
}
