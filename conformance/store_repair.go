package conformance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

func repairKeeps(r *storeRun) string {
	s, _ := core.As[upkeep.Repairer](r.store)
	r.steps = append(r.steps, ordinary(9))
	if text := inTurn(r.fill, r.eachType); text != "" {
		return text
	}
	vectors, v, text := r.embeds()
	if text == "" && r.views() != nil {
		text = r.publish(sessionOf(0), 2)
	}
	if text == "" {
		text = r.empty(r.all[0])
	}
	if text != "" {
		return text
	}
	// The positions of each session have a gap.
	second := func(e core.Entry) bool { return e.Seq == 1 }
	for at := slices.IndexFunc(r.all, second); at >= 0; at = slices.IndexFunc(r.all, second) {
		e := r.all[at]
		if n, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID}); err != nil || n != 1 {
			return fmt.Sprintf("Delete(%q): %d, error %v, want 1 and none", e.ID, n, err)
		}
		vectors = slices.DeleteFunc(vectors, func(v vector.Vector) bool { return v.ID == e.ID })
		r.all = slices.Delete(r.all, at, at+1)
	}
	before := map[core.Scope][]core.Entry{}
	for _, scope := range r.scopes() {
		if before[scope], text = r.scan(core.ScanQuery{Scope: scope, Limit: core.MaxPage}); text != "" {
			return text
		}
	}
	saved, err := s.Repair(r.ctx())
	if unsupported(err) {
		return ""
	}
	if err != nil || saved != "" {
		return fmt.Sprintf("Repair of a store that is whole: a copy at %q, error %v, want neither", saved, err)
	}
	for _, scope := range r.scopes() {
		after, failed := r.scan(core.ScanQuery{Scope: scope, Limit: core.MaxPage})
		text = cmp.Or(text, failed, sameEntries(after, before[scope]))
	}
	if r.all = r.all[1:]; text == "" {
		text = r.getAll()
	}
	if text == "" && r.views() != nil {
		text = r.holds(sessionOf(0), 2)
	}
	if text == "" && v != nil {
		text = r.vectorsHold(v, "one/3", vectors)
	}
	if text != "" {
		return "after a repair of a store that is whole: " + text
	}
	return ""
}
