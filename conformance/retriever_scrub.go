package conformance

import (
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
)

// scrubRetrieve scrubs as an engine does behind each erasure: before anything was read, with word of what was erased, and again when there is nothing to do.
func scrubRetrieve(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(18))
	if text := r.fill(); text != "" {
		return text
	}
	scrub := func() string {
		s, ok := r.retriever.(upkeep.Scrubber)
		if !ok {
			return fmt.Sprintf("one retriever is an upkeep.Scrubber, this one, a %T, is none", r.retriever)
		}
		if err := s.Scrub(r.ctx()); err != nil {
			return fmt.Sprintf("Scrub: error %v, want none", err)
		}
		return ""
	}
	var asked []core.Query
	for who := range 3 {
		for n, prompt := range queries {
			q := r.query(who, prompt)
			wider[n%len(wider)](&q)
			asked = append(asked, q)
		}
	}
	answers := func() (out [][]string, text string) {
		for _, q := range asked {
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return nil, fmt.Sprintf("Retrieve: error %v, want none", err)
			}
			out = append(out, candidateTexts(got))
		}
		return out, ""
	}
	same := func(want [][]string, when string) string {
		got, text := answers()
		for i := 0; text == "" && i < len(want); i++ {
			if d := sameIDs(got[i], want[i]); d != "" {
				text = fmt.Sprintf("Retrieve(%q in %+v) %s: %s", asked[i].Prompt, asked[i].Scopes(), when, d)
			}
		}
		return text
	}
	return inTurn(scrub, func() string {
		want, text := answers()
		return inTurn(func() string { return text }, scrub, func() string { return same(want, "after Scrub") })
	}, func() string {
		c, text := r.changeOne(r.all[0], deleted, markOf(9, 0))
		if o, ok := r.observer(); ok && text == "" {
			text = r.tellAll(o, []change{c})
		}
		return text
	}, func() string {
		want, text := answers()
		return inTurn(func() string { return text }, scrub, scrub, func() string { return same(want, "after an erasure, and Scrub twice") })
	})
}
