package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// movingChecks look at stores that change while somebody reads them, and again after they were closed.
func movingChecks() []Check {
	return []Check{
		{ID: "moving.deleted", Promise: 2, Suite: SuiteStore, store: movingDeleted, dear: true,
			Rule: "what is deleted between two pages takes nothing else out of the scan, brings nothing back and does not come later itself, at every place and in both directions"},
		{ID: "moving.updated", Promise: 2, Suite: SuiteStore, store: movingUpdated, dear: true,
			Rule: "what is updated between two pages is visited once, and as it is now when it comes later"},
		{ID: "moving.appended", Promise: 2, Suite: SuiteStore, store: movingAppended, dear: true,
			Rule: "appends between two pages, at the end, in a gap and in other sessions, neither skip nor repeat what was there"},
		{ID: "scan.same", Promise: 6, Suite: SuiteStore, store: scanSame,
			Rule: "across sessions the order is any that stays the same, and within each session that of Seq, whatever the limit"},
		{ID: "race.different", Promise: 2, Suite: SuiteStore, store: raceDifferent, dear: true,
			Rule: "writers, changers and readers at the same time lose nothing of what each of them did, and of several that delete the same entries one counts each"},
		{ID: "delete.again", Promise: 2, Suite: SuiteStore, store: deleteAgain,
			Rule: "the id, the key and the position of a deleted entry are free again; an id that is named twice counts once"},
		{ID: "update.alone", Promise: 2, Suite: SuiteStore, store: updateAlone,
			Rule: "a nil field of a Change leaves what is there, the key that is set is the entry's from then on, and the one it had is free, whatever else is changed with it"},
		{ID: "reopen.everything", Promise: 2, Suite: SuiteStore, store: reopenEverything, Needs: []Need{NeedReopen},
			Rule: "what was updated, erased and deleted stays so after the store was closed and opened again; keys, ids, views and the order of positions too, and a key that was replaced is free"},
	}
}

// interrupted scans a scope and calls between after page number at. It returns how often each entry was visited, and the last that was seen of it.
func (r *storeRun) interrupted(q core.ScanQuery, at int, between func(seen map[string]int, last core.Entry) string) (map[string]int, map[string]core.Entry, string) {
	seen, latest := map[string]int{}, map[string]core.Entry{}
	for n := range 20 + 4*len(r.all) {
		page, err := r.store.Scan(r.ctx(), q)
		if err != nil {
			return nil, nil, fmt.Sprintf("Scan(%+v) after a change: error %v, want none", q, err)
		}
		for _, e := range page.Entries {
			if q.Type != "" && e.Type != q.Type {
				continue // others may be there, and say nothing
			}
			seen[e.ID]++
			latest[e.ID] = e
		}
		if n == at && len(page.Entries) > 0 {
			if text := between(seen, page.Entries[len(page.Entries)-1]); text != "" {
				return nil, nil, text
			}
		}
		if page.Next == "" {
			return seen, latest, ""
		}
		q.Cursor = page.Next
	}
	return nil, nil, fmt.Sprintf("Scan(%+v) does not end after a change", q)
}

// refill empties the store and fills it anew.
func (r *storeRun) refill() string {
	for _, agent := range []string{"agent-a", "agent-b"} {
		var ids []string
		for e, err := range core.All(r.ctx(), r.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				return fmt.Sprintf("Scan: error %v, want none", err)
			}
			ids = append(ids, e.ID)
		}
		if _, err := r.store.Delete(r.ctx(), core.Scope{Agent: agent}, ids); err != nil {
			return fmt.Sprintf("Delete: error %v, want none", err)
		}
	}
	r.all, r.entries, r.next = nil, nil, nil
	r.made += 100
	return r.fill()
}

// eachMove interrupts scans at every place, in both directions, and judges what they visited. A move that changes entries changes those of in, too.
func (r *storeRun) eachMove(move func(scope core.Scope, seen map[string]int, last core.Entry, in []core.Entry) (gone map[string]bool, text string)) string {
	if r.bound > 0 {
		return "" // a store that is behind cannot be held to this
	}
	steps := r.steps[:min(len(r.steps), 3)]
	r.steps = append([]batch{{Entries: []entrySpec{{}, {Who: 1}, {}, {}}}}, steps...)
	for _, agent := range []bool{false, true} {
		for _, reverse := range []bool{false, true} {
			for _, limit := range []int{1, 2} {
				for at := range 3 {
					if text := r.refill(); text != "" {
						return text
					}
					scope := sessionOf(0).Scope()
					if agent {
						scope.Session = ""
					}
					in := r.in(scope)
					gone, before := map[string]bool{}, map[string]int{}
					q := core.ScanQuery{Scope: scope, Limit: limit, Reverse: reverse}
					seen, latest, text := r.interrupted(q, at, func(seen map[string]int, last core.Entry) (text string) {
						before = maps.Clone(seen)
						gone, text = move(scope, seen, last, in)
						return text
					})
					if text != "" {
						return text
					}
					for _, e := range in {
						text, n := "", seen[e.ID]
						switch later := n > before[e.ID]; {
						case n > 1 || n == 0 && !gone[e.ID]:
							text = fmt.Sprintf("visits %q %d times, want once", e.ID, n)
						case later && gone[e.ID]:
							text = fmt.Sprintf("a later page has %q, which is deleted", e.ID)
						case later:
							if text = sameEntry(latest[e.ID], e); text != "" {
								text = "a later page has an entry as it was before: " + text
							}
						}
						if text != "" {
							return fmt.Sprintf("scan of %+v, limit %d, reverse %v, changed after page %d: %s", scope, limit, reverse, at+1, text)
						}
					}
				}
			}
		}
	}
	return ""
}

func movingDeleted(r *storeRun) string {
	n := 0
	return r.eachMove(func(scope core.Scope, seen map[string]int, last core.Entry, in []core.Entry) (map[string]bool, string) {
		n++
		gone := map[string]bool{}
		var ids []string
		for _, e := range in {
			// What the cursor stands on, and besides what was seen, or one that was not.
			if e.ID == last.ID || n%3 == 1 && seen[e.ID] > 0 || n%3 == 2 && seen[e.ID] == 0 && len(ids) < 1 {
				ids = append(ids, e.ID)
				gone[e.ID] = true
			}
		}
		if _, err := r.store.Delete(r.ctx(), scope, ids); err != nil {
			return nil, fmt.Sprintf("Delete: error %v, want none", err)
		}
		return gone, ""
	})
}

func movingUpdated(r *storeRun) string {
	n := 0
	return r.eachMove(func(_ core.Scope, _ map[string]int, _ core.Entry, in []core.Entry) (map[string]bool, string) {
		n++
		for i := range in {
			m := message.New(in[i].Role, "moved "+in[i].ID)
			c := core.Change{Message: &m, Tokens: 3, Fingerprint: "moved"}
			switch n % 3 { // the message alone, what is left of an entry that is erased, and all that is not the message
			case 1:
				m = message.New(in[i].Role, "")
				c.Type, c.Key, c.Meta = core.TypeErased, "moved:"+in[i].ID, map[string]string{}
			case 2:
				c = core.Change{Type: core.TypeSubagent, Key: "moved:" + in[i].ID, Meta: map[string]string{"moved": "yes"}}
			}
			if text := r.change(&in[i], c); text != "" {
				return nil, text
			}
		}
		return nil, ""
	})
}

func movingAppended(r *storeRun) string {
	n := 0
	return r.eachMove(func(core.Scope, map[string]int, core.Entry, []core.Entry) (map[string]bool, string) {
		n++
		batch := r.make(batch{Entries: []entrySpec{{}, {Who: 1}, {Who: 2}, {}}})
		for i := range batch {
			batch[i].Seq += int64(1000 + i)
		}
		first := claim(batch[0], fmt.Sprint("first", n))
		first.Session, first.Seq = "a new one", int64(n)
		if _, err := r.store.Append(r.ctx(), cloneEntries(append(batch, first))); err != nil {
			return nil, fmt.Sprintf("Append during a scan: error %v, want none", err)
		}
		return nil, ""
	})
}

func scanSame(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, scope := range []core.Scope{{Agent: "agent-a"}, {Agent: "agent-b"}} {
		for _, reverse := range []bool{false, true} {
			text := r.settled(func() string {
				var first []string
				for i, limit := range []int{core.MaxPage, 1, 3, core.MaxPage} {
					got, text := r.scan(core.ScanQuery{Scope: scope, Limit: limit, Reverse: reverse})
					if text != "" {
						return text
					}
					if i == 0 {
						first = idsOf(got)
					}
					if d := sameIDs(idsOf(got), first); d != "" {
						return fmt.Sprintf("in pages of %d: %s", limit, d)
					}
					last := map[core.SessionID]int64{}
					for _, e := range got {
						if before, ok := last[e.SessionID()]; ok && (e.Seq < before) != reverse {
							return fmt.Sprintf("position %d of session %s comes after %d", e.Seq, e.SessionID(), before)
						}
						last[e.SessionID()] = e.Seq
					}
				}
				return ""
			})
			if text != "" {
				return fmt.Sprintf("scan of %+v, reverse %v: %s", scope, reverse, text)
			}
		}
	}
	return ""
}

func raceDifferent(r *storeRun) string {
	const workers, each = 4, 6
	if text := r.fill(); text != "" {
		return text
	}
	users := r.users(workers)
	all := make([][]core.Entry, workers)
	text := atOnce(workers, func(w int) string {
		s, id := users[w], core.SessionID{Agent: "agent-a", Session: fmt.Sprint("race-", w%2)}
		for i := range each {
			e := plainEntry(1000*(w+1)+i, id, int64(i*workers+w))
			if _, err := s.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
				return fmt.Sprintf("Append by one of several: error %v, want none", err)
			}
			switch i % 3 {
			case 1:
				m := message.New(message.User, fmt.Sprintf("changed by %d at %d", w, i))
				if err := s.Update(r.ctx(), id.Scope(), e.ID, core.Change{Message: &m, Tokens: 9, Fingerprint: "r"}); err != nil {
					return fmt.Sprintf("Update by one of several: error %v, want none", err)
				}
				e.Message, e.Tokens, e.Fingerprint = m, 9, "r"
			case 2:
				if n, err := s.Delete(r.ctx(), id.Scope(), []string{e.ID}); err != nil || n != 1 {
					return fmt.Sprintf("Delete by one of several: %d, error %v, want 1 and none", n, err)
				}
				continue
			}
			got, err := s.Get(r.ctx(), id.Scope(), []string{e.ID})
			if err != nil {
				return fmt.Sprintf("Get of what was just appended: error %v, want none", err)
			}
			if d := sameEntries(got, []core.Entry{e}); d != "" {
				return "Get by one of several: " + d
			}
			if _, err := s.Scan(r.ctx(), core.ScanQuery{Scope: core.Scope{Agent: id.Agent}, Limit: 50}); err != nil {
				return fmt.Sprintf("Scan by one of several: error %v, want none", err)
			}
			all[w] = append(all[w], e)
		}
		return ""
	})
	if text != "" {
		return text
	}
	for w := range all {
		r.remember(all[w])
	}
	for id := range r.entries {
		slices.SortFunc(r.entries[id], func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return inTurn(r.readAll, r.countsOnce)
}

func deleteAgain(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	for i, e := range r.all {
		if i%2 == 0 {
			continue
		}
		scope := e.SessionID().Scope()
		if i%4 == 1 {
			scope.Session = ""
		}
		named := []string{"E-none", e.ID, e.ID}
		if i%4 == 3 {
			named = []string{e.ID}
		}
		if n, err := r.store.Delete(r.ctx(), scope, named); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q), of which one is there: %d, error %v, want 1 and none", named, n, err)
		}
		again := e
		if i%4 == 3 {
			again.ID = e.ID + "-new"
		}
		again.Tokens++
		if res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{again})); err != nil || res.Duplicates != 0 || res.IDs[0] != again.ID {
			return fmt.Sprintf("Append under the key and position of a deleted entry: %+v, error %v, want it stored", res, err)
		}
		r.all[i] = again
		own := r.entries[e.SessionID()]
		own[slices.IndexFunc(own, func(o core.Entry) bool { return o.ID == e.ID })] = again
	}
	return r.readAll()
}

func updateAlone(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for i := range r.all {
		e := &r.all[i]
		var c core.Change
		switch i % 5 {
		case 0:
			c.Key = "new key of " + e.ID
			e.Key = c.Key
		case 1:
			c.Type = core.TypeSubagent
			e.Type = c.Type
		case 2:
			m := message.New(message.Tool, "")
			c = core.Change{Message: &m, Fingerprint: "empty"}
			e.Message, e.Tokens, e.Fingerprint = m, 0, "empty"
		case 3:
			c.Meta = map[string]string{"a": "", "": "b"}
			e.Meta = map[string]string{"a": "", "": "b"}
		}
		scope := e.SessionID().Scope()
		if i%2 == 0 {
			scope.Session = ""
		}
		if err := r.store.Update(r.ctx(), scope, e.ID, c); err != nil {
			return fmt.Sprintf("Update(%q, %+v): error %v, want none", e.ID, c, err)
		}
	}
	if text := r.readAll(); text != "" {
		return text
	}
	// What was updated is updated once more, and it is the last that counts.
	for i := range min(len(r.all), 5) {
		e := &r.all[i]
		for _, text := range []string{"once more", "and for the last time"} {
			m := message.New(e.Role, text)
			if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &m, Tokens: len(text), Fingerprint: text}); err != nil {
				return fmt.Sprintf("another Update(%q): error %v, want none", e.ID, err)
			}
			e.Message, e.Tokens, e.Fingerprint = m, len(text), text
		}
	}
	if text := r.readAll(); text != "" {
		return "after another update: " + text
	}
	for _, e := range r.all {
		again := e
		again.ID += "-again"
		if res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{again})); err != nil || res.Duplicates != 1 || res.IDs[0] != e.ID {
			return fmt.Sprintf("Append under key %q, which %q has since an update: %+v, error %v, want a duplicate", e.Key, e.ID, res, err)
		}
	}
	return inTurn(r.readAll, r.keysReplaced)
}
