package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// unordered appends three entries of one session the last first: a store that keeps the order of appends besides that of positions must not confuse them.
func (r *storeRun) unordered() string {
	b := r.make(batch{Entries: make([]entrySpec, 3)})
	b[0].Seq, b[2].Seq = b[2].Seq, b[0].Seq
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append of three entries, the last first: error %v, want none", err)
	}
	r.remember(b)
	return ""
}

// keyFree appends under the key that an entry had.
func (r *storeRun) keyFree(e core.Entry) string {
	again := claim(e, "key of "+e.ID)
	again.ID, again.Key, again.Seq = fmt.Sprint("E-free-", r.made), e.Key, int64(1<<20+r.made) // a place of its own
	r.made++
	res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{again}))
	if err != nil || res.Duplicates != 0 {
		return fmt.Sprintf("Append under a key that %q had before: %+v, error %v, want it stored", e.ID, res, err)
	}
	if _, err := r.store.Get(r.ctx(), e.SessionID().Scope(), []string{again.ID}); err != nil {
		return fmt.Sprintf("Get of what was appended under a key that %q had: error %v, want none", e.ID, err)
	}
	return ""
}

// keysReplaced replaces keys, alone and together with every choice of other fields, and appends under the old one and under the new one.
func (r *storeRun) keysReplaced() string {
	m := message.New(message.User, "under another key")
	for n := range 8 {
		b := r.make(batch{Entries: []entrySpec{{Who: n % 3}}})
		if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		e, c, fields := b[0], core.Change{Key: "replaced " + b[0].ID}, "key"
		if n&1 > 0 {
			c.Message, c.Tokens, c.Fingerprint, fields = &m, 4, "replaced", fields+", message"
		}
		if n&2 > 0 {
			c.Type, fields = core.TypeSubagent, fields+", type"
		}
		if n&4 > 0 {
			c.Meta, fields = map[string]string{"replaced": "yes"}, fields+", metadata"
		}
		text := cmp.Or(r.change(&e, c), r.keyFree(b[0]))
		if again := claim(e, "replaced"); text == "" {
			again.Key, again.Seq = e.Key, e.Seq+5000
			if res, err := r.store.Append(r.ctx(), []core.Entry{again}); err != nil || res.Duplicates != 1 || res.IDs[0] != e.ID {
				text = fmt.Sprintf("Append under the new key of %q: %+v, error %v, want a duplicate", e.ID, res, err)
			}
		}
		if between := e; text == "" {
			text = cmp.Or(r.change(&e, core.Change{Key: "replaced twice " + e.ID}), r.keyFree(between))
		}
		if text == "" {
			if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
				return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
			}
			text = r.keyFree(e)
		}
		if text != "" {
			return fmt.Sprintf("after an update of an entry's %s: %s", fields, text)
		}
	}
	return ""
}

// keysTwice replaces the key of a new entry twice. It returns the entry as it was before each time, whose keys are free.
func (r *storeRun) keysTwice() (before []core.Entry, text string) {
	b := r.make(batch{Entries: []entrySpec{{}}})
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return nil, fmt.Sprintf("Append: error %v, want none", err)
	}
	for _, key := range []string{"second key", "third key"} {
		before = append(before, b[0])
		if text := r.change(&b[0], core.Change{Key: key}); text != "" {
			return nil, text
		}
	}
	r.remember(b)
	return before, ""
}

// keysFree appends under keys that entries had before they were updated, and then under one that is replaced now.
func (r *storeRun) keysFree(before []core.Entry) string {
	now := map[string]string{}
	for _, e := range r.all {
		now[e.ID] = e.Key
	}
	for _, e := range before {
		if key, there := now[e.ID]; there && key != e.Key {
			if text := r.keyFree(e); text != "" {
				return text
			}
		}
	}
	for _, e := range r.all {
		if e.Type != core.TypeErased {
			if text := r.empty(e); text != "" {
				return text
			}
			return r.keyFree(e)
		}
	}
	return ""
}

// besideOthers updates entries that another updates or deletes at the same time, and looks at what is left.
func (r *storeRun) besideOthers() string {
	const n, head = 12, 200 * time.Microsecond
	users, id := r.users(2), core.SessionID{Agent: "agent-a", Session: "beside others"}
	entries := make([]core.Entry, 2*n)
	for i := range entries {
		entries[i] = plainEntry(1000+i, id, int64(i))
		entries[i].Meta = map[string]string{"source": "before"}
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(entries)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	for i, e := range entries {
		m := message.New(e.Role, "")
		erasure := core.Change{Message: &m, Fingerprint: "erased", Type: core.TypeErased, Key: "erased:" + e.ID}
		text := atOnce(2, func(who int) string {
			// The other call comes at the same time, or while the first is under way. Sleeping would last longer than that.
			for begin := time.Now(); time.Since(begin) < time.Duration(who*(i%4))*head; {
				runtime.Gosched()
			}
			switch {
			case who == 0:
				if err := users[0].Update(r.ctx(), id.Scope(), e.ID, erasure); err != nil && (i < n || !errors.Is(err, core.ErrNotFound)) {
					return fmt.Sprintf("Update(%q) beside another call: error %v, want none", e.ID, err)
				}
			case i < n:
				if err := users[1].Update(r.ctx(), id.Scope(), e.ID, core.Change{Meta: map[string]string{"seen": "yes"}}); err != nil {
					return fmt.Sprintf("Update(%q) beside another: error %v, want none", e.ID, err)
				}
			default:
				if got, err := users[1].Delete(r.ctx(), id.Scope(), []string{e.ID}); err != nil || got != 1 {
					return fmt.Sprintf("Delete(%q) beside an update: %d, error %v, want 1 and none", e.ID, got, err)
				}
			}
			return ""
		})
		if text != "" {
			return text
		}
		entries[i].Message, entries[i].Tokens, entries[i].Fingerprint, entries[i].Type, entries[i].Key = m, 0, erasure.Fingerprint, erasure.Type, erasure.Key
		entries[i].Meta = map[string]string{"seen": "yes"}
	}
	text := r.settled(func() string {
		got, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage})
		if text != "" {
			return text
		}
		return sameEntries(got, entries[:n])
	})
	if text != "" {
		return "entries that one call erased, and another gave metadata or deleted at the same time: " + text
	}
	return ""
}

// feedMany appends more entries than a page can hold and follows the feed from a mark before them, in pages of many.
func (r *storeRun) feedMany() string {
	const many = core.MaxPage + 40
	f := r.follower("agent-a", core.MaxPage)
	if text := f.follow(); text != "" {
		return text
	}
	b := make([]core.Entry, many)
	for i := range b {
		b[i] = plainEntry(2000+i, core.SessionID{Agent: "agent-a", Session: "many changes"}, int64(i))
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append of %d entries: error %v, want none", many, err)
	}
	for _, limit := range []int{30, 150, core.MaxPage/2 + 1, core.MaxPage} {
		told := map[string]bool{}
		for q := (core.ChangeQuery{Agent: "agent-a", After: f.mark, Limit: limit}); ; {
			page, err := f.feed.Changes(r.ctx(), q)
			if errors.Is(err, core.ErrNotFound) && len(told) == 0 {
				return "" // it cannot go on from so old a mark, and says so
			}
			if err != nil || page.More && page.Mark == q.After {
				return fmt.Sprintf("Changes, limit %d: error %v, mark %q after %q, more %v", limit, err, page.Mark, q.After, page.More)
			}
			for _, c := range page.Changes {
				told[c.ID] = true
			}
			if q.After = page.Mark; !page.More {
				break
			}
		}
		for _, e := range b {
			if !told[e.ID] {
				return fmt.Sprintf("who follows by %d from a mark before %d changes is told of %d of them, not of %q", limit, many, len(told), e.ID)
			}
		}
	}
	r.remember(b)
	return r.deletesMany(b)
}

// deletesMany deletes hundreds of entries, some by themselves and the others at once, before one who was told of all of them.
func (r *storeRun) deletesMany(b []core.Entry) string {
	const alone, kept = 40, 20
	f := r.follower("agent-a", 100)
	if text := f.follow(); text != "" {
		return text
	}
	scope, ids := b[0].SessionID().Scope(), idsOf(b[kept:])
	for some := range slices.Chunk(ids[:alone], 1) {
		ids = ids[1:]
		if n, err := r.store.Delete(r.ctx(), scope, some); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", some, n, err)
		}
	}
	if n, err := r.store.Delete(r.ctx(), scope, slices.Clone(ids)); err != nil || n != len(ids) {
		return fmt.Sprintf("Delete of %d entries: %d, error %v, want them deleted", len(ids), n, err)
	}
	r.all = slices.DeleteFunc(r.all, func(e core.Entry) bool { return e.Session == scope.Session && e.Seq >= kept })
	if _, err := f.feed.Changes(r.ctx(), core.ChangeQuery{Agent: f.agent, After: f.mark, Limit: 1}); errors.Is(err, core.ErrNotFound) {
		return "" // as in feedMany
	}
	if text := f.follow(); text != "" {
		return fmt.Sprintf("after %d deletions: %s", len(b)-kept, text)
	}
	return ""
}

// nearestOfMany looks for the nearest of hundreds of vectors, of which one lies at the end, one in the middle and one at the beginning.
func (r *storeRun) nearestOfMany(v vector.Store, search func(core.SearchQuery) ([]core.Hit, string)) string {
	const many, wanted = 540, 3
	id := core.SessionID{Agent: "agent-many", Session: "many vectors"}
	entries, vectors := make([]core.Entry, many), make([]vector.Vector, many)
	var near []string
	at := func(i int, degrees float64) {
		vectors[i].Values = []float32{float32(math.Cos(degrees * math.Pi / 180)), float32(math.Sin(degrees * math.Pi / 180))}
	}
	for i := range entries {
		entries[i] = plainEntry(3000+i, id, int64(i))
		vectors[i] = vector.Vector{ID: entries[i].ID, End: 4, Hash: uint64(i)}
		at(i, 100)
	}
	for rank, i := range []int{many - 1, many / 2, 0} {
		at(i, float64(10*rank+5))
		near = append(near, entries[i].ID)
	}
	// The nearest has many parts, each of them nearer than any other entry: it takes one place.
	for part := 1; part < 60; part++ {
		vectors = append(vectors, vector.Vector{ID: entries[many-1].ID, Part: part, Start: part, End: part + 4, Hash: many - 1})
		at(len(vectors)-1, 5+float64(part)/20)
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(entries)); err != nil {
		return fmt.Sprintf("Append of %d entries: error %v, want none", many, err)
	}
	if err := v.PutVectors(r.ctx(), nearSpace, vectors); err != nil {
		return fmt.Sprintf("PutVectors of %d: error %v, want none", many, err)
	}
	hits, text := search(core.SearchQuery{Scope: core.Scope{Agent: id.Agent}, Limit: wanted})
	if text != "" {
		return text
	}
	got := make([]string, len(hits))
	for i, h := range hits {
		got[i] = h.Entry.ID
	}
	if d := sameIDs(got, near); d != "" {
		return fmt.Sprintf("the nearest of %d vectors: %s", many, d)
	}
	return ""
}

// freshViews has one opening read views and their list that another one changes.
func (r *storeRun) freshViews(users []core.Store) string {
	if r.views() == nil {
		return ""
	}
	stays, goes, comes := sessionOf(0), sessionOf(1), sessionOf(2)
	version := uint64(0)
	for i, reader := range users {
		r.store = users[1-i]
		if version++; version == 1 {
			if err := r.views().SwapView(r.ctx(), richView(stays, version)); err != nil {
				return fmt.Sprintf("SwapView: error %v, want none", err)
			}
		}
		if text := r.publish(goes, 1); text != "" {
			return text
		}
		r.store = reader
		text := r.settled(func() string {
			return cmp.Or(r.holds(stays, version), r.holds(goes, 1), r.listed("", core.MaxPage, sortedSessions(stays, goes)))
		})
		if text != "" {
			return text
		}
		r.store = users[1-i]
		if err := r.views().SwapView(r.ctx(), richView(stays, version+1)); err != nil {
			return fmt.Sprintf("SwapView: error %v, want none", err)
		}
		if err := r.views().DeleteView(r.ctx(), goes); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
		if text := r.publish(comes, 1); text != "" {
			return text
		}
		r.store = reader
		text = r.settled(func() string {
			if text := r.holds(stays, version+1); text != "" {
				return text
			}
			if _, err := r.views().LoadView(r.ctx(), goes); !errors.Is(err, core.ErrNotFound) {
				return fmt.Sprintf("LoadView of %s, whose view is deleted: error %v, want ErrNotFound", goes, err)
			}
			return r.listed("", core.MaxPage, sortedSessions(stays, comes))
		})
		if text != "" {
			return "to one who read views that another changed: " + text
		}
		if err := r.views().DeleteView(r.ctx(), comes); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
	}
	return ""
}

func sortedSessions(ids ...core.SessionID) []core.SessionID {
	slices.SortFunc(ids, core.SessionID.Compare)
	return ids
}
