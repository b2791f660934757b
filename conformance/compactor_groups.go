package conformance

import (
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
)

func patchGroups(r *compactorRun) string {
	if text := r.groupsStay(r.task(true)); text != "" {
		return text
	}
	// What has to go may end within a group, also where a subagent ended in the midst of it.
	front, behind := []piece{{Size: 20}, {Calls: 2, Size: 40, Alike: true}, {Calls: 2, Size: 40, Ended: true}, {Calls: 1, Size: 40, Ended: true}}, []piece{{Size: 20}, {Size: 20}, {Size: 20}}
	r.pieces = slices.Concat(front, r.pieces, behind)
	const steps = 10
	for n := range steps {
		c := r.task(true)
		gone := 0
		for i, e := range c.Entries {
			if r.groups[e.ID] < len(front) {
				gone += c.Cost[i]
			}
		}
		c.Target = c.Tokens - gone*(n+1)/steps
		if text := r.groupsStay(c); text != "" {
			return text
		}
	}
	return ""
}

// groupsStay holds the patches for a task against its groups.
func (r *compactorRun) groupsStay(c core.Compaction) string {
	patches, text := r.run(c)
	if text != "" {
		return text
	}
	for _, p := range patches {
		for _, rep := range p.Replace {
			for _, e := range r.entries {
				partner := slices.ContainsFunc(rep.Entries, func(id string) bool { return r.groups[id] == r.groups[e.ID] })
				if partner && !slices.Contains(rep.Entries, e.ID) {
					return fmt.Sprintf("entry %q stays while others of its group are replaced", e.ID)
				}
			}
		}
	}
	return ""
}
