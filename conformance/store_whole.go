package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// wholeChecks look for what was done by halves, and for errors that say too much.
func wholeChecks() []Check {
	return []Check{
		{ID: "odd.whole", Promise: 9, Suite: SuiteStore, store: oddWhole, once: true,
			Rule: "a batch of any size with a conflict in it, of an id or of a position, at its end or in its middle, or whose context ends on the way, is not stored, none of it"},
		{ID: "update.taken", Promise: 9, Suite: SuiteStore, store: updateTaken,
			Rule: "Update to a key that another entry of the session has is ErrConflict and changes nothing; its own key, and one of another session, it may have"},
		{ID: "race.erased", Promise: 2, Suite: SuiteStore, store: raceErased, once: true,
			Rule: "an Update is one step: who reads meanwhile sees the entry as it was or as it is, never a part of the change; it undoes no other one made at the same time, nor a deletion"},
		{ID: "race.shown", Promise: 2, Suite: SuiteStore, store: raceShown, once: true,
			Rule: "entries become visible in the order given: what is seen of a batch while it is appended is its beginning"},
		{ID: "error.holds", Suite: SuiteStore, store: errorHolds, once: true,
			Rule: "errors never hold keys, or what a message says"},
	}
}

func oddWhole(r *storeRun) string {
	r.watch.patient(3 * time.Minute) // as odd.batch
	known := []core.Entry{plainEntry(0, sessionOf(0), 0), plainEntry(1, sessionOf(1), 0)}
	if _, err := r.store.Append(r.ctx(), cloneEntries(known)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(known)
	var batch []core.Entry
	for _, size := range []int{1001, 101, 25} {
		for _, at := range []int{size - 1, size / 2} {
			for _, of := range []string{"id", "position"} {
				if size > core.MaxPage && (of == "id") != (at == size/2) {
					continue // two of the largest say enough
				}
				batch = make([]core.Entry, size)
				for i := range batch {
					batch[i] = plainEntry(i+2, sessionOf(i%2), int64(i+1))
				}
				given := cloneEntries(batch)
				if of == "id" {
					given[at].ID = known[0].ID
				} else {
					given[at].Seq = 0
				}
				what := fmt.Sprintf("Append of %d entries, number %d at the %s of another", size, at+1, of)
				if _, err := r.store.Append(r.ctx(), given); !errors.Is(err, core.ErrConflict) {
					return fmt.Sprintf("%s: error %v, want ErrConflict", what, err)
				}
				if got, text := r.scan(core.ScanQuery{Scope: core.Scope{Agent: known[0].Agent}, Limit: core.MaxPage}); text != "" || len(got) != len(known) {
					return fmt.Sprintf("%s: a scan finds %d entries, want the %d from before %s", what, len(got), len(known), text)
				}
				if _, err := r.store.Get(r.ctx(), batch[0].SessionID().Scope(), []string{batch[0].ID}); !errors.Is(err, core.ErrNotFound) {
					return fmt.Sprintf("%s: Get of the first: error %v, want ErrNotFound", what, err)
				}
			}
		}
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
		return fmt.Sprintf("Append of %d entries that were refused for a conflict among them, now without it: error %v, want none", len(batch), err)
	}
	r.remember(batch)
	return inTurn(r.readAll, r.endsAmongMany)
}

func updateTaken(r *storeRun) string {
	r.steps = append([]batch{{Entries: make([]entrySpec, 3)}}, r.steps...)
	if text := r.fill(); text != "" {
		return text
	}
	for _, e := range r.all {
		own := r.entries[e.SessionID()]
		other := own[(slices.IndexFunc(own, func(o core.Entry) bool { return o.ID == e.ID })+1)%len(own)]
		if other.ID == e.ID {
			continue
		}
		m := message.New(e.Role, "not to be")
		change := core.Change{Message: &m, Tokens: 3, Fingerprint: "not to be", Type: core.TypeErased, Key: other.Key, Meta: map[string]string{"not": "to be"}}
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, change); !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("Update(%q) to the key that %q has: error %v, want ErrConflict", e.ID, other.ID, err)
		}
	}
	if text := r.readAll(); text != "" {
		return "after an update to a key that is taken: " + text
	}
	elsewhere := claim(r.all[0], "elsewhere")
	elsewhere.Session = "elsewhere"
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{elsewhere})); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember([]core.Entry{elsewhere})
	for _, key := range []string{r.all[0].Key, elsewhere.Key} {
		if err := r.store.Update(r.ctx(), r.all[0].SessionID().Scope(), r.all[0].ID, core.Change{Key: key}); err != nil {
			return fmt.Sprintf("Update(%q) to its own key, and then to one of another session: error %v, want none", r.all[0].ID, err)
		}
		r.all[0].Key = key
	}
	return r.readAll()
}

// until calls f again and again until done is closed, and once more.
func until(done <-chan struct{}, f func(round int) string) string {
	for round := 0; ; round++ {
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		if text := f(round); text != "" || last {
			return text
		}
	}
}

func raceShown(r *storeRun) string {
	if r.bound > 0 {
		return "" // a store that is behind cannot be held to this
	}
	users := r.users(2)
	first := 0
	for round, n := range []int{20, 20, 20, 20, 400, 400} { // the longer it takes, the more is seen of it
		id := core.SessionID{Agent: "agent-a", Session: fmt.Sprint("shown-", round)}
		scope := id.Scope()
		if round > 1 { // of several sessions by turns
			id.Agent = fmt.Sprint("agent-", round)
			scope = core.Scope{Agent: id.Agent}
		}
		given := make([]core.Entry, n)
		for i := range given {
			given[i] = plainEntry(first+i, id, int64(i))
			if round > 1 {
				given[i].Session = fmt.Sprint("shown-", i%3)
			}
		}
		if round%2 == 1 {
			slices.Reverse(given) // the order given is another one than that of the positions
		}
		first += n
		order := idsOf(given)
		done, looking := make(chan struct{}), make(chan struct{})
		text := atOnce(2, func(who int) string {
			if who == 0 {
				defer close(done)
				<-looking // an append may be over before the other one of two has begun
				if _, err := users[0].Append(r.ctx(), given); err != nil {
					return fmt.Sprintf("Append: error %v, want none", err)
				}
				return ""
			}
			return until(done, func(look int) string {
				page, err := users[1].Scan(r.ctx(), core.ScanQuery{Scope: scope, Limit: core.MaxPage})
				if look == 0 {
					close(looking)
				}
				if err != nil {
					return fmt.Sprintf("Scan during an append: error %v, want none", err)
				}
				if page.Next != "" {
					return "" // what follows is seen at another time
				}
				seen := idsOf(page.Entries)
				if len(seen) == n {
					return ""
				}
				for _, first := range order[:min(len(seen), n)] {
					if !slices.Contains(seen, first) {
						return fmt.Sprintf("a scan during an append of %d entries, %q first, sees %d of them, and not %q: that is not its beginning", n, order[0], len(seen), first)
					}
				}
				return ""
			})
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// errorHolds makes calls fail and looks for marks in what they say: only keys and texts have any.
func errorHolds(r *storeRun) string {
	const keys = 9 // in place of a session, so that the mark of a key is not that of a text
	entries := make([]core.Entry, 4)
	for i := range entries {
		entries[i] = plainEntry(i, sessionOf(0), int64(i))
		entries[i].Key = "secret " + markOf(keys, i)
	}
	stored, fresh, other := entries[:2], entries[2], entries[3]
	if _, err := r.store.Append(r.ctx(), cloneEntries(stored)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(stored)
	id := sessionOf(0)
	appended := func(change func(e *core.Entry)) func(context.Context) error {
		batch := cloneEntries([]core.Entry{fresh, other})
		change(&batch[1])
		return func(ctx context.Context) error {
			_, err := r.store.Append(ctx, batch)
			return err
		}
	}
	updated := func(scope core.Scope, entry string) func(context.Context) error {
		return func(ctx context.Context) error {
			return r.store.Update(ctx, scope, entry, core.Change{Message: &fresh.Message, Tokens: 5, Fingerprint: fresh.Fingerprint, Key: stored[1].Key})
		}
	}
	said := func(name string, err error) string {
		if err == nil {
			return "" // other checks ask for the error
		}
		if marks := marksIn(err.Error()); len(marks) > 0 {
			return fmt.Sprintf("%s: the error holds %q, which is of a key or of a text: %v", name, marks, err)
		}
		return ""
	}
	for _, c := range []struct {
		name string
		call func(context.Context) error
	}{
		{"Append of a known id with another key", appended(func(e *core.Entry) { e.ID = stored[0].ID })},
		{"Append at a position that is taken", appended(func(e *core.Entry) { e.Seq = stored[0].Seq })},
		{"Append of two entries for one position", appended(func(e *core.Entry) { e.Seq = fresh.Seq })},
		{"Get with an unknown id", func(ctx context.Context) error {
			_, err := r.store.Get(ctx, id.Scope(), []string{stored[0].ID, "E-none"})
			return err
		}},
		{"Get in another session", func(ctx context.Context) error {
			_, err := r.store.Get(ctx, sessionOf(1).Scope(), []string{stored[0].ID})
			return err
		}},
		{"Update of an unknown id", updated(id.Scope(), "E-none")},
		{"Update in another session", updated(sessionOf(1).Scope(), stored[0].ID)},
		{"Update to a key that is taken", updated(id.Scope(), stored[0].ID)},
	} {
		if text := said(c.name, c.call(r.ctx())); text != "" {
			return text
		}
	}
	ended, cancel := cancellable(r.ctx())
	cancel()
	calls := r.calls(fresh)
	names := slices.Sorted(maps.Keys(calls))
	for _, name := range names {
		if text := said(name+" with an ended context", calls[name](r.watch.calling(ended))); text != "" {
			return text
		}
	}
	if err := r.store.Close(); err != nil {
		return fmt.Sprintf("Close: error %v, want none", err)
	}
	for _, name := range names {
		if text := said(name+" after Close", calls[name](r.ctx())); text != "" {
			return text
		}
	}
	return ""
}
