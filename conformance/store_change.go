package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
)

func getOrder(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for id, entries := range r.entries {
		ids := idsOf(entries)
		for _, scope := range []core.Scope{id.Scope(), {Agent: id.Agent}} {
			for name, order := range map[string][]string{
				"as stored": ids, "reversed": reversed(ids), "rotated": append(slices.Clone(ids[len(ids)/2:]), ids[:len(ids)/2]...),
				"twice": append(slices.Clone(ids), reversed(ids)...), "each twice": eachTwice(ids),
			} {
				got, err := r.store.Get(r.ctx(), scope, order)
				if err != nil {
					return fmt.Sprintf("Get of %d ids %s: error %v, want none", len(order), name, err)
				}
				if d := sameIDs(idsOf(got), order); d != "" {
					return fmt.Sprintf("Get of ids %s: %s", name, d)
				}
			}
		}
	}
	if got, err := r.store.Get(r.ctx(), sessionOf(0).Scope(), nil); err != nil || len(got) != 0 {
		return fmt.Sprintf("Get of no ids: %d entries, error %v, want none and none", len(got), err)
	}
	return ""
}

func reversed(ids []string) []string {
	out := slices.Clone(ids)
	slices.Reverse(out)
	return out
}

// eachTwice names every id twice in a row.
func eachTwice(ids []string) []string {
	var out []string
	for _, id := range ids {
		out = append(out, id, id)
	}
	return out
}

func getMissing(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	ids := []string{"E-none"}
	for _, e := range r.entries[sessionOf(0)] {
		ids = append(ids, e.ID)
	}
	for _, ids := range [][]string{ids, reversed(ids)} {
		got, err := r.store.Get(r.ctx(), sessionOf(0).Scope(), ids)
		if !errors.Is(err, core.ErrNotFound) || len(got) != 0 {
			return fmt.Sprintf("Get(%q) with one unknown id: %d entries, error %v, want none and ErrNotFound", ids, len(got), err)
		}
	}
	return ""
}

func isolationGet(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, e := range r.all {
		for _, scope := range r.scopes() {
			if scope.Contains(e.SessionID()) {
				continue
			}
			got, err := r.store.Get(r.ctx(), scope, []string{e.ID})
			if !errors.Is(err, core.ErrNotFound) || len(got) != 0 {
				return fmt.Sprintf("Get(%q) of session %s in scope %+v: %d entries, error %v, want none and ErrNotFound",
					e.ID, e.SessionID(), scope, len(got), err)
			}
		}
	}
	return ""
}

func updateChanges(r *storeRun) string {
	if text := inTurn(r.fill, r.getAll); text != "" {
		return text
	}
	for i := range r.all {
		e := &r.all[i]
		var change core.Change
		switch i % 3 {
		case 0:
			m := message.New(message.User, "redacted "+e.ID)
			m.Raw = bytes.Clone(oddBytes)
			change = core.Change{Message: &m, Tokens: 7, Fingerprint: message.Fingerprint(m)}
			e.Message, e.Tokens, e.Fingerprint = m, 7, change.Fingerprint
		case 1:
			change = core.Change{Meta: map[string]string{"new": "界\x00"}}
			e.Meta = map[string]string{"new": "界\x00"}
		default:
			change = core.Change{Meta: map[string]string{}}
			e.Meta = nil
		}
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, change); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
	}
	return r.getAll()
}

// updateErase turns every second entry into a tombstone and appends one of them again under its old key.
func updateErase(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	var first core.Entry
	for i := 0; i < len(r.all); i += 2 {
		e := &r.all[i]
		if first.ID == "" {
			first = *e
		}
		m := message.New(e.Role, "")
		change := core.Change{
			Message: &m, Tokens: 0, Fingerprint: "x" + e.ID, Type: core.TypeErased, Key: "x:" + e.ID, Meta: map[string]string{},
		}
		e.Message, e.Tokens, e.Fingerprint, e.Type, e.Key, e.Meta = m, 0, change.Fingerprint, change.Type, change.Key, nil
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, change); err != nil {
			return fmt.Sprintf("Update(%q) to an erased entry: error %v, want none", e.ID, err)
		}
	}
	if text := r.getAll(); text != "" || first.ID == "" {
		return text
	}
	again := first
	again.ID, again.Seq = "E-again", first.Seq+1000
	res, err := r.store.Append(r.ctx(), []core.Entry{again})
	if err != nil || res.Duplicates != 0 {
		return fmt.Sprintf("Append under the key that an erased entry had: error %v, %d duplicates, want none", err, res.Duplicates)
	}
	return ""
}

func updateMissing(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	m := message.New(message.User, "not yours")
	change := core.Change{Message: &m, Tokens: 5, Fingerprint: message.Fingerprint(m), Meta: map[string]string{"x": "y"}}
	for _, e := range r.all {
		for _, scope := range r.scopes() {
			if scope.Contains(e.SessionID()) {
				continue
			}
			if err := r.store.Update(r.ctx(), scope, e.ID, change); !errors.Is(err, core.ErrNotFound) {
				return fmt.Sprintf("Update(%q) of session %s in scope %+v: error %v, want ErrNotFound", e.ID, e.SessionID(), scope, err)
			}
		}
	}
	if err := r.store.Update(r.ctx(), sessionOf(0).Scope(), "E-none", change); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("Update of an unknown id: error %v, want ErrNotFound", err)
	}
	return r.getAll()
}

// deleteGone deletes every other entry, one id twice.
func deleteGone(r *storeRun) string {
	if text := inTurn(r.fill, r.getAll); text != "" {
		return text
	}
	var kept []core.Entry
	left := map[core.SessionID][]core.Entry{}
	for id, entries := range r.entries {
		var ids []string
		for i, e := range entries {
			if i%2 == 0 {
				ids = append(ids, e.ID)
				continue
			}
			kept = append(kept, e)
			left[id] = append(left[id], e)
		}
		n, err := r.store.Delete(r.ctx(), id.Scope(), slices.Clone(ids))
		if err != nil || n != len(ids) {
			return fmt.Sprintf("Delete(%q): %d, error %v, want %d and none", ids, n, err, len(ids))
		}
		if n, err := r.store.Delete(r.ctx(), id.Scope(), ids); err != nil || n != 0 {
			return fmt.Sprintf("Delete(%q) again: %d, error %v, want 0 and none", ids, n, err)
		}
		for _, gone := range ids {
			for _, scope := range scopesOf(id) {
				if _, err := r.store.Get(r.ctx(), scope, []string{gone}); !errors.Is(err, core.ErrNotFound) {
					return fmt.Sprintf("Get(%q) in %+v after Delete: error %v, want ErrNotFound", gone, scope, err)
				}
			}
		}
		left[id] = append([]core.Entry{}, left[id]...)
	}
	r.all = kept
	if text := r.getAll(); text != "" {
		return text
	}
	return r.count(left)
}

func deleteScope(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	for _, e := range r.all {
		for _, scope := range r.scopes() {
			if scope.Contains(e.SessionID()) {
				continue
			}
			if n, err := r.store.Delete(r.ctx(), scope, []string{e.ID, "E-none"}); err != nil || n != 0 {
				return fmt.Sprintf("Delete(%q) of session %s in scope %+v: %d, error %v, want 0 and none", e.ID, e.SessionID(), scope, n, err)
			}
		}
	}
	return r.getAll()
}

// copyOwned spoils what it gave and what it got, as deep as it goes.
func copyOwned(r *storeRun) string {
	if text := r.copiedEntries(); text != "" {
		return text
	}
	for i := range r.all {
		e := &r.all[i]
		if i%2 == 1 {
			continue
		}
		m := fullEntry(i, e.SessionID()).Message
		e.Message, e.Tokens, e.Fingerprint, e.Meta = m, 9, "copied", map[string]string{"copied": "yes"}
		given := cloneEntries([]core.Entry{*e})[0]
		c := core.Change{Message: &given.Message, Tokens: 9, Fingerprint: "copied", Meta: given.Meta}
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, c); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
		spoilt(&given)
		given.Message.Parts = nil
	}
	if text := r.readAll(); text != "" {
		return "after the caller changed what it had given to Update: " + text
	}
	return inTurn(r.copiedViews, r.copiedDeletes)
}

// copiedDeletes deletes what there is, under ids in an order that is not theirs, one of them twice and one unknown.
func (r *storeRun) copiedDeletes() string {
	for who := range 3 {
		id := sessionOf(who)
		ids := append(reversed(idsOf(r.entries[id])), "E-none", "E-a", "E-a")
		given := slices.Clone(ids)
		if _, err := r.store.Delete(r.ctx(), id.Scope(), given); err != nil {
			return fmt.Sprintf("Delete: error %v, want none", err)
		}
		if d := sameIDs(given, ids); d != "" {
			return "Delete changed the ids it was given: " + d
		}
	}
	return ""
}

// copiedAgain appends known entries under other ids, last first and together with a new one, and once more with a conflict.
func (r *storeRun) copiedAgain(known []core.Entry) string {
	given := cloneEntries(known)
	slices.Reverse(given)
	for i := range given {
		given[i].ID += "-copied"
	}
	fresh := r.make(batch{Entries: []entrySpec{{Shape: fullShape}}})
	given = append(given, cloneEntries(fresh)...)
	kept := cloneEntries(given)
	if _, err := r.store.Append(r.ctx(), given); err != nil {
		return fmt.Sprintf("Append of known keys and a new one: error %v, want none", err)
	}
	if d := sameEntries(given, kept); d != "" {
		return "Append changed what it was given, known keys among it: " + d
	}
	spoilt(given)
	r.remember(fresh)
	given = append(cloneEntries(known), claim(fresh[0], "copied-"+fresh[0].ID))
	kept = cloneEntries(given)
	if _, err := r.store.Append(r.ctx(), given); !errors.Is(err, core.ErrConflict) {
		return fmt.Sprintf("Append at a position that is taken: error %v, want ErrConflict", err)
	}
	if d := sameEntries(given, kept); d != "" {
		return "Append changed what it was given and refused: " + d
	}
	return ""
}

func (r *storeRun) copiedEntries() string {
	for _, b := range r.steps {
		batch := r.make(b)
		if len(batch) == 0 {
			continue
		}
		given := cloneEntries(batch)
		if _, err := r.store.Append(r.ctx(), given); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		if d := sameEntries(given, batch); d != "" {
			return "Append changed what it was given: " + d
		}
		spoilt(given)
		r.remember(batch)
		if text := r.copiedAgain(batch); text != "" {
			return text
		}
	}
	for round := range 2 {
		for id, entries := range r.entries {
			page, err := r.store.Scan(r.ctx(), core.ScanQuery{Scope: id.Scope(), Limit: core.MaxPage})
			if err != nil {
				return fmt.Sprintf("Scan: error %v, want none", err)
			}
			spoilt(page.Entries)
			ids := reversed(idsOf(entries))
			got, err := r.store.Get(r.ctx(), id.Scope(), ids)
			if err != nil {
				return fmt.Sprintf("Get: error %v, want none", err)
			}
			if d := sameIDs(ids, reversed(idsOf(entries))); d != "" {
				return "Get changed the ids it was given: " + d
			}
			spoilt(got)
		}
		if text := r.readAll(); text != "" {
			return fmt.Sprintf("after the caller changed what it had given and got, round %d: %s", round+1, text)
		}
	}
	return ""
}

func (r *storeRun) copiedViews() string {
	if r.views() == nil {
		return ""
	}
	id := sessionOf(0)
	for v := uint64(1); v <= 2; v++ {
		given := richView(id, v)
		if err := r.views().SwapView(r.ctx(), given); err != nil {
			return fmt.Sprintf("SwapView: error %v, want none", err)
		}
		if d := sameView(given, richView(id, v)); d != "" {
			return "SwapView changed what it was given: " + d
		}
		spoiltView(&given)
		if text := r.holds(id, v); text != "" {
			return "after the caller changed the view it had given: " + text
		}
		got, err := r.views().LoadView(r.ctx(), id)
		if err != nil {
			return fmt.Sprintf("LoadView: error %v, want none", err)
		}
		spoiltView(&got)
		if text := r.holds(id, v); text != "" {
			return "after the caller changed the view it had got: " + text
		}
	}
	return ""
}

func closeClosed(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	if err := r.store.Close(); err != nil {
		return fmt.Sprintf("Close: error %v, want none", err)
	}
	if err := r.store.Close(); err != nil {
		return fmt.Sprintf("second Close: error %v, want none", err)
	}
	calls := r.calls(r.make(batch{Entries: []entrySpec{{}}})[0])
	if _, decorates := r.store.(core.Unwrapper); decorates {
		own := []string{"Append", "Get", "Scan", "Update", "Delete"}
		if _, ok := r.store.(upkeep.Backlogger); ok { // what waits is a decorator's own
			own = append(own, "Drain", "Backlog", "CheckRemote")
		}
		// The other companions are those of a store that somebody else may close.
		maps.DeleteFunc(calls, func(name string, _ func(context.Context) error) bool {
			method, _, _ := strings.Cut(name, " ")
			return !slices.Contains(own, method)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if err := calls[name](r.ctx()); !errors.Is(err, core.ErrClosed) && !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Sprintf("%s after Close: error %v, want ErrClosed", name, err)
		}
	}
	return ""
}
