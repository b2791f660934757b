package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

func searchChecks() []Check {
	needs := []Need{NeedSearcher}
	return []Check{
		{ID: "search.finds", Suite: SuiteStore, store: searchFinds, Needs: needs,
			Rule: "an entry is found by a word that only it contains"},
		{ID: "search.limit", Suite: SuiteStore, store: searchLimit, Needs: needs,
			Rule: "a search returns at most Limit hits, none twice"},
		{ID: "search.exclude", Suite: SuiteStore, store: searchExclude, Needs: needs,
			Rule: "no hit is one that Exclude reports"},
		{ID: "search.heartbeat", Suite: SuiteStore, store: searchHeartbeat, Needs: needs,
			Rule: "heartbeats are never found"},
		{ID: "search.time", Suite: SuiteStore, store: searchTime, Needs: needs,
			Rule: "hits lie in the asked time, half open"},
		{ID: "isolation.search", Promise: 8, Suite: SuiteStore, store: isolationSearch, Needs: needs,
			Rule: "no hit lies outside the scope"},
		{ID: "deterministic.search", Promise: 6, Suite: SuiteStore, store: deterministicSearch, Needs: needs,
			Rule: "the order of hits is a function of the stored entries and the query, best first"},
		{ID: "search.erased", Promise: 2, Suite: SuiteStore, store: searchErased, Needs: needs,
			Rule: "what was deleted is not found any more, and what was changed is found as it is now"},
		{ID: "search.content", Promise: 2, Suite: SuiteStore, store: searchContent, Needs: needs,
			Rule: "a hit's entry is the stored entry"},
		{ID: "search.robust", Promise: 9, Suite: SuiteStore, store: searchRobust, Needs: needs,
			Rule: "any text is a legal query: operators of a query language, control characters, nothing at all"},
		{ID: "search.ties", Promise: 6, Suite: SuiteStore, store: searchTies, Needs: needs, once: true,
			Rule: "of hits with the same score the more recent comes first, of those of one time the one with the smaller id"},
		{ID: "search.first", Promise: 6, Suite: SuiteStore, store: searchFirst, Needs: needs,
			Rule: "a smaller limit finds the first of what a larger one finds"},
		{ID: "cancel.search", Promise: 9, Suite: SuiteStore, store: cancelSearch, Needs: needs,
			Rule: "a search with an ended context returns the context's error"},
	}
}

// queries are texts that stored entries share words with.
var queries = []string{"the budget report moved to friday", "kestrel bridge invoice", "数据库 迁移", "works"}

func (r *storeRun) search(q core.SearchQuery) ([]core.Hit, string) {
	s, _ := core.As[core.Searcher](r.store)
	hits, err := s.Search(r.ctx(), q)
	if err != nil {
		return nil, fmt.Sprintf("Search(%q in %+v): error %v, want none", q.Text, q.Scope, err)
	}
	return hits, ""
}

// searchable reports whether an entry's mark can be expected in an index.
func searchable(e core.Entry) bool {
	return e.Type == core.TypeMessage && len(marksIn(e.Text())) > 0 && e.Message.Type == ""
}

func searchFinds(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, e := range r.all {
		if !searchable(e) {
			continue
		}
		mark := marksIn(e.Text())[0]
		text := r.settled(func() string {
			hits, text := r.search(core.SearchQuery{Scope: e.SessionID().Scope(), Text: mark, Limit: 5})
			if text != "" {
				return text
			}
			for _, h := range hits {
				if h.Entry.ID == e.ID {
					return ""
				}
			}
			return fmt.Sprintf("Search(%q): %d hits, none is %q, the entry with that word", mark, len(hits), e.ID)
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// eachSearch asks several questions in every scope and hands all hits to check.
func (r *storeRun) eachSearch(limit int, change func(*core.SearchQuery), check func(core.SearchQuery, []core.Hit) string) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, scope := range r.scopes() {
		for _, text := range queries {
			q := core.SearchQuery{Scope: scope, Text: text, Limit: limit}
			if change != nil {
				change(&q)
			}
			hits, failed := r.search(q)
			if failed != "" {
				return failed
			}
			if text := check(q, hits); text != "" {
				return text
			}
		}
	}
	return ""
}

func searchLimit(r *storeRun) string {
	for _, limit := range []int{1, 3} {
		text := r.eachSearch(limit, nil, func(q core.SearchQuery, hits []core.Hit) string {
			if len(hits) > limit {
				return fmt.Sprintf("Search(%q), limit %d: %d hits", q.Text, limit, len(hits))
			}
			seen := map[string]bool{}
			for _, h := range hits {
				if seen[h.Entry.ID] {
					return fmt.Sprintf("Search(%q): %q is found twice", q.Text, h.Entry.ID)
				}
				seen[h.Entry.ID] = true
			}
			return ""
		})
		if text != "" {
			return text
		}
		r.all, r.entries = nil, nil
	}
	return ""
}

func searchExclude(r *storeRun) string {
	odd := func(id string) bool { return id[len(id)-1]%2 == 1 }
	return r.eachSearch(50, func(q *core.SearchQuery) { q.Exclude = odd }, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			if odd(h.Entry.ID) {
				return fmt.Sprintf("Search(%q): hit %q was excluded", q.Text, h.Entry.ID)
			}
		}
		return ""
	})
}

func searchHeartbeat(r *storeRun) string {
	r.steps = append(r.steps, batch{Entries: []entrySpec{{Size: 6, Shape: 23}, {Who: 2, Size: 6, Shape: 23}}})
	return r.eachSearch(50, nil, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			if h.Entry.Type == core.TypeHeartbeat {
				return fmt.Sprintf("Search(%q): hit %q is a heartbeat", q.Text, h.Entry.ID)
			}
		}
		return ""
	})
}

func searchTime(r *storeRun) string {
	from, to := epoch.Add(3*time.Second), epoch.Add(9*time.Second)
	// Enough entries that some lie on either bound.
	fill := batch{Entries: make([]entrySpec, 9)}
	for i := range fill.Entries {
		fill.Entries[i] = entrySpec{Size: 12}
	}
	r.steps = append([]batch{fill}, r.steps...)
	within := func(q *core.SearchQuery) { q.From, q.To = from, to }
	return r.eachSearch(50, within, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			if h.Entry.Time.Before(from) || !h.Entry.Time.Before(to) {
				return fmt.Sprintf("Search(%q) from %v to %v: hit %q is of %v", q.Text, from, to, h.Entry.ID, h.Entry.Time)
			}
		}
		return ""
	})
}

func isolationSearch(r *storeRun) string {
	return r.eachSearch(50, nil, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			if !q.Scope.Contains(h.Entry.SessionID()) {
				return fmt.Sprintf("Search(%q) in %+v: hit %q is of session %s", q.Text, q.Scope, h.Entry.ID, h.Entry.SessionID())
			}
		}
		return ""
	})
}

func deterministicSearch(r *storeRun) string {
	return r.eachSearch(8, nil, func(q core.SearchQuery, hits []core.Hit) string {
		again, text := r.search(q)
		if text != "" {
			return text
		}
		if len(again) != len(hits) {
			return fmt.Sprintf("Search(%q) finds %d entries, then %d", q.Text, len(hits), len(again))
		}
		for i := range hits {
			if hits[i].Entry.ID != again[i].Entry.ID || hits[i].Score != again[i].Score {
				return fmt.Sprintf("Search(%q), hit %d: %q (%v), then %q (%v)", q.Text, i,
					hits[i].Entry.ID, hits[i].Score, again[i].Entry.ID, again[i].Score)
			}
			if i > 0 && hits[i].Score > hits[i-1].Score {
				return fmt.Sprintf("Search(%q): hit %d has score %v after %v", q.Text, i, hits[i].Score, hits[i-1].Score)
			}
		}
		return ""
	})
}

func searchErased(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for i, e := range r.all {
		if !searchable(e) {
			continue
		}
		scope, mark, want := e.SessionID().Scope(), marksIn(e.Text())[0], ""
		if i%2 == 0 {
			if _, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil {
				return fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
			}
		} else {
			m := e.Message
			m.Raw = nil
			m.Parts = append(m.Parts[:0:0], m.Parts...)
			want = "changed" + mark[:len(mark)-1]
			for j := range m.Parts {
				m.Parts[j].Text, m.Parts[j].Raw = "now "+want, nil
			}
			if err := r.store.Update(r.ctx(), scope, e.ID, core.Change{Message: &m, Tokens: 9, Fingerprint: "f"}); err != nil {
				return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
			}
		}
		text := r.settled(func() string {
			hits, text := r.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 50})
			for _, h := range hits {
				if h.Entry.ID == e.ID && (want == "" || len(marksIn(h.Entry.Text())) > 0) {
					return fmt.Sprintf("Search(%q) still finds %q", mark, e.ID)
				}
			}
			return text
		})
		if text != "" {
			return text
		}
	}
	return ""
}

func searchContent(r *storeRun) string {
	return r.eachSearch(50, nil, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			got, err := r.store.Get(r.ctx(), h.Entry.SessionID().Scope(), []string{h.Entry.ID})
			if err != nil {
				return fmt.Sprintf("Search(%q): hit %q cannot be read: %v", q.Text, h.Entry.ID, err)
			}
			if d := sameEntries([]core.Entry{h.Entry}, got); d != "" {
				return fmt.Sprintf("Search(%q): %s", q.Text, d)
			}
		}
		return ""
	})
}

func searchRobust(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, text := range []string{
		"", " ", "\"", "'; --", "a AND OR NOT (", "NEAR(", "*", "col:val", "\x00", "\xff\xfe", "%_\\", "👩‍👩‍👧‍👦", "^-+~", "[\"x\"]", "a\" OR \"b",
	} {
		if _, failed := r.search(core.SearchQuery{Scope: sessionOf(0).Scope(), Text: text, Limit: 3}); failed != "" {
			return failed
		}
	}
	return ""
}

func cancelSearch(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	ctx, cancel := context.WithCancel(r.ctx())
	cancel()
	s, _ := core.As[core.Searcher](r.store)
	if _, err := s.Search(ctx, core.SearchQuery{Scope: sessionOf(0).Scope(), Text: "budget", Limit: 3}); !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Search with a cancelled context: error %v, want context.Canceled", err)
	}
	return ""
}

func searchTies(r *storeRun) string {
	var all []core.Entry
	for n := range 24 {
		id := core.SessionID{Agent: sessionOf(0).Agent, Session: fmt.Sprintf("tie %d", n%4)}
		e := plainEntry(n, id, int64(n/4))
		// Neither the order of ids nor that of appending is that of times; four each are of one time and one position.
		e.ID, e.Time = fmt.Sprintf("tie-%02d", (n*7)%24), epoch.Add(time.Duration((n/4*5)%6)*time.Minute)
		e.Message = message.New(message.User, "the budget report moved to friday")
		e.Fingerprint = message.Fingerprint(e.Message)
		all = append(all, e)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	return r.settled(func() string {
		hits, text := r.search(core.SearchQuery{Scope: core.Scope{Agent: sessionOf(0).Agent}, Text: "budget report friday", Limit: 50})
		for i := 1; i < len(hits) && text == ""; i++ {
			a, b := hits[i-1], hits[i]
			switch {
			case a.Score != b.Score:
			case a.Entry.Time.Before(b.Entry.Time):
				text = fmt.Sprintf("hit %d is of %v, the one behind it, with the same score, of %v", i-1, a.Entry.Time, b.Entry.Time)
			case a.Entry.Time.Equal(b.Entry.Time) && a.Entry.Seq == b.Entry.Seq && a.Entry.ID > b.Entry.ID:
				text = fmt.Sprintf("hit %d is %q, the one behind it, with the same score and time, %q", i-1, a.Entry.ID, b.Entry.ID)
			}
		}
		return text
	})
}

func searchFirst(r *storeRun) string {
	r.steps = append(r.steps, ordinary(12))
	return r.eachSearch(50, nil, func(q core.SearchQuery, all []core.Hit) string {
		for _, limit := range []int{1, 2, 5, 9} {
			q.Limit = limit
			hits, text := r.search(q)
			if text != "" {
				return text
			}
			if want := min(limit, len(all)); len(hits) != want {
				return fmt.Sprintf("Search(%q) with the limit %d: %d hits, with 50 there are %d", q.Text, limit, len(hits), len(all))
			}
			for i := range hits {
				if hits[i].Entry.ID != all[i].Entry.ID {
					return fmt.Sprintf("Search(%q) with the limit %d: hit %d is %q, with 50 it is %q", q.Text, limit, i, hits[i].Entry.ID, all[i].Entry.ID)
				}
			}
		}
		return ""
	})
}
