package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/vector"
)

// reopenEverything changes a part of everything, closes and opens the store, and looks whether it is as it was left.
func reopenEverything(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	vectors, embeds, text := r.embeds()
	before := cloneEntries(r.all)
	if text == "" {
		text = r.rework()
	}
	var between []core.Entry
	if text == "" {
		between, text = r.keysTwice()
	}
	if text == "" {
		text = r.unordered()
	}
	if text != "" {
		return text
	}
	gone := map[string]core.Entry{}
	for i, e := range r.all {
		if i%4 == 3 {
			gone[e.ID] = e
			if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
				return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
			}
		}
	}
	r.all = slices.DeleteFunc(r.all, func(e core.Entry) bool { _, ok := gone[e.ID]; return ok })
	views := r.views() != nil
	if views {
		for who := range 3 {
			if text := r.publish(sessionOf(who), uint64(who+1)); text != "" {
				return text
			}
		}
		if err := r.views().DeleteView(r.ctx(), sessionOf(1)); err != nil {
			return fmt.Sprintf("DeleteView: error %v, want none", err)
		}
	}
	for range 2 {
		r.store = r.reopen(r.tb, r.store)
		if text := r.readAll(); text != "" {
			return "after reopening: " + text
		}
		for id, e := range gone {
			if _, err := r.store.Get(r.ctx(), e.SessionID().Scope(), []string{id}); !errors.Is(err, core.ErrNotFound) {
				return fmt.Sprintf("after reopening: Get of the deleted %q: error %v, want ErrNotFound", id, err)
			}
		}
		for _, e := range r.all {
			if res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil || res.Duplicates != 1 {
				return fmt.Sprintf("after reopening: Append of the known %q: %+v, error %v, want a duplicate", e.ID, res, err)
			}
			other := claim(e, "id"+e.ID)
			other.ID, other.Seq = e.ID, e.Seq+5000
			if _, err := r.store.Append(r.ctx(), []core.Entry{other}); !errors.Is(err, core.ErrConflict) {
				return fmt.Sprintf("after reopening: Append of the known id %q with another key: error %v, want ErrConflict", e.ID, err)
			}
		}
		text := r.reopenedViews(views)
		if text == "" && embeds != nil {
			text = r.reopenedVectors(vectors)
		}
		if text != "" {
			return "after reopening: " + text
		}
	}
	for _, e := range gone {
		r.all = append(r.all, e)
		if res, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil || res.Duplicates != 0 {
			return fmt.Sprintf("after reopening: Append of %q, which was deleted: %+v, error %v, want it stored", e.ID, res, err)
		}
	}
	if text := r.unordered(); text != "" {
		return text
	}
	if text := r.readAll(); text != "" {
		return "after reopening, and an append of the last first: " + text
	}
	text = r.keysFree(before)
	for _, e := range between {
		text = cmp.Or(text, r.keyFree(e))
	}
	if text != "" {
		return "after reopening: " + text
	}
	return ""
}

// reopenedVectors looks that the vectors of what was not touched are there, and none of what was erased or deleted.
func (r *storeRun) reopenedVectors(all []vector.Vector) string {
	v, ok := core.As[vector.Store](r.store)
	if !ok {
		return "it keeps no vectors any more"
	}
	if text := r.vectorsStill(v, r.untouched(all)); text != "" {
		return text
	}
	for _, agent := range []string{"agent-a", "agent-b"} {
		got, text := r.vectorsOf(v, "one/3", agent, core.MaxPage)
		if text != "" {
			return text
		}
		for _, g := range got {
			if !slices.ContainsFunc(r.all, func(e core.Entry) bool { return e.ID == g.ID && e.Type != core.TypeErased }) {
				return fmt.Sprintf("there is a vector of %q, which was erased or deleted before", g.ID)
			}
		}
	}
	return ""
}

func (r *storeRun) reopenedViews(views bool) string {
	if !views {
		return ""
	}
	for _, who := range []int{0, 2} {
		if text := r.holds(sessionOf(who), uint64(who+1)); text != "" {
			return text
		}
		if err := r.views().SwapView(r.ctx(), richView(sessionOf(who), uint64(who+1))); !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("SwapView of the stored version: error %v, want ErrConflict", err)
		}
	}
	if _, err := r.views().LoadView(r.ctx(), sessionOf(1)); !errors.Is(err, core.ErrNotFound) {
		return fmt.Sprintf("LoadView of a deleted view: error %v, want ErrNotFound", err)
	}
	return r.listed("", 2, []core.SessionID{sessionOf(0), sessionOf(2)})
}

// rework updates a part of the entries, and empties another.
func (r *storeRun) rework() string {
	for i := range r.all {
		e := &r.all[i]
		m := message.New(e.Role, "reworked "+e.ID)
		c := core.Change{Message: &m, Tokens: 11, Fingerprint: "reworked", Meta: map[string]string{"reworked": "yes"}}
		switch i % 4 {
		case 1:
			m = message.New(e.Role, "")
			c = core.Change{Message: &m, Fingerprint: "erased", Type: core.TypeErased, Key: "erased:" + e.ID, Meta: map[string]string{}}
			e.Type, e.Key = c.Type, c.Key
		case 2:
		default:
			continue
		}
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, c); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
		e.Message, e.Tokens, e.Fingerprint, e.Meta = m, c.Tokens, c.Fingerprint, c.Meta
	}
	return ""
}
