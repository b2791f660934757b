package conformance

import (
	"fmt"
	"maps"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// typeChecks look at scans for entries of one type.
func typeChecks() []Check {
	return []Check{
		{ID: "type.scan", Promise: 2, Suite: SuiteStore, store: typeScan,
			Rule: "a scan for a type visits the entries that have it now, each once and in order, whatever others it leaves out, for every limit, range and direction"},
		{ID: "type.moving", Promise: 2, Suite: SuiteStore, store: typeMoving, dear: true,
			Rule: "what gets or loses the type between two pages of a scan for it takes nothing else out of the scan and brings nothing back"},
		{ID: "type.reopen", Promise: 2, Suite: SuiteStore, store: typeReopen, Needs: []Need{NeedReopen},
			Rule: "a scan for a type visits the same after the store was closed and opened again"},
	}
}

// allTypes are the types that are asked for; of one there is nothing.
func allTypes() []core.EntryType {
	return []core.EntryType{core.TypeMessage, core.TypeHeartbeat, core.TypeSummary, core.TypeSubagent, core.TypeErased, "none"}
}

// retype gives a part of the entries another type, erases a part, and deletes a part.
func (r *storeRun) retype() string {
	var kept []core.Entry
	for i := range r.all {
		e := r.all[i]
		scope := e.SessionID().Scope()
		c := core.Change{}
		switch i % 6 {
		case 0:
			c.Type = core.TypeSummary
		case 1:
			m := message.New(e.Role, "")
			c = core.Change{Message: &m, Fingerprint: "erased", Type: core.TypeErased}
			e.Message, e.Tokens, e.Fingerprint = m, 0, c.Fingerprint
		case 2:
			c.Type = core.TypeMessage
		case 3:
			if n, err := r.store.Delete(r.ctx(), scope, []string{e.ID}); err != nil || n != 1 {
				return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
			}
			continue
		default:
			kept = append(kept, e)
			continue
		}
		if err := r.store.Update(r.ctx(), scope, e.ID, c); err != nil {
			return fmt.Sprintf("Update(%q) to type %q: error %v, want none", e.ID, c.Type, err)
		}
		e.Type = c.Type
		kept = append(kept, e)
	}
	r.all, r.entries = nil, nil
	r.remember(kept)
	return ""
}

// byType compares scans for each type with what is there.
func (r *storeRun) byType() string {
	for _, scope := range r.scopes() {
		in := r.in(scope)
		for _, kind := range allTypes() {
			for _, limit := range []int{1, 2, core.MaxPage} {
				for _, reverse := range []bool{false, true} {
					q := core.ScanQuery{Scope: scope, Limit: limit, Reverse: reverse, Type: kind}
					if text := r.settled(func() string { return r.holdsType(q, in) }); text != "" {
						return text
					}
					if n := int64(len(in)); limit == 2 {
						q.FromSeq, q.ToSeq = n/3, n-n/3
						if text := r.settled(func() string { return r.holdsType(q, in) }); text != "" {
							return text
						}
					}
				}
			}
		}
	}
	return ""
}

// holdsType compares a scan for a type with what there is in its scope.
func (r *storeRun) holdsType(q core.ScanQuery, in []core.Entry) string {
	got, text := r.scan(q)
	if text != "" {
		return text
	}
	where := fmt.Sprintf("scan of %+v for type %q, positions %d to %d, limit %d, reverse %v", q.Scope, q.Type, q.FromSeq, q.ToSeq, q.Limit, q.Reverse)
	seen, last := map[string]int{}, map[core.SessionID]int64{}
	for _, e := range got {
		if before, ok := last[e.SessionID()]; ok && (e.Seq < before) != q.Reverse {
			return fmt.Sprintf("%s: position %d of session %s comes after %d", where, e.Seq, e.SessionID(), before)
		}
		last[e.SessionID()] = e.Seq
		seen[e.ID]++
	}
	for _, e := range in {
		inside := q.Scope.Session == "" || e.Seq >= q.FromSeq && (q.ToSeq == 0 || e.Seq < q.ToSeq)
		n := seen[e.ID]
		switch {
		case n > 1, n > 0 && !inside:
			return fmt.Sprintf("%s: visits %q at position %d %d times", where, e.ID, e.Seq, n)
		case n == 0 && inside && e.Type == q.Type:
			return fmt.Sprintf("%s: does not visit %q at position %d", where, e.ID, e.Seq)
		}
		delete(seen, e.ID)
	}
	for id := range seen {
		return fmt.Sprintf("%s: returns %q, which is not there", where, id)
	}
	return ""
}

func typeScan(r *storeRun) string {
	if text := inTurn(r.fill, r.byType, r.retype); text != "" {
		return text
	}
	if text := r.byType(); text != "" {
		return "after an update: " + text
	}
	return ""
}

func typeMoving(r *storeRun) string {
	if r.bound > 0 {
		return "" // a store that is behind cannot be held to this
	}
	r.steps = append([]batch{{Entries: make([]entrySpec, 9)}}, r.steps[:min(len(r.steps), 3)]...)
	for _, reverse := range []bool{false, true} {
		for at := range 4 {
			if text := r.refill(); text != "" {
				return text
			}
			for _, agent := range []bool{false, true} {
				scope := sessionOf(0).Scope()
				if agent {
					scope.Session = ""
				}
				if text := r.movesType(core.ScanQuery{Scope: scope, Limit: 1, Reverse: reverse, Type: core.TypeErased}, at); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// movesType scans for a type that every other entry has, and turns entries over between two pages.
func (r *storeRun) movesType(q core.ScanQuery, at int) string {
	in := r.in(q.Scope)
	turn := func(e core.Entry, to core.EntryType) string {
		if err := r.store.Update(r.ctx(), q.Scope, e.ID, core.Change{Type: to}); err != nil {
			return fmt.Sprintf("Update(%q) to type %q: error %v, want none", e.ID, to, err)
		}
		return ""
	}
	kinds := map[bool]core.EntryType{true: q.Type, false: core.TypeMessage}
	for i, e := range in {
		if text := turn(e, kinds[i%2 == 0]); text != "" {
			return text
		}
	}
	moved, before := map[string]bool{}, map[string]int{}
	seen, _, text := r.interrupted(q, at, func(seen map[string]int, last core.Entry) string {
		before = maps.Clone(seen)
		for i, e := range in {
			if i%4 != 0 && e.ID != last.ID {
				moved[e.ID] = true
				if text := turn(e, kinds[i%2 != 0]); text != "" {
					return text
				}
			}
		}
		return turn(last, core.TypeMessage) // what the cursor stands on
	})
	if text != "" {
		return text
	}
	for i, e := range in {
		n := seen[e.ID]
		if moved[e.ID] && i%2 == 0 && n > before[e.ID] {
			return fmt.Sprintf("scan of %+v for type %q, reverse %v, with others turned over after page %d: a later page has %q as one of that type, which it is no more", q.Scope, q.Type, q.Reverse, at+1, e.ID)
		}
		if n > 1 || !moved[e.ID] && n != 1-i%2 {
			return fmt.Sprintf("scan of %+v for type %q, reverse %v, with others turned over after page %d: visits %q %d times", q.Scope, q.Type, q.Reverse, at+1, e.ID, n)
		}
	}
	return ""
}

func typeReopen(r *storeRun) string {
	if text := inTurn(r.fill, r.retype); text != "" {
		return text
	}
	for range 2 {
		r.store = r.reopen(r.tb, r.store)
		if text := r.byType(); text != "" {
			return "after reopening: " + text
		}
	}
	return ""
}
