package engine

import (
	"context"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
)

// freshen takes out of a view that this process keeps itself what another one erased or purged; where the store keeps the views, whoever erases does that. It reports
// whether v is to be published.
func (s *session) freshen(ctx context.Context, v *core.View) (bool, error) {
	owners := map[core.SessionID]bool{s.id: true}
	if v.Parent != nil {
		owners[*v.Parent] = true // its summaries may be shown
	}
	for _, sp := range v.Path {
		owners[*sp.Owned(s.id).Session] = true
	}
	gone := make(map[int64]bool)
	for _, sp := range v.Path {
		for seq := sp.From; sp.Session == nil && seq < sp.To; seq++ {
			gone[seq] = true
		}
	}
	there := make(map[string]bool) // what says something
	erased, next := uint64(0), int64(0)
	for owner := range owners {
		for entry, err := range core.All(ctx, s.e.store, owner.Scope(), false) {
			if err != nil {
				return false, fmt.Errorf("core: load session %q: %w", s.id, err)
			}
			if there[entry.ID] = entry.Type != core.TypeErased; owner != s.id {
				continue
			}
			next = max(next, entry.Seq+1)
			if inConversation(entry) {
				delete(gone, entry.Seq)
			}
			if entry.Type == core.TypeErased && entry.Seq < v.Next {
				erased++
			}
		}
	}
	if next == 0 {
		*v = core.View{Session: s.id}
		if err := s.e.views.DeleteView(ctx, s.id); err != nil {
			return false, fmt.Errorf("core: load session %q: it was purged: %w", s.id, err)
		}
		return false, nil
	}
	er := &erasure{e: s.e, summaries: make(map[string]bool)}
	for i := range v.Summaries {
		er.summaries[v.Summaries[i].ID] = !there[v.Summaries[i].ID] && v.Summaries[i].Kind != erasedKind
	}
	touched := erased != v.Erased || len(gone) > 0
	for i := range v.Summaries {
		touched = touched || er.summaries[v.Summaries[i].ID]
	}
	v.Apply(edit.Summarise{Summaries: er.blanked(v.Summaries)})
	for id := range v.Stubs {
		if !there[id] {
			v.Apply(edit.Unstub{IDs: []string{id}})
			touched = true
		}
	}
	recalls := v.Recall != nil || len(v.Kept) > 0                                 // they may quote any session
	v.Apply(edit.Unrecall{}, edit.Count{Next: min(v.Next, next), Turns: v.Turns}) // positions are given anew after a purge
	if !touched {
		return recalls, nil
	}
	if len(gone) > 0 {
		v.Apply(edit.Relay{Gone: gone})
	}
	if !there[v.Pinned] {
		v.Apply(edit.Pin{})
	}
	v.Apply(edit.Show{}, edit.Seek{}, edit.Erased{Count: erased}, edit.Anew{})
	return true, nil
}
