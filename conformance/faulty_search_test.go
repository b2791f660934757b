package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// scanSearcher finds entries that share a word with the query. It is plain and sound; faults are put on top of it.
type scanSearcher struct {
	*memory.Store
	change func(q *core.SearchQuery)
	after  func(ctx context.Context, q core.SearchQuery, hits []core.Hit) ([]core.Hit, error)
	stale  []core.Entry
	keep   bool
	// says is what an entry is found by, where it is not what it says; first holds what entries said when they were appended.
	says  func(core.Entry) string
	first map[string]string
	ties  func(a, b core.Hit) int
	// within changes the bounds of a search.
	within func(q *core.SearchQuery)
	// updated is told of ids whose entry was updated.
	updated func(id string)
	// detached searches go on when their context has ended.
	detached bool
}

func (s *scanSearcher) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if s.keep {
		if got, err := s.Get(ctx, scope, ids); err == nil {
			s.stale = append(s.stale, got...)
		}
	}
	return s.Store.Delete(ctx, scope, ids)
}

func (s *scanSearcher) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	err := s.Store.Update(ctx, scope, id, c)
	if err == nil && s.updated != nil {
		s.updated(id)
	}
	return err
}

func (s *scanSearcher) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	res, err := s.Store.Append(ctx, entries)
	if s.first != nil && err == nil {
		for _, e := range entries {
			s.first[e.ID] = e.Text()
		}
	}
	return res, err
}

func (s *scanSearcher) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	asked := q
	if s.detached {
		ctx = context.WithoutCancel(ctx)
	}
	if s.change != nil {
		s.change(&q)
	}
	if s.within != nil {
		s.within(&q)
	}
	var all []core.Entry
	for e, err := range core.All(ctx, s.Store, q.Scope, true) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	var hits []core.Hit
	for _, e := range append(all, s.stale...) {
		if e.Type.Hidden() && s.change == nil || q.Exclude != nil && q.Exclude(e.ID) || !q.Scope.Contains(e.SessionID()) ||
			!q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) {
			continue
		}
		score, text := 0.0, e.Text()
		if s.says != nil {
			text = s.says(e)
		}
		for w := range strings.FieldsSeq(q.Text) {
			if strings.Contains(text, w) {
				score++
			}
		}
		if score > 0 {
			hits = append(hits, core.Hit{Entry: e, Score: score})
		}
	}
	slices.SortFunc(hits, func(a, b core.Hit) int {
		if s.ties != nil {
			return cmp.Or(cmp.Compare(b.Score, a.Score), s.ties(a, b))
		}
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Entry.Time.Compare(a.Entry.Time), cmp.Compare(b.Entry.Seq, a.Entry.Seq), cmp.Compare(a.Entry.ID, b.Entry.ID))
	})
	if s.change == nil || asked.Limit == q.Limit {
		hits = hits[:min(len(hits), q.Limit)]
	}
	if s.after != nil {
		return s.after(ctx, asked, hits)
	}
	return hits, nil
}

func searchFault(name string, change func(*scanSearcher), caught []string, kin ...string) fault {
	kin = append(kin, "shared.*", "position.*", "tail.*", "odd.*", "moving.*", "type.*", "race.*", "reopen.*", "scan.same", "delete.again", "update.alone", "copy.owned") // they search nothing
	return fault{name: name, caught: caught, kin: kin, find: func(t *testing.T) []conformance.Finding {
		t.Helper()
		return conformance.ExamineStore(t, func(testing.TB) core.Store {
			s := &scanSearcher{Store: memory.New()}
			change(s)
			return s
		}, append(few(15), telling(caught, kin))...)
	}}
}

func faultySearchers() []fault {
	var flip sync.Mutex
	turn := false
	after := func(f func(core.SearchQuery, []core.Hit) ([]core.Hit, error)) func(*scanSearcher) {
		return func(s *scanSearcher) {
			s.after = func(_ context.Context, q core.SearchQuery, h []core.Hit) ([]core.Hit, error) { return f(q, h) }
		}
	}
	return []fault{
		searchFault("finds nothing", after(func(core.SearchQuery, []core.Hit) ([]core.Hit, error) { return nil, nil }), []string{"search.finds"}, "search.current", "search.old", "search.erased", "search.gone"),
		searchFault("limit ignored", func(s *scanSearcher) { s.change = func(q *core.SearchQuery) { q.Limit = 1000 } }, []string{"search.limit"}, "search.heartbeat", "search.first"),
		searchFault("ties by age", after(func(_ core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			slices.SortStableFunc(h, func(a, b core.Hit) int {
				return cmp.Or(cmp.Compare(b.Score, a.Score), a.Entry.Time.Compare(b.Entry.Time))
			})
			return h, nil
		}), []string{"search.ties"}, "search.first"),
		searchFault("one less than there are", after(func(q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			if len(h) == q.Limit && q.Limit > 1 {
				h = h[1:]
			}
			return h, nil
		}), []string{"search.first"}),
		searchFault("exclude ignored", func(s *scanSearcher) { s.change = func(q *core.SearchQuery) { q.Exclude = nil } }, []string{"search.exclude"}, "search.heartbeat"),
		searchFault("heartbeats found", func(s *scanSearcher) { s.change = func(*core.SearchQuery) {} }, []string{"search.heartbeat"}),
		searchFault("end of time included", func(s *scanSearcher) {
			s.change = func(q *core.SearchQuery) {
				if !q.To.IsZero() {
					q.To = q.To.Add(1)
				}
			}
		}, []string{"search.time"}, "search.heartbeat"),
		searchFault("beginning of time left out", func(s *scanSearcher) {
			s.change = func(q *core.SearchQuery) {
				if !q.From.IsZero() {
					q.From = q.From.Add(1)
				}
			}
		}, []string{"search.time"}, "search.heartbeat", "search.wanted"),
		searchFault("excluded after the limit", func(s *scanSearcher) {
			s.change = func(q *core.SearchQuery) { q.Exclude = nil }
			s.after = func(_ context.Context, q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				return slices.DeleteFunc(h, func(h core.Hit) bool { return q.Exclude != nil && q.Exclude(h.Entry.ID) }), nil
			}
		}, []string{"search.wanted"}, "search.heartbeat"),
		searchFault("times after the limit", func(s *scanSearcher) {
			s.change = func(q *core.SearchQuery) { q.From, q.To = time.Time{}, time.Time{} }
			s.after = func(_ context.Context, q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				return slices.DeleteFunc(h, func(h core.Hit) bool {
					return !q.From.IsZero() && h.Entry.Time.Before(q.From) || !q.To.IsZero() && !h.Entry.Time.Before(q.To)
				}), nil
			}
		}, []string{"search.wanted"}, "search.heartbeat", "search.time"),
		searchFault("session after the limit", func(s *scanSearcher) {
			s.change = func(q *core.SearchQuery) { q.Scope.Session = "" }
			s.after = func(_ context.Context, q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				return slices.DeleteFunc(h, func(h core.Hit) bool { return !q.Scope.Contains(h.Entry.SessionID()) }), nil
			}
		}, []string{"search.wanted"}, "search.heartbeat", "search.finds", "search.first"),
		searchFault("the newest hundred searched", func(s *scanSearcher) {
			s.after = func(ctx context.Context, q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				p, err := s.Scan(ctx, core.ScanQuery{Scope: q.Scope, Limit: 100, Reverse: true})
				return slices.DeleteFunc(h, func(h core.Hit) bool {
					return !slices.ContainsFunc(p.Entries, func(e core.Entry) bool { return e.ID == h.Entry.ID })
				}), err
			}
		}, []string{"search.old"}),
		searchFault("the question for a passage", after(func(q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			for i := range h {
				h[i].Passage = "<b>" + q.Text + "</b>"
			}
			return h, nil
		}), []string{"search.content"}, "search.passage"),
		searchFault("hits share their metadata", func(s *scanSearcher) {
			shared := map[string]map[string]string{}
			s.after = func(_ context.Context, _ core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				for i, hit := range h {
					if shared[hit.Entry.ID] == nil {
						shared[hit.Entry.ID] = hit.Entry.Meta
					}
					h[i].Entry.Meta = shared[hit.Entry.ID]
				}
				return h, nil
			}
		}, []string{"search.content"}, "search.current"),
		searchFault("whole agent searched", func(s *scanSearcher) { s.change = func(q *core.SearchQuery) { q.Scope.Session = "" } },
			[]string{"isolation.search"}, "search.heartbeat"),
		searchFault("order by chance", after(func(_ core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			flip.Lock()
			defer flip.Unlock()
			if turn = !turn; turn {
				slices.Reverse(h)
			}
			return h, nil
		}), []string{"deterministic.search"}, "search.ties", "search.first"),
		searchFault("erased entries found", func(s *scanSearcher) { s.keep = true }, []string{"search.erased"}, "search.content", "search.gone"),
		searchFault("what is gone counts among what says the same", func(s *scanSearcher) {
			s.first = map[string]string{}
			s.after = func(_ context.Context, _ core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
				for i := range h {
					same := 1
					for _, text := range s.first {
						if text == h[i].Entry.Text() {
							same++
						}
					}
					h[i].Score += 1 / float64(same)
				}
				slices.SortStableFunc(h, func(a, b core.Hit) int { return cmp.Compare(b.Score, a.Score) })
				return h, nil
			}
		}, []string{"search.gone"}, "search.*", "deterministic.search"),
		searchFault("hits without their bytes", after(func(_ core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			for i := range h {
				h[i].Entry.Message = message.New(h[i].Entry.Role, h[i].Entry.Text()+" ")
			}
			return h, nil
		}), []string{"search.content"}, "search.current"),
		searchFault("query language", after(func(q core.SearchQuery, h []core.Hit) ([]core.Hit, error) {
			if strings.ContainsAny(q.Text, "\"(") {
				return nil, errors.New("broken: syntax error")
			}
			return h, nil
		}), []string{"search.robust"}),
		searchFault("cancellation ignored", func(s *scanSearcher) { s.detached = true }, []string{"cancel.search"}, "cancel.store"),
	}
}
