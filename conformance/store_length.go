package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/vector"
)

// lengthHolds looks that a space of three dimensions takes vectors of no other length as long as any agent has vectors in it, and is not searched by one.
func (r *storeRun) lengthHolds(v vector.Store, space string, all []vector.Vector) string {
	has := map[string]bool{"agent-a": len(r.agentsVectors(all, "agent-a")) > 0, "agent-b": len(r.agentsVectors(all, "agent-b")) > 0}
	if !has["agent-a"] && !has["agent-b"] {
		return ""
	}
	for agent := range has {
		at := slices.IndexFunc(r.all, func(e core.Entry) bool { return e.Agent == agent && e.Type == core.TypeMessage })
		if at < 0 {
			continue
		}
		e := r.all[at]
		for _, length := range []int{2, 4} {
			wrong := []vector.Vector{{ID: e.ID, Part: 7, End: 2, Values: make([]float32, length)}}
			wrong[0].Values[0] = 1
			if err := v.PutVectors(r.ctx(), space, wrong); !errors.Is(err, core.ErrInvalid) {
				return fmt.Sprintf("PutVectors of length %d, where a vector in the space has 3: error %v, want ErrInvalid", length, err)
			}
			s, ok := core.As[vector.Searcher](r.store)
			if !ok || !has[agent] {
				continue
			}
			if _, err := s.SearchVectors(r.ctx(), space, wrong[0].Values, core.SearchQuery{Scope: core.Scope{Agent: e.Agent}, Limit: 3}); !errors.Is(err, core.ErrInvalid) && !unsupported(err) {
				return fmt.Sprintf("SearchVectors with a vector of length %d, where those of the space have 3: error %v, want ErrInvalid", length, err)
			}
		}
	}
	return ""
}

// lengthFree looks that a space takes vectors of any length again as soon as nothing is in it any more, whatever took the last one away.
func (r *storeRun) lengthFree(v vector.Store) string {
	const space = "free/n"
	ways := map[string]func(e core.Entry) error{
		"it was emptied": func(e core.Entry) error {
			if text := r.empty(e); text != "" {
				return errors.New(text)
			}
			return nil
		},
		"it was deleted": func(e core.Entry) error {
			_, err := r.store.Delete(r.ctx(), e.SessionID().Scope(), []string{e.ID})
			return err
		},
		"its agent's were dropped": func(e core.Entry) error { return v.DropVectors(r.ctx(), space, e.Agent) },
	}
	if s, ok := core.As[core.SessionEraser](r.store); ok {
		ways["its session was erased"] = func(e core.Entry) error {
			if err := s.EraseSession(r.ctx(), e.SessionID()); !unsupported(err) {
				return err
			}
			return v.DropVectors(r.ctx(), space, "")
		}
	}
	length, before := 2, "nothing was in it"
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		e := plainEntry(r.made, core.SessionID{Agent: "agent-a", Session: "length " + way}, 0)
		r.made++
		if _, err := r.store.Append(r.ctx(), cloneEntries([]core.Entry{e})); err != nil {
			return fmt.Sprintf("Append: error %v, want none", err)
		}
		values := []float32{1, 2, 3, 4, 5, 6, 7}[:length]
		if err := v.PutVectors(r.ctx(), space, []vector.Vector{{ID: e.ID, End: 2, Values: values}}); err != nil {
			return fmt.Sprintf("PutVectors of length %d into a space whose only vector was of another, after %s: error %v, want none", length, before, err)
		}
		if err := ways[way](e); err != nil {
			return fmt.Sprintf("the entry of a vector goes: %v", err)
		}
		length, before = length+1, way
	}
	return ""
}
