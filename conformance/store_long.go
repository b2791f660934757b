package conformance

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/contextengine/contextengine/core"
)

// longChecks look into sessions of hundreds of entries, where a store may have another way to know what is there than in short ones.
func longChecks() []Check {
	return []Check{
		{ID: "odd.long", Promise: 2, Suite: SuiteStore, store: oddLong, once: true,
			Rule: "in a session of hundreds of entries positions, keys and ids are taken wherever their entry stands, and free where it was deleted"},
		{ID: "tail.long", Promise: 2, Suite: SuiteStore, store: tailLong, Needs: []Need{NeedTailer}, once: true,
			Rule: "Tail.Next of a session of hundreds of entries is the position behind the newest, whatever was deleted, changed or filled in before it"},
	}
}

// longSession is the number of entries of a long session.
const longSession = 400

// drawn returns n places below size, others for every case.
func (r *storeRun) drawn(n, size int) []int {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, r.steps)
	return rand.New(rand.NewPCG(h.Sum64(), 0)).Perm(size)[:n] //nolint:gosec // as all of the suite
}

// long appends a long session at once.
func (r *storeRun) long(id core.SessionID) ([]core.Entry, string) {
	r.watch.patient(3 * time.Minute) // as odd.batch
	all := make([]core.Entry, longSession)
	for i := range all {
		all[i] = plainEntry(i, id, int64(i))
	}
	if _, err := r.store.Append(r.ctx(), cloneEntries(all)); err != nil {
		return nil, fmt.Sprintf("Append of %d entries: error %v, want none", len(all), err)
	}
	return all, ""
}

func oddLong(r *storeRun) string {
	all, text := r.long(sessionOf(0))
	if text != "" {
		return text
	}
	places := r.drawn(8, len(all)-2)
	for _, i := range append([]int{0, len(all) - 1}, places...) {
		if text := r.taken(all[i], all[(i+len(all)/2)%len(all)]); text != "" {
			return fmt.Sprintf("number %d of %d entries: %s", i+1, len(all), text)
		}
	}
	for _, i := range places[:4] {
		e := all[i]
		if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
		}
		all[i] = claim(e, e.ID)
		if res, err := r.store.Append(r.ctx(), cloneEntries(all[i:i+1])); err != nil || res.Duplicates != 0 {
			return fmt.Sprintf("Append at position %d, whose entry was deleted: %d duplicates, error %v, want it stored", e.Seq, res.Duplicates, err)
		}
		if text := r.taken(all[i], all[i+1]); text != "" {
			return fmt.Sprintf("number %d of %d entries, after another one there was deleted: %s", i+1, len(all), text)
		}
	}
	r.remember(all)
	return r.settled(func() string {
		got, text := r.scan(core.ScanQuery{Scope: sessionOf(0).Scope(), Limit: core.MaxPage})
		if text != "" {
			return text
		}
		return sameEntries(got, all)
	})
}

// taken tries to take the position, the key and the id of an entry, and to give it the key of another.
func (r *storeRun) taken(e, other core.Entry) string {
	if _, err := r.store.Append(r.ctx(), []core.Entry{claim(e, "late")}); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append at position %d, which %q has: error %v, want ErrConflict", e.Seq, e.ID, err)
	}
	known, id := claim(e, "again"), claim(e, "id")
	known.Key, known.Seq = e.Key, e.Seq+5000
	if res, err := r.store.Append(r.ctx(), []core.Entry{known}); err != nil || res.Duplicates != 1 || res.IDs[0] != e.ID {
		return fmt.Sprintf("Append under the key of %q: %+v, error %v, want a duplicate", e.ID, res, err)
	}
	id.ID, id.Seq = e.ID, e.Seq+5000
	if _, err := r.store.Append(r.ctx(), []core.Entry{id}); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append of the known id %q with another key: error %v, want ErrConflict", e.ID, err)
	}
	if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Key: other.Key}); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Update(%q) to the key that %q has: error %v, want ErrConflict", e.ID, other.ID, err)
	}
	return ""
}

func tailLong(r *storeRun) string {
	id := sessionOf(0)
	tailer, _ := core.As[core.Tailer](r.store)
	if _, err := tailer.Tail(r.ctx(), id); unsupported(err) {
		return ""
	}
	all, text := r.long(id)
	if text != "" {
		return text
	}
	ends := func(at int64, after string) string {
		if got, err := tailer.Tail(r.ctx(), id); err != nil || got.Next != at+1 {
			return fmt.Sprintf("Tail of a session of %d entries after %s: %+v, error %v, want Next %d", len(all), after, got, err, at+1)
		}
		return ""
	}
	gone := func(e core.Entry) string {
		if n, err := r.store.Delete(r.ctx(), id.Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
		}
		return ""
	}
	newest := all[len(all)-1]
	if text := ends(newest.Seq, "an append"); text != "" {
		return text
	}
	holes := r.drawn(8, len(all)-2)
	for _, i := range holes {
		if text := gone(all[i]); text != "" {
			return text
		}
		if text := ends(newest.Seq, "the deletion of one between"); text != "" {
			return text
		}
	}
	filled := claim(all[holes[0]], "filled")
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{filled})); err != nil {
		return fmt.Sprintf("Append at a position that is free again: error %v, want none", err)
	}
	if text := inTurn(func() string { return ends(newest.Seq, "an append between") }, func() string { return r.empty(filled) },
		func() string { return ends(newest.Seq, "emptying one between") }, func() string { return gone(newest) },
		func() string { return ends(all[len(all)-2].Seq, "the deletion of the newest") }); text != "" {
		return text
	}
	newest = claim(newest, "behind a gap")
	newest.Seq += 1000
	if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{newest})); err != nil {
		return fmt.Sprintf("Append behind a gap: error %v, want none", err)
	}
	return ends(newest.Seq, "an append behind a gap")
}
