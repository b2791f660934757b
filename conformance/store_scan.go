package conformance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

func scanOrder(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	return r.settled(func() string { return r.inOrder(false) })
}

func scanReverse(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	if text := r.settled(func() string { return r.inOrder(true) }); text != "" {
		return text
	}
	for _, agent := range []core.Scope{{Agent: "agent-a"}, {Agent: "agent-b"}} {
		text := r.settled(func() string {
			forwards, text := r.scan(core.ScanQuery{Scope: agent, Limit: core.MaxPage})
			backwards, failed := r.scan(core.ScanQuery{Scope: agent, Limit: 3, Reverse: true})
			return cmp.Or(text, failed, sameIDs(idsOf(backwards), reversed(idsOf(forwards))))
		})
		if text != "" {
			return fmt.Sprintf("reverse scan of agent %q, against the other direction: %s", agent.Agent, text)
		}
	}
	return ""
}

// inOrder compares the positions of whole sessions, read in one page.
func (r *storeRun) inOrder(reverse bool) string {
	for id, entries := range r.entries {
		got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage, Reverse: reverse})
		if text != "" {
			return text
		}
		want := idsOf(entries)
		if reverse {
			slices.Reverse(want)
		}
		if d := sameIDs(idsOf(got), want); d != "" {
			return fmt.Sprintf("session %s, reverse %v: %s", id, reverse, d)
		}
	}
	return ""
}

// scanOnce pages through sessions and agents with every small limit; entries appended meanwhile may or may not show.
func scanOnce(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, scope := range r.scopes() {
		want := r.in(scope)
		for _, limit := range []int{1, 2, 3, 7} {
			for _, reverse := range []bool{false, true} {
				text := r.settled(func() string { return r.visitsOnce(scope, limit, reverse, want) })
				if text != "" {
					return text
				}
			}
		}
	}
	return inTurn(r.pagesOfTheirOwn, r.scansAtOnce, r.growingScan)
}

// scansAtOnce follows scans of all scopes in both directions by turns, a page each.
func (r *storeRun) scansAtOnce() string {
	return r.settled(func() string {
		var queries []core.ScanQuery
		for _, scope := range r.scopes() {
			for _, reverse := range []bool{false, true} {
				queries = append(queries, core.ScanQuery{Scope: scope, Limit: 2, Reverse: reverse})
			}
		}
		seen, over := make([]map[string]int, len(queries)), make([]bool, len(queries))
		for range 10 + len(r.all) {
			for i := range queries {
				if over[i] {
					continue
				}
				page, err := r.store.Scan(r.ctx(), queries[i])
				if err != nil {
					return fmt.Sprintf("Scan(%+v) beside other scans: error %v, want none", queries[i], err)
				}
				if seen[i] == nil {
					seen[i] = map[string]int{}
				}
				for _, e := range page.Entries {
					seen[i][e.ID]++
				}
				queries[i].Cursor, over[i] = page.Next, page.Next == ""
			}
		}
		for i, q := range queries {
			for _, e := range r.in(q.Scope) {
				if n := seen[i][e.ID]; n > 1 || n == 0 && r.bound == 0 {
					return fmt.Sprintf("scan of %+v, reverse %v, beside other scans visits entry %q %d times, want once", q.Scope, q.Reverse, e.ID, n)
				}
			}
		}
		return ""
	})
}

// pagesOfTheirOwn asks for fewer entries in later pages than in the first.
func (r *storeRun) pagesOfTheirOwn() string {
	for _, scope := range r.scopes() {
		q := core.ScanQuery{Scope: scope, Limit: 3}
		seen := map[string]int{}
		for range 10 + 4*len(r.all) {
			page, err := r.store.Scan(r.ctx(), q)
			if err != nil || len(page.Entries) > q.Limit {
				return fmt.Sprintf("Scan(%+v), after a page of 3: %d entries, error %v, want at most %d", q, len(page.Entries), err, q.Limit)
			}
			for _, e := range page.Entries {
				seen[e.ID]++
			}
			if q.Cursor, q.Limit = page.Next, 1; page.Next == "" {
				break
			}
		}
		for _, e := range r.in(scope) {
			if n := seen[e.ID]; n > 1 || n == 0 && r.bound == 0 {
				return fmt.Sprintf("scan of %+v by 3 and then by 1 visits entry %q %d times, want once", scope, e.ID, n)
			}
		}
	}
	return ""
}

func (r *storeRun) visitsOnce(scope core.Scope, limit int, reverse bool, want []core.Entry) string {
	got, text := r.scan(core.ScanQuery{Scope: scope, Limit: limit, Reverse: reverse})
	if text != "" {
		return text
	}
	seen := map[string]int{}
	for _, e := range got {
		seen[e.ID]++
	}
	for _, e := range want {
		if n := seen[e.ID]; n != 1 {
			return fmt.Sprintf("scan of %+v, limit %d, reverse %v visits entry %q %d times, want once", scope, limit, reverse, e.ID, n)
		}
	}
	return ""
}

// growingScan appends between two pages.
func (r *storeRun) growingScan() string {
	scope := sessionOf(0).Scope()
	want := r.in(scope)
	seen := map[string]int{}
	q := core.ScanQuery{Scope: scope, Limit: 1}
	for i := range len(want) + 10 {
		page, err := r.store.Scan(r.ctx(), q)
		if err != nil {
			return fmt.Sprintf("Scan(%+v): error %v, want none", q, err)
		}
		for _, e := range page.Entries {
			seen[e.ID]++
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
		if i < 3 {
			if _, err := r.store.Append(r.ctx(), r.make(batch{Entries: []entrySpec{{}}})); err != nil {
				return fmt.Sprintf("Append during a scan: error %v, want none", err)
			}
		}
	}
	for _, e := range want {
		if n := seen[e.ID]; n > 1 || n == 0 && r.bound == 0 {
			return fmt.Sprintf("scan of a growing session visits entry %q %d times, want once", e.ID, n)
		}
	}
	return ""
}

func scanRange(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for id, entries := range r.entries {
		n := int64(len(entries))
		for _, span := range [][2]int64{{0, 1}, {1, 0}, {1, 3}, {n / 2, n}, {n, 0}, {n - 1, n - 1}} {
			from, to := max(span[0], 0), max(span[1], 0)
			var want []string
			for _, e := range entries {
				if e.Seq >= from && (to == 0 || e.Seq < to) {
					want = append(want, e.ID)
				}
			}
			for _, reverse := range []bool{false, true} {
				if reverse {
					slices.Reverse(want)
				}
				text := r.settled(func() string {
					got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: 2, FromSeq: from, ToSeq: to, Reverse: reverse})
					if text != "" {
						return text
					}
					slices.SortFunc(got, func(a, b core.Entry) int { return int(a.Seq - b.Seq) })
					if reverse {
						slices.Reverse(got)
					}
					return sameIDs(idsOf(got), want)
				})
				if text != "" {
					return fmt.Sprintf("session %s from %d to %d, reverse %v: %s", id, from, to, reverse, text)
				}
			}
		}
	}
	return r.rangeOfAgents()
}

// rangeOfAgents scans agents as a whole: positions are those of sessions, and change nothing there.
func (r *storeRun) rangeOfAgents() string {
	for _, agent := range []core.Scope{{Agent: "agent-a"}, {Agent: "agent-b"}} {
		for _, span := range [][2]int64{{1, 2}, {3, 0}, {0, 1}, {1000, 2000}} {
			for _, reverse := range []bool{false, true} {
				for _, limit := range []int{3, core.MaxPage} {
					q := core.ScanQuery{Scope: agent, Limit: limit, Reverse: reverse}
					text := r.settled(func() string {
						want, text := r.scan(q)
						if n := len(r.in(agent)); text == "" && len(want) != n {
							text = fmt.Sprintf("%d entries without any, want all %d", len(want), n)
						}
						within := q
						within.FromSeq, within.ToSeq = span[0], span[1]
						got, failed := r.scan(within)
						return cmp.Or(text, failed, sameIDs(idsOf(got), idsOf(want)))
					})
					if text != "" {
						return fmt.Sprintf("scan of agent %q, reverse %v, limit %d, with positions from %d to %d, which are those of sessions: %s", agent.Agent, reverse, limit, span[0], span[1], text)
					}
				}
			}
		}
	}
	return ""
}

func isolationScan(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, scope := range r.scopes() {
		for _, reverse := range []bool{false, true} {
			got, text := r.scan(core.ScanQuery{Scope: scope, Limit: core.MaxPage, Reverse: reverse})
			if text != "" {
				return text
			}
			for _, e := range got {
				if !scope.Contains(e.SessionID()) {
					return fmt.Sprintf("scan of %+v returns %q of session %s", scope, e.ID, e.SessionID())
				}
			}
		}
	}
	return ""
}

// scopes returns the sessions and the agents of the generated entries, and one that is empty.
func (r *storeRun) scopes() []core.Scope {
	return []core.Scope{
		sessionOf(0).Scope(), sessionOf(1).Scope(), sessionOf(2).Scope(),
		{Agent: "agent-a"}, {Agent: "agent-b"}, {Agent: "agent"}, {Agent: "agent-a", Session: "mai"},
	}
}

// in returns what was stored in a scope.
func (r *storeRun) in(scope core.Scope) []core.Entry {
	var out []core.Entry
	for _, e := range r.all {
		if scope.Contains(e.SessionID()) {
			out = append(out, e)
		}
	}
	return out
}
