package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/identity"
	"github.com/contextengine/contextengine/internal/sharedtest"
)

// sharedChecks are those of stores that several use at the same time.
func sharedChecks() []Check {
	return []Check{
		{ID: "position.once", Promise: 2, Suite: SuiteStore, store: positionOnce,
			Rule: "a position in a session exists once: a new entry at one that is taken is ErrConflict, in one batch and across calls, whatever either of them is, and nothing of the batch is stored"},
		{ID: "position.reopen", Promise: 2, Suite: SuiteStore, store: positionReopen, Needs: []Need{NeedReopen},
			Rule: "a position that was taken is taken after the store was closed and opened again"},
		{ID: "position.race", Promise: 2, Suite: SuiteStore, store: positionRace, dear: true,
			Rule: "of several that append at the same position exactly one succeeds, and the others get ErrConflict"},
		{ID: "tail.follows", Promise: 2, Suite: SuiteStore, store: tailFollows, Needs: []Need{NeedTailer, NeedViewStore},
			Rule: "Tail names the version of the stored view and the position behind the newest entry, whoever stored or deleted them, of reserved sessions too"},
		{ID: "tail.changed", Promise: 2, Suite: SuiteStore, store: tailChanged, Needs: []Need{NeedTailer, NeedNoViews},
			Rule: "in a store that keeps no views Tail.View is another number after an entry of the session was changed or deleted, and Tail.Next the position behind the newest"},
		{ID: "shared.linear", Promise: 2, Suite: SuiteStore, store: sharedLinear, dear: true, Needs: []Need{NeedViewStore},
			Rule: "appends, swaps and reads of several clients are linearizable"},
		{ID: "shared.fresh", Promise: 2, Suite: SuiteStore, store: sharedFresh, Needs: []Need{NeedAnother}, once: true,
			Rule: "who has read an entry, a view, the list of views, or found a vector, reads and finds it again as it is after another one of those who have the store open changed or deleted it"},
		{ID: "shared.close", Promise: 2, Suite: SuiteStore, store: sharedClose, Needs: []Need{NeedAnother}, once: true,
			Rule: "Close ends one opening of a store, not the others"},
		{ID: "shared.engines", Promise: 2, Suite: SuiteStore, store: sharedEngines, dear: true, Needs: []Need{NeedViewStore},
			Rule: "engines that serve one session, by turns or at the same time, lose nothing, store nothing twice, and every call of theirs succeeds"},
	}
}

// users returns n handles on the store's data.
func (r *storeRun) users(n int) []core.Store {
	out := []core.Store{r.store}
	for len(out) < n {
		if r.another == nil {
			out = append(out, r.store)
		} else {
			out = append(out, r.another(r.tb, r.store))
		}
	}
	return out
}

// claim makes an entry of its own for the position of another.
func claim(e core.Entry, name string) core.Entry {
	e = cloneEntries([]core.Entry{e})[0]
	e.ID, e.Key = "E-claim-"+name, "claim "+name
	return e
}

func positionOnce(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	// Across calls, with a valid entry in front that must not be stored either.
	fresh := r.make(batch{Entries: []entrySpec{{Who: 0}}})[0]
	for i, e := range r.all {
		late := claim(e, fmt.Sprint(i))
		if i%2 == 1 { // nothing but the position is the same
			late.Type, late.Role, late.Turn, late.Time = core.TypeSummary, message.Assistant, e.Turn+7, e.Time.Add(time.Hour)
			late.Message, late.Fingerprint = message.New(message.Assistant, "another"), "another"
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{fresh, late})); !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("Append at position %d of %s, which %q has: error %v, want ErrConflict", e.Seq, e.SessionID(), e.ID, err)
		}
	}
	if _, err := r.store.Get(r.ctx(), fresh.SessionID().Scope(), []string{fresh.ID}); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("Get of an entry whose batch was refused for a position: error %v, want ErrNotFound", err)
	}
	// In one batch.
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{fresh, claim(fresh, "twin")})); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append of two entries for position %d: error %v, want ErrConflict", fresh.Seq, err)
	}
	// What is known by its key is a duplicate wherever it would be put.
	again := cloneEntries(r.all[:1])
	again[0].Seq += 1000
	if res, err := r.store.Append(r.ctx(), again); err != nil || res.Duplicates != 1 || res.IDs[0] != again[0].ID {
		return fmt.Sprintf("Append of a known key at another position: %+v, error %v, want a duplicate", res, err)
	}
	// The same position of another session is another one.
	elsewhere := claim(r.all[0], "elsewhere")
	elsewhere.Session = "elsewhere"
	if _, err := r.store.Append(r.ctx(), []core.Entry{elsewhere}); err != nil {
		return fmt.Sprintf("Append at a position of another session: error %v, want none", err)
	}
	// What was emptied keeps its place.
	if text := r.empty(r.all[0]); text != "" {
		return text
	}
	if _, err := r.store.Append(r.ctx(), []core.Entry{claim(r.all[0], "of what was emptied")}); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append at the position of an erased entry: error %v, want ErrConflict", err)
	}
	r.all = r.all[1:]
	return r.getAll()
}

func positionReopen(r *storeRun) string {
	if text := r.fill(); text != "" || len(r.all) == 0 {
		return text
	}
	r.store = r.reopen(r.tb, r.store)
	last := r.all[len(r.all)-1]
	if _, err := r.store.Append(r.ctx(), []core.Entry{claim(last, "late")}); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("after reopening: Append at position %d, which %q has: error %v, want ErrConflict", last.Seq, last.ID, err)
	}
	return r.getAll()
}

func positionRace(r *storeRun) string {
	const writers, rounds = 4, 6
	users := r.users(writers)
	id := core.SessionID{Agent: "agent-a", Session: "race"}
	for seq := range int64(rounds) {
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for w, s := range users {
			e := claim(entrySpec{}.entry(0, seq), fmt.Sprintf("%d-%d", seq, w))
			e.Agent, e.Session = id.Agent, id.Session
			wg.Go(func() { _, errs[w] = s.Append(r.ctx(), []core.Entry{e}) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, core.ErrConflict):
				return fmt.Sprintf("concurrent Append at one position: error %v, want none or ErrConflict", err)
			}
		}
		if won != 1 {
			return fmt.Sprintf("%d of %d concurrent appends at position %d succeeded, want 1", won, writers, seq)
		}
	}
	return ""
}

func tailFollows(r *storeRun) string {
	users := r.users(2)
	if r.another == nil {
		users = users[:1]
	}
	next, version := map[core.SessionID]int64{}, map[core.SessionID]uint64{}
	look := func(after string) string {
		for id := range next {
			want := core.Tail{View: version[id], Next: next[id]}
			for _, user := range users {
				tailer, _ := core.As[core.Tailer](user)
				if got, err := tailer.Tail(r.ctx(), id); err != nil || got != want {
					return fmt.Sprintf("Tail of %s after %s: %+v, error %v, want %+v", id, after, got, err, want)
				}
			}
		}
		return ""
	}
	nobody, secrets := core.SessionID{Agent: "agent-a", Session: "nobody"}, core.SessionID{Agent: "agent-a", Session: "contextengine-secrets"}
	next[nobody], next[secrets] = 0, 0
	swap := func(id core.SessionID) string {
		version[id]++
		views, _ := core.As[core.ViewStore](users[version[id]%uint64(len(users))])
		if err := views.SwapView(r.ctx(), richView(id, version[id])); err != nil {
			return fmt.Sprintf("SwapView: error %v, want none", err)
		}
		return look("a swap")
	}
	if text := swap(nobody); text != "" {
		return text
	}
	var entries []core.Entry
	for _, b := range r.steps {
		entries = append(entries, r.make(b)...)
	}
	hidden := claim(entrySpec{}.entry(0, 3), "hidden")
	hidden.Session = secrets.Session
	for n, e := range append(entries, hidden) {
		if _, err := users[n%len(users)].Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		r.remember([]core.Entry{e})
		next[e.SessionID()] = e.Seq + 1
		if text := look("an append"); text != "" {
			return text
		}
		if core.Reserved(e.Session) {
			continue // no view is of those
		}
		if text := swap(e.SessionID()); text != "" {
			return text
		}
	}
	if text := tailShrinks(r, next, look); text != "" {
		return text
	}
	for id := range version {
		if err := r.views().DeleteView(r.ctx(), id); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
		version[id] = 0
	}
	return look("the views were deleted")
}

// tailShrinks empties the newest entry of each session, deletes it, and then what is left of it.
func tailShrinks(r *storeRun, next map[core.SessionID]int64, look func(after string) string) string {
	for id, entries := range r.entries {
		last := len(entries) - 1
		if text := cmp.Or(r.empty(entries[last]), look("emptying the newest entry of "+id.String())); text != "" {
			return text
		}
		for _, gone := range [][]core.Entry{entries[last:], entries[:last]} {
			if n, err := r.store.Delete(r.ctx(), id.Scope(), idsOf(gone)); err != nil || n != len(gone) {
				return fmt.Sprintf("Delete of %d entries: %d, error %v", len(gone), n, err)
			}
			next[id] = 0
			if last > 0 && gone[0].ID == entries[last].ID {
				next[id] = entries[last-1].Seq + 1
			}
			if text := look(fmt.Sprintf("deleting %d entries of %s, the newest first", len(gone), id)); text != "" {
				return text
			}
			if last == 0 {
				break
			}
		}
	}
	return ""
}

func tailChanged(r *storeRun) string {
	r.steps = append([]batch{{Entries: make([]entrySpec, 5)}}, r.steps...)
	if text := r.fill(); text != "" {
		return text
	}
	tailer, _ := core.As[core.Tailer](r.users(2)[1])
	id := sessionOf(0)
	before, err := tailer.Tail(r.ctx(), id)
	if unsupported(err) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("Tail of %s: error %v, want none", id, err)
	}
	left := r.entries[id]
	update := func(c core.Change) func() error {
		return func() error { return r.store.Update(r.ctx(), id.Scope(), left[1].ID, c) }
	}
	deleted := func(from int) func() error {
		return func() error {
			gone := left[from:]
			left = left[:from]
			_, err := r.store.Delete(r.ctx(), id.Scope(), idsOf(gone))
			return err
		}
	}
	m, none := message.New(message.User, "changed"), message.New(message.User, "")
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"another message", update(core.Change{Message: &m, Tokens: 2, Fingerprint: "changed"})},
		{"other metadata", update(core.Change{Meta: map[string]string{"changed": "yes"}})},
		{"metadata removed", update(core.Change{Meta: map[string]string{}})},
		{"another type", update(core.Change{Type: core.TypeSubagent})},
		{"another key", update(core.Change{Key: "changed"})},
		{"an erasure", update(core.Change{Message: &none, Fingerprint: "erased", Type: core.TypeErased, Key: "erased", Meta: map[string]string{}})},
		{"the newest entry deleted", deleted(len(left) - 1)},
		{"all entries deleted", deleted(0)},
	} {
		if err := step.do(); err != nil {
			return fmt.Sprintf("%s: error %v, want none", step.what, err)
		}
		got, err := tailer.Tail(r.ctx(), id)
		next := int64(0)
		if len(left) > 0 {
			next = left[len(left)-1].Seq + 1
		}
		if err != nil || got.View == before.View || got.Next != next {
			return fmt.Sprintf("Tail of %s after %s: %+v, error %v, was %+v, want another View and Next %d", id, step.what, got, err, before, next)
		}
		before = got
	}
	return ""
}

func sharedFresh(r *storeRun) string {
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	users := r.users(2)
	for i, reader := range users {
		r.store = reader
		if text := r.readAll(); text != "" {
			return text
		}
		r.store = users[1-i]
		var gone []core.Entry
		for n := len(r.all) - 1; n >= 0; n-- {
			e := &r.all[n]
			switch n % 3 {
			case 0:
				gone = append(gone, *e)
				if _, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil {
					return fmt.Sprintf("Delete(%q): error %v, want none", e.ID, err)
				}
				r.all = slices.Delete(r.all, n, n+1)
			case 1:
				m := message.New(e.Role, fmt.Sprint("changed by ", i))
				if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &m, Tokens: 7, Fingerprint: "changed"}); err != nil {
					return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
				}
				e.Message, e.Tokens, e.Fingerprint = m, 7, "changed"
			}
		}
		r.store = reader
		text := r.settled(func() string {
			for _, e := range gone {
				if _, err := r.store.Get(r.ctx(), e.SessionID().Scope(), []string{e.ID}); !errors.Is(err, core.ErrNotFound) {
					return fmt.Sprintf("Get(%q), which is deleted: error %v, want ErrNotFound", e.ID, err)
				}
			}
			return r.readAll()
		})
		if text != "" {
			return "to one who read what another changed: " + text
		}
	}
	return cmp.Or(r.freshViews(users), r.freshVectors(users))
}

func sharedClose(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, first := range []bool{false, true} {
		ends, stays := r.another(r.tb, r.store), r.store
		if identity.Same(ends, stays) {
			return "" // it can be opened only once here
		}
		if first {
			ends, stays = stays, ends
		}
		if err := ends.Close(); err != nil {
			return fmt.Sprintf("Close of one of two openings: error %v, want none", err)
		}
		r.store = stays
		more := r.make(batch{Entries: []entrySpec{{}, {Who: 2}}})
		if _, err := r.store.Append(r.ctx(), cloneEntries(more)); err != nil {
			return fmt.Sprintf("Append through one opening after another was closed: error %v, want none", err)
		}
		r.remember(more)
		if text := r.readAll(); text != "" {
			return "after another opening was closed: " + text
		}
	}
	return ""
}

// sharedEngines lets two engines speak by turns and then at the same time, each on a handle of its own, and looks at the outcome, also after reopening.
func sharedEngines(r *storeRun) string {
	r.watch.patient(linearWait)
	id := core.SessionID{Agent: "agent-a", Session: "shared"}
	var log sharedtest.Log
	var voices []*sharedtest.Voice
	for i, s := range r.users(2) {
		v, err := sharedtest.Worker{Store: s, Session: id, Name: string(rune('a' + i)), Keyed: true, Log: &log}.Begin()
		if err != nil {
			return err.Error()
		}
		voices = append(voices, v)
	}
	said := make([]int, len(voices))
	for _, b := range r.steps { // the generated appends say whose turn it is
		for _, e := range b.Entries {
			v := e.Who % len(voices)
			if err := voices[v].Say(r.ctx(), said[v]); err != nil {
				return "by turns: " + err.Error()
			}
			// A host whose call got no answer says it again, perhaps to the other one.
			if err := voices[(v+1)%len(voices)].Repeat(r.ctx(), voices[v], said[v]); err != nil {
				return "by turns: " + err.Error()
			}
			said[v]++
		}
	}
	errs := make([]error, len(voices))
	var wg sync.WaitGroup
	for i, v := range voices {
		wg.Go(func() {
			for n := range 12 {
				if errs[i] == nil {
					errs[i] = v.Say(r.ctx(), said[i]+n)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return "at the same time: " + err.Error()
	}
	found := sharedtest.Examine(r.ctx(), r.store, id, log.String())
	if r.reopen != nil && r.another == nil {
		r.store = r.reopen(r.tb, r.store)
		found = slices.Concat(found, sharedtest.Examine(r.ctx(), r.store, id, log.String()))
	}
	return strings.Join(found, "\n")
}
