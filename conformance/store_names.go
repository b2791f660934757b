package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// alikeNames are pairs of agent and session that careless stores mix up.
func alikeNames() []core.SessionID {
	long := strings.Repeat("s", 300)
	var out []core.SessionID
	for _, n := range [][2]string{
		{"ann", "main"}, {"Ann", "main"}, {"ann", "Main"}, {"ann", "MAIN"}, {"ann", "main "}, {"ann", " main"}, {"ann ", "main"}, {"ann", "main\t"},
		{"ann", "ma"}, {"an", "nmain"}, {"annmain", "main"}, {"ann", "mainmain"},
		{"ann", "b/c"}, {"ann/b", "c"}, {"ann", "b:c"}, {"ann:b", "c"}, {"ann", "b|c"}, {"ann|b", "c"}, {"ann", "b-c"}, {"ann-b", "c"}, {"ann", "b c"}, {"ann b", "c"},
		{"ann", "b_c"}, {"ann_b", "c"}, {"ann", "b.c"}, {"ann.b", "c"}, {"ann", "b#c"}, {"ann#b", "c"}, {"ann", "b%2Fc"}, {"ann", "b%c"}, {"ann", "b\\c"},
		{"ann", "caf\u00e9"}, {"ann", "cafe\u0301"}, {"ann", "cafe"}, {"caf\u00e9", "main"}, {"cafe\u0301", "main"}, {"ann", "stra\u00dfe"}, {"ann", "strasse"},
		{"ann", "1"}, {"ann", "01"}, {"ann", "1.0"}, {"ann", "0"}, {"ann", "null"}, {"ann", "*"}, {"ann", "%"}, {"ann", "_"}, {"ann", "'"}, {"ann", "\""}, {"ann", "../main"},
		{"ann", long}, {"ann", long + "s"}, {"ann", "会議"}, {"ann", "予算"}, {"ann", "\u200bmain"}, {"ann", "main\n"},
		{"ann", "😀"}, {"ann", "😁"}, {"ann", "𝒜"}, {"ann", "?"}, {"ann", "\ufffd"}, {"😀", "main"}, {"😁", "main"}, {"𝒜", "main"}, {"?", "main"},
		{"ann", "main\x00"}, {"ann", "main\x00a"}, {"ann", "b\x00c"}, {"ann\x00b", "c"}, {"ann", "b\x1fc"}, {"ann\x1fb", "c"},
		{"ann", "caf\xe9"}, {"ann", "caf\xff"}, {"ann", "caf\ufffd"}, {"caf\xe9", "main"}, {"caf\xff", "main"}, {"caf\ufffd", "main"}, // the first two of each are no UTF-8
	} {
		out = append(out, core.SessionID{Agent: n[0], Session: n[1]})
	}
	return out
}

func oddNames(r *storeRun) string {
	names := alikeNames()
	for i, id := range names {
		e := plainEntry(i, id, 0)
		e.Key = "the same"
		res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e}))
		if err != nil || res.Duplicates != 0 {
			return fmt.Sprintf("Append into session %q of agent %q: %d duplicates, error %v, want none", id.Session, id.Agent, res.Duplicates, err)
		}
		r.remember([]core.Entry{e})
	}
	// Names of a session and of a key that are alike where they are joined.
	for n, by := range []string{"\x00", "\x1f", "/", ":", "|", "#", "\n", " "} {
		first := fmt.Sprint("joined ", n)
		for i, id := range []core.SessionID{{Agent: "ann", Session: first}, {Agent: "ann", Session: first + by + "a"}} {
			e := plainEntry(len(r.all), id, 0)
			e.Key = []string{"a" + by + "k", "k"}[i]
			res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e}))
			if err != nil || res.Duplicates != 0 {
				return fmt.Sprintf("Append with the key %q into session %q of agent %q: %d duplicates, error %v, want none", e.Key, id.Session, id.Agent, res.Duplicates, err)
			}
			r.remember([]core.Entry{e})
			names = append(names, id)
		}
	}
	followers := r.eachAgent(names)
	if text := inTurn(func() string { return r.apart(names) }, func() string { return r.viewsApart(names) }, func() string { return r.foundApart(names) },
		func() string { return r.figures() }, func() string { return r.everybody(followers, "appends to sessions whose names are alike") }); text != "" {
		return text
	}
	// What happens to one happens to no other.
	for i, id := range names {
		if i%3 != 0 {
			continue
		}
		if n, err := r.store.Delete(r.ctx(), id.Scope(), idsOf(r.all)); err != nil || n != 1 {
			return fmt.Sprintf("Delete of all ids in session %q of agent %q: %d, error %v, want 1 and none", id.Session, id.Agent, n, err)
		}
		delete(r.entries, id)
	}
	r.all = slices.DeleteFunc(r.all, func(e core.Entry) bool { return r.entries[e.SessionID()] == nil })
	return inTurn(r.readAll, func() string { return r.everybody(followers, "deletions in sessions whose names are alike") })
}

// eachAgent follows each agent's feed.
func (r *storeRun) eachAgent(names []core.SessionID) []*follower {
	var out []*follower
	for _, id := range names {
		if !slices.ContainsFunc(out, func(f *follower) bool { return f.agent == id.Agent }) {
			out = append(out, r.follower(id.Agent, 20))
		}
	}
	return out
}

// foundApart searches every session for what all of them say.
func (r *storeRun) foundApart(names []core.SessionID) string {
	if !offers[core.Searcher](r.store) {
		return ""
	}
	for _, id := range names {
		hits, text := r.search(core.SearchQuery{Scope: id.Scope(), Text: strings.Join(textPlain.words(), " "), Limit: 50})
		for _, h := range hits {
			if h.Entry.SessionID() != id {
				return fmt.Sprintf("Search in session %q of agent %q: hit %q is of session %q of agent %q", id.Session, id.Agent, h.Entry.ID, h.Entry.Session, h.Entry.Agent)
			}
		}
		if text != "" {
			return text
		}
	}
	return ""
}

// apart looks at every session and every agent.
func (r *storeRun) apart(names []core.SessionID) string {
	agents := map[string]bool{}
	for i, id := range names {
		limits := []int{core.MaxPage, core.MaxPage, 1}
		if agents[id.Agent] {
			limits = limits[:2]
		}
		agents[id.Agent] = true
		for n, limit := range limits {
			// By pages of one entry each agent is scanned once: every session is then one that a cursor names.
			scope := []core.Scope{id.Scope(), {Agent: id.Agent}, {Agent: id.Agent}}[n]
			text := r.settled(func() string { return r.sameSet(core.ScanQuery{Scope: scope, Limit: limit}) })
			if text != "" {
				return fmt.Sprintf("scan of session %q of agent %q: %s", scope.Session, scope.Agent, text)
			}
		}
		other := names[(i+1)%len(names)]
		if _, err := r.store.Get(r.ctx(), other.Scope(), []string{r.all[i].ID}); !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("Get in %q of an entry of %q: error %v, want ErrNotFound", other, id, err)
		}
		if t, ok := core.As[core.Tailer](r.store); ok {
			if got, err := t.Tail(r.ctx(), id); (err != nil || got.Next != 1) && !errors.Is(err, errors.ErrUnsupported) {
				return fmt.Sprintf("Tail of session %q of agent %q: %+v, error %v, want Next 1", id.Session, id.Agent, got, err)
			}
		}
	}
	return ""
}

func (r *storeRun) viewsApart(names []core.SessionID) string {
	if r.views() == nil {
		return ""
	}
	for _, id := range names {
		if text := r.publish(id, 1); text != "" {
			return fmt.Sprintf("session %q of agent %q: %s", id.Session, id.Agent, text)
		}
	}
	for _, id := range names {
		if text := r.holds(id, 1); text != "" {
			return fmt.Sprintf("session %q of agent %q: %s", id.Session, id.Agent, text)
		}
	}
	for _, agent := range []string{"", "ann", "Ann", "ann ", "an", "caf\u00e9", "caf\xe9", "caf\ufffd", "none"} {
		var want []core.SessionID
		for _, id := range names {
			if agent == "" || agent == id.Agent {
				want = append(want, id)
			}
		}
		slices.SortFunc(want, core.SessionID.Compare)
		for _, limit := range []int{1, 7, core.MaxPage} {
			if text := r.listed(agent, limit, want); text != "" {
				return text
			}
		}
	}
	// Those whose names others begin or end with, or are patterns of others.
	gone := []core.SessionID{{Agent: "ann_b", Session: "c"}, {Agent: "ann.b", Session: "c"}, {Agent: "Ann", Session: "main"}, {Agent: "?", Session: "main"}}
	for _, session := range []string{"Main", "ma", "main", "c", "main\x00", "%", "*", "_", "?", "b_c", "b%c", "b.c", "caf\ufffd"} {
		gone = append(gone, core.SessionID{Agent: "ann", Session: session})
	}
	for _, id := range gone {
		if err := r.views().DeleteView(r.ctx(), id); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
	}
	for _, id := range names {
		if !slices.Contains(gone, id) {
			if text := r.holds(id, 1); text != "" {
				return fmt.Sprintf("after DeleteView of another session, session %q of agent %q: %s", id.Session, id.Agent, text)
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(names), func(id core.SessionID) bool { return slices.Contains(gone, id) })
	return r.listed("", core.MaxPage, sortedSessions(left...))
}

// listed follows ListViews to its end.
func (r *storeRun) listed(agent string, limit int, want []core.SessionID) string {
	var got []core.SessionID
	q := core.ViewQuery{Agent: agent, Limit: limit}
	for range len(want)/limit + 3 {
		page, err := r.views().ListViews(r.ctx(), q)
		if err != nil || len(page) > limit {
			return fmt.Sprintf("ListViews(%+v): %d sessions, error %v", q, len(page), err)
		}
		if got = append(got, page...); len(page) < limit {
			break
		}
		q.After = page[len(page)-1]
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("ListViews of agent %q in pages of %d: %q, want %q", agent, limit, got, want)
	}
	return ""
}
