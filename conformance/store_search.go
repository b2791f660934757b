package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
			Rule: "heartbeats are never found, nor is what became one, or an erased entry, by its type alone; what is a message again is found again"},
		{ID: "search.time", Suite: SuiteStore, store: searchTime, Needs: needs,
			Rule: "hits lie in the asked time, half open, with both bounds, one or none, and what has every word of the query and is found without bounds is found within them"},
		{ID: "search.wanted", Suite: SuiteStore, store: searchWanted, Needs: needs, once: true,
			Rule: "what is excluded, or lies outside the asked time or session, takes no place from what is wanted: a small limit is filled all the same"},
		{ID: "search.old", Suite: SuiteStore, store: searchOld, Needs: needs, once: true,
			Rule: "among hundreds of entries the oldest is found by its word as the newest is"},
		{ID: "isolation.search", Promise: 8, Suite: SuiteStore, store: isolationSearch, Needs: needs,
			Rule: "no hit lies outside the scope"},
		{ID: "deterministic.search", Promise: 6, Suite: SuiteStore, store: deterministicSearch, Needs: needs,
			Rule: "the order of hits is a function of the stored entries and the query, best first"},
		{ID: "search.erased", Promise: 2, Suite: SuiteStore, store: searchErased, Needs: needs,
			Rule: "what was deleted is not found any more, also where its id is of another entry now, and what was changed is found as it is now"},
		{ID: "search.gone", Promise: 6, Suite: SuiteStore, store: searchGone, Needs: needs, once: true,
			Rule: "what was deleted, or says something else now, does not change the order in which the others are found"},
		{ID: "search.content", Promise: 2, Suite: SuiteStore, store: searchContent, Needs: needs,
			Rule: "a hit's entry is the stored entry, its passage is a part of the entry's text, and both belong to the caller"},
		{ID: "search.current", Promise: 2, Suite: SuiteStore, store: searchCurrent, Needs: needs, once: true, plain: true,
			Rule: "a hit's entry is the entry as it is stored now, whichever of its fields was changed since it was found, or since it was appended"},
		{ID: "search.passage", Suite: SuiteStore, store: searchPassage, Needs: needs, once: true, plain: true,
			Rule: "the passage of a hit has the word that was looked for where the text says it once, whatever characters the text is made of"},
		{ID: "search.robust", Promise: 9, Suite: SuiteStore, store: searchRobust, Needs: needs,
			Rule: "any text is a legal query: operators of a query language, control characters, nothing at all"},
		{ID: "search.ties", Promise: 6, Suite: SuiteStore, store: searchTies, Needs: needs, once: true,
			Rule: "hits come in order of their scores, whatever role, type, session or length they are of; of hits with the same score the more recent comes first, of those of one time the one with the smaller id"},
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
		if text := r.settled(func() string { return r.finds(e.SessionID().Scope(), e) }); text != "" {
			return text
		}
	}
	return ""
}

// finds looks for an entry by its mark.
func (r *storeRun) finds(scope core.Scope, e core.Entry) string {
	mark := marksIn(e.Text())[0]
	hits, text := r.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 5})
	if text == "" && !found(hits, e.ID) {
		text = fmt.Sprintf("Search(%q) in %+v: %d hits, none is %q, the entry with that word", mark, scope, len(hits), e.ID)
	}
	return text
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
			spoilt(hits)
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
	r.steps = append(r.steps, batch{Entries: []entrySpec{{Size: 6, Shape: 23}, {Who: 2, Size: 6, Shape: 23}, {Size: 6}, {Who: 1, Size: 6}}})
	text := r.eachSearch(50, nil, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			if h.Entry.Type == core.TypeHeartbeat {
				return fmt.Sprintf("Search(%q): hit %q is a heartbeat", q.Text, h.Entry.ID)
			}
		}
		return ""
	})
	if text != "" {
		return text
	}
	const turned = 4
	n := 0
	for i := len(r.all) - 1; i >= 0 && n < turned; i-- {
		e := &r.all[i]
		if !searchable(*e) || r.settled(func() string { return r.finds(e.SessionID().Scope(), *e) }) != "" {
			continue // search.finds asks for it
		}
		n++
		if text := r.turnsHidden(e); text != "" {
			return text
		}
	}
	return ""
}

// turnsHidden gives an entry that is found a type that hides it, nothing else, and gives it back the one it had.
func (r *storeRun) turnsHidden(e *core.Entry) string {
	scope, mark := e.SessionID().Scope(), marksIn(e.Text())[0]
	for _, kind := range []core.EntryType{core.TypeHeartbeat, core.TypeErased} {
		if text := r.change(e, core.Change{Type: kind}); text != "" {
			return text
		}
		text := r.settled(func() string {
			hits, text := r.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 50})
			if found(hits, e.ID) {
				text = fmt.Sprintf("Search(%q) still finds %q, which is of type %q by now", mark, e.ID, kind)
			}
			return text
		})
		if text == "" {
			text = r.change(e, core.Change{Type: core.TypeMessage})
		}
		if text == "" {
			text = r.settled(func() string { return r.finds(scope, *e) })
		}
		if text != "" {
			return text
		}
	}
	return ""
}

func searchTime(r *storeRun) string {
	from, to := epoch.Add(3*time.Second), epoch.Add(9*time.Second)
	// Enough entries that some lie on either bound.
	fill := batch{Entries: make([]entrySpec, 9)}
	for i := range fill.Entries {
		fill.Entries[i] = entrySpec{Size: 40}
	}
	r.steps = append([]batch{fill}, r.steps...)
	return r.eachSearch(50, nil, func(q core.SearchQuery, all []core.Hit) string {
		for _, bounds := range [][2]time.Time{
			{from, to}, {from, {}}, {{}, to}, {}, {from.Add(time.Millisecond), to.Add(time.Millisecond)}, {from.Add(-time.Millisecond), to.Add(-time.Millisecond)},
		} {
			q.From, q.To = bounds[0], bounds[1]
			if text := r.settled(func() string { return r.searchedWithin(q, all) }); text != "" {
				return text
			}
		}
		return ""
	})
}

// searchedWithin holds a search within bounds, or one of them, against the hits without any.
func (r *storeRun) searchedWithin(q core.SearchQuery, all []core.Hit) string {
	inside := func(t time.Time) bool {
		return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
	}
	hits, text := r.search(q)
	if text != "" {
		return text
	}
	for _, h := range hits {
		if !inside(h.Entry.Time) {
			return fmt.Sprintf("Search(%q) from %v to %v: hit %q is of %v", q.Text, q.From, q.To, h.Entry.ID, h.Entry.Time)
		}
	}
	for _, h := range all {
		if inside(h.Entry.Time) && len(hits) < q.Limit && says(h.Entry, q.Text) && !found(hits, h.Entry.ID) {
			return fmt.Sprintf("Search(%q) from %v to %v does not find %q of %v, which it finds without bounds", q.Text, q.From, q.To, h.Entry.ID, h.Entry.Time)
		}
	}
	return ""
}

// says reports whether an entry has every word of a query. What has none may be found for its neighbours, and not without them.
func says(e core.Entry, query string) bool {
	return !slices.ContainsFunc(strings.Fields(query), func(word string) bool { return !strings.Contains(e.Text(), word) })
}

// found reports whether an entry is among hits.
func found(hits []core.Hit, id string) bool {
	return slices.ContainsFunc(hits, func(h core.Hit) bool { return h.Entry.ID == id })
}

// searchWanted wants the one hit alone that is found last of all, or is in a session of its own.
func searchWanted(r *storeRun) string {
	const n = 18
	agent := core.Scope{Agent: sessionOf(0).Agent}
	for i := range n {
		e := plainEntry(i, sessionOf(0), int64(i))
		if i == 0 {
			e.Session = sessionOf(1).Session
		}
		e.Message = message.New(message.User, makeText(markOf(0, i), textPlain, 60, i, nil))
		e.Fingerprint = message.Fingerprint(e.Message)
		if _, err := r.store.Append(r.ctx(), []core.Entry{e}); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
	}
	for _, query := range queries {
		text := r.settled(func() string {
			all, text := r.search(core.SearchQuery{Scope: agent, Text: query, Limit: n})
			all = slices.DeleteFunc(all, func(h core.Hit) bool { return !says(h.Entry, query) })
			if text != "" || len(all) == 0 {
				return text
			}
			last := all[len(all)-1].Entry
			only := map[string]core.SearchQuery{
				"that is not excluded":        {Scope: agent, Exclude: func(id string) bool { return id != last.ID }},
				"that lies in the asked time": {Scope: agent, From: last.Time, To: last.Time.Add(time.Second)},
			}
			if slices.ContainsFunc(all, func(h core.Hit) bool { return h.Entry.SessionID() == sessionOf(1) }) {
				only["of the asked session"] = core.SearchQuery{Scope: sessionOf(1).Scope()}
			}
			for what, q := range only {
				q.Text, q.Limit = query, 1
				hits, text := r.search(q)
				if text != "" {
					return text
				}
				if len(hits) == 0 {
					return fmt.Sprintf("Search(%q) with the limit 1 finds nothing: among the %d hits of a larger one is an entry %s", query, len(all), what)
				}
			}
			return ""
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// searchOld looks for the first, the last and one between of many entries.
func searchOld(r *storeRun) string {
	const n, batch = 300, 100
	id := sessionOf(0)
	all := make([]core.Entry, n)
	for i := range all {
		all[i] = plainEntry(i, id, int64(i))
	}
	for some := range slices.Chunk(all, batch) {
		if _, err := r.store.Append(r.ctx(), cloneEntries(some)); err != nil {
			return fmt.Sprintf("Append of %d entries: error %v, want none", batch, err)
		}
	}
	for _, e := range []core.Entry{all[n-1], all[n/2], all[0]} {
		for _, scope := range []core.Scope{id.Scope(), {Agent: id.Agent}} {
			if text := r.settled(func() string { return r.finds(scope, e) }); text != "" {
				return text
			}
		}
	}
	return ""
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

func searchContent(r *storeRun) string {
	text := r.eachSearch(50, nil, func(q core.SearchQuery, hits []core.Hit) string {
		for _, h := range hits {
			got, err := r.store.Get(r.ctx(), h.Entry.SessionID().Scope(), []string{h.Entry.ID})
			if err != nil {
				return fmt.Sprintf("Search(%q): hit %q cannot be read: %v", q.Text, h.Entry.ID, err)
			}
			if d := sameEntries([]core.Entry{h.Entry}, got); d != "" {
				return fmt.Sprintf("Search(%q): %s", q.Text, d)
			}
			// What the caller did to earlier hits may have reached the store, and Get with it.
			stored := slices.DeleteFunc(slices.Clone(r.all), func(e core.Entry) bool { return e.ID != h.Entry.ID })
			if d := sameEntries(got, stored); d != "" {
				return fmt.Sprintf("Search(%q), a hit is not as it was stored: %s", q.Text, d)
			}
			if !strings.Contains(unbroken(h.Entry.Text()), unbroken(h.Passage)) {
				return fmt.Sprintf("Search(%q): the passage %q of hit %q is no part of its text %q", q.Text, h.Passage, h.Entry.ID, h.Entry.Text())
			}
		}
		return ""
	})
	if text != "" {
		return text
	}
	// What was changed in the hits may be what the store itself has, and is not found any more.
	if text := r.readAll(); text != "" {
		return "after hits were changed by who had them: " + text
	}
	return ""
}

// unbroken makes all blanks alike.
func unbroken(s string) string { return strings.Join(strings.Fields(s), " ") }

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
	ctx, cancel := cancellable(r.ctx())
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
		// Neither the order of ids nor that of appending is that of times; four each are of one time and one position, and two such a millisecond apart.
		at := (n / 4 * 5) % 6
		e.ID, e.Time = fmt.Sprintf("tie-%02d", (n*7)%24), epoch.Add(time.Duration(at/2)*time.Minute+time.Duration(at%2)*time.Millisecond)
		e.Message = message.New(message.User, "the budget report moved to friday")
		e.Fingerprint = message.Fingerprint(e.Message)
		all = append(all, e)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	return cmp.Or(r.settled(func() string {
		hits, text := r.search(core.SearchQuery{Scope: core.Scope{Agent: sessionOf(0).Agent}, Text: "budget report friday", Limit: 50})
		if text == "" {
			text = ordered(hits)
		}
		return text
	}), r.searchRanks())
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
