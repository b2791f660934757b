package conformance

import (
	"errors"
	"fmt"
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
