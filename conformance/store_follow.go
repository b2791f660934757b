package conformance

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// feedChecks hold a change feed to what its query asks for.
func feedChecks() []Check {
	return []Check{
		{ID: "feed.oldest", Promise: 2, Suite: SuiteStore, store: feedOldest, Needs: []Need{NeedChangeFeed}, once: true,
			Rule: "a feed tells of what was appended in the order of the calls, and what it returned belongs to the caller"},
		{ID: "feed.known", Promise: 2, Suite: SuiteStore, store: feedKnown, Needs: []Need{NeedChangeFeed}, once: true,
			Rule: "of entries that the caller knows a feed may leave out the append alone: all others, and what happened to known ones later, it tells"},
		{ID: "feed.upkeep", Promise: 2, Suite: SuiteStore, store: feedUpkeep, Needs: []Need{NeedChangeFeed}, once: true,
			Rule: "a mark is good whatever is done to look after a store: who followed before a repair, a scrub, a drain, or vectors that came and went, is told of all that changed before it and since"},
	}
}

// appendEach appends n plain entries to the first agent's two sessions, a call each.
func (r *storeRun) appendEach(n int) string {
	for i := range n {
		e := plainEntry(i, sessionOf(i%2), int64(i))
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		r.remember([]core.Entry{e})
	}
	return ""
}

// told reads a feed from a mark to its end.
func (r *storeRun) told(q core.ChangeQuery) ([]core.EntryChange, core.Mark, string) {
	feed, _ := core.As[core.ChangeFeed](r.store)
	var out []core.EntryChange
	for range r.pages() {
		page, err := feed.Changes(r.ctx(), q)
		if unsupported(err) {
			return nil, "", "unsupported"
		}
		if err != nil {
			return nil, "", fmt.Sprintf("Changes after %q, limit %d: error %v, want none", q.After, q.Limit, err)
		}
		for _, c := range page.Changes {
			if c.Entry != nil {
				c.Entry = &cloneEntries([]core.Entry{*c.Entry})[0]
			}
			out = append(out, c)
		}
		spoilt(page.Changes)
		if page.More && page.Mark == q.After {
			return nil, "", feedEndless
		}
		if q.After = page.Mark; !page.More {
			return out, q.After, ""
		}
	}
	return nil, "", feedEndless
}

func feedOldest(r *storeRun) string {
	const n = 12
	if text := r.appendEach(n); text != "" {
		return text
	}
	for _, limit := range []int{core.MaxPage, 1, 5, core.MaxPage} {
		got, _, text := r.told(core.ChangeQuery{Agent: "agent-a", Limit: limit})
		if text == "unsupported" {
			return ""
		}
		if text != "" {
			return text
		}
		var ids []string
		for i, c := range got {
			ids = append(ids, c.ID)
			if c.Entry == nil || i >= n {
				continue
			}
			if d := sameEntry(*c.Entry, r.all[i]); d != "" {
				return fmt.Sprintf("change %d of a feed in pages of %d: %s", i, limit, d)
			}
		}
		if d := sameIDs(ids, idsOf(r.all)); d != "" {
			return fmt.Sprintf("a feed in pages of %d after %d calls of Append: %s", limit, n, d)
		}
	}
	// Behind all there is there is no more, whether the page is full or not.
	feed, _ := core.As[core.ChangeFeed](r.store)
	for _, limit := range []int{n, core.MaxPage} {
		page, err := feed.Changes(r.ctx(), core.ChangeQuery{Agent: "agent-a", Limit: limit})
		if err != nil || page.More && len(page.Changes) == n {
			return fmt.Sprintf("Changes, limit %d: %d changes of %d, more %v, error %v", limit, len(page.Changes), n, page.More, err)
		}
	}
	return ""
}

func feedKnown(r *storeRun) string {
	if text := r.appendEach(8); text != "" {
		return text
	}
	known := func(id string) bool { return slices.Contains([]string{r.all[0].ID, r.all[3].ID, r.all[6].ID}, id) }
	got, mark, text := r.told(core.ChangeQuery{Agent: "agent-a", Limit: 3, Known: known})
	if text == "unsupported" {
		return ""
	}
	tells := func(got []core.EntryChange, e core.Entry) string {
		i := slices.IndexFunc(got, func(c core.EntryChange) bool { return c.ID == e.ID })
		if i < 0 || got[i].Entry == nil {
			return fmt.Sprintf("%q is not told of", e.ID)
		}
		return sameEntry(*got[i].Entry, e)
	}
	for _, e := range r.all {
		if text == "" && !known(e.ID) {
			text = tells(got, e)
		}
	}
	if text != "" {
		return "to one who knows others: " + text
	}
	// One that the caller knows as it was appended changes, and another goes.
	e := &r.all[3]
	m := message.New(e.Role, "changed since it is known")
	e.Message, e.Tokens, e.Fingerprint = m, 6, "changed"
	if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &m, Tokens: 6, Fingerprint: "changed"}); err != nil {
		return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	// Of the second one the caller was told, of the first it may not have been.
	gone, told := r.all[6], r.all[5]
	for _, e := range []core.Entry{gone, told} {
		if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
		}
	}
	for who, knows := range map[string]func(string) bool{
		"who knows all": func(string) bool { return true }, "who knows none": func(string) bool { return false }, "who knows some": known, "who does not say": nil,
	} {
		for after, from := range map[string]core.Mark{"the beginning": "", "the mark before it": mark} {
			got, _, text := r.told(core.ChangeQuery{Agent: "agent-a", After: from, Limit: 3, Known: knows})
			if text == "" {
				text = tells(got, *e)
			}
			if text != "" {
				return fmt.Sprintf("an update, told to one %s, from %s: %s", who, after, text)
			}
			named := func(e core.Entry) bool {
				return slices.ContainsFunc(got, func(c core.EntryChange) bool { return c.ID == e.ID && c.Entry == nil })
			}
			if from != "" && (!named(told) || knows != nil && knows(gone.ID) && !named(gone)) {
				return fmt.Sprintf("the deletion of %q or %q is not told to one %s, who followed", told.ID, gone.ID, who)
			}
		}
	}
	return ""
}
