package chain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/window"
	"github.com/contextengine/contextengine/internal/compacting"
)

// made begins the refs of what a chain's tiers made.
const made = "chain:"

// state is a session on its way through the tiers.
type state struct {
	// c is what the next tier is told. Its slices are the chain's own.
	c     core.Compaction
	given core.Compaction
	// stubs and replace were returned by tiers and are not published yet.
	stubs   map[string]window.Stub
	replace []core.Replacement
	// refs are the refs that the tier at work gave, and the chain's own for them; open is the number of those.
	refs   map[string]string
	open   int
	reason string
	// warnings are all tiers' warnings.
	warnings []string
	// changed says that something was published or collected.
	changed bool
}

func newState(c core.Compaction) *state {
	s := &state{c: c, given: c, stubs: make(map[string]window.Stub)}
	s.c.Summaries, s.c.Entries = slices.Clone(c.Summaries), slices.Clone(c.Entries)
	s.c.Stubs = cloned(c.Stubs)
	s.c.Cost = make([]int, len(c.Entries))
	for i := range c.Entries {
		s.c.Cost[i] = compacting.CostOf(c, i)
	}
	return s
}

// cloned is maps.Clone, and never nil.
func cloned(stubs map[string]window.Stub) map[string]window.Stub {
	out := make(map[string]window.Stub, len(stubs))
	maps.Copy(out, stubs)
	return out
}

// done reports whether nothing is left to do for further tiers.
func (s *state) done() bool {
	return s.changed && s.c.Tokens <= s.c.Target && (s.c.Left == 0 || len(s.c.Entries) <= s.c.Protected)
}

// task returns what the next tier is told.
func (s *state) task() core.Compaction {
	c := s.c
	c.Summaries, c.Entries, c.Cost, c.Stubs = slices.Clone(c.Summaries), slices.Clone(c.Entries), slices.Clone(c.Cost), cloned(c.Stubs)
	if s.changed && c.Tokens <= c.Target {
		// What the window does not show still needs a text: that, and not all that a forced compaction may take.
		left := 0
		for _, cost := range c.Cost[:min(c.Left, len(c.Cost))] {
			left += cost
		}
		c.Target = max(c.Tokens-left*3/4-1, 0)
	}
	if s.given.Publish != nil {
		c.Publish = s.publish
	}
	s.refs = make(map[string]string)
	return c
}

// publish hands over what was collected together with p.
func (s *state) publish(ctx context.Context, p core.Patch) error {
	whole := *s
	whole.stubs, whole.replace, whole.refs = maps.Clone(s.stubs), slices.Clone(s.replace), maps.Clone(s.refs)
	whole.c.Summaries = slices.Clone(s.c.Summaries) // entries and costs are only cut off in front
	if len(p.Stubs) > 0 {
		whole.c.Cost, whole.c.Stubs = slices.Clone(s.c.Cost), cloned(s.c.Stubs)
	}
	whole.take(p)
	out := whole.patch()
	out.Reason = ""
	if err := s.given.Publish(ctx, out); err != nil {
		return fmt.Errorf("chain: publish: %w", err)
	}
	whole.stubs, whole.replace = make(map[string]window.Stub), nil
	*s = whole
	return nil
}

// take adds a tier's patch and brings the session up to date.
func (s *state) take(p core.Patch) {
	s.changed = s.changed || !p.Empty()
	for _, r := range p.Replace {
		s.collect(r)
	}
	at := make(map[string]int, len(s.c.Entries))
	if len(p.Stubs) > 0 {
		for i := range s.c.Entries {
			at[s.c.Entries[i].ID] = i
		}
	}
	for id, st := range p.Stubs {
		// One for an entry that just left has no place any more.
		if i, ok := at[id]; ok {
			s.stubs[id], s.c.Stubs[id] = st, st
			s.c.Tokens += st.Tokens - s.c.Cost[i]
			s.c.Cost[i] = st.Tokens
		}
	}
}

// collect adds a replacement. One that includes the newest text that was collected takes that one's place.
func (s *state) collect(r core.Replacement) {
	n := min(len(r.Entries), len(s.c.Entries))
	for i, id := range r.Entries[:n] {
		delete(s.stubs, id)
		s.c.Tokens -= s.c.Cost[i]
	}
	s.c.Entries, s.c.Cost = s.c.Entries[n:], s.c.Cost[n:]
	s.c.Left = max(s.c.Left-n, 0)

	r = s.named(r)
	sum := core.Summary{ID: r.Ref, Kind: r.Kind, Text: r.Text, Tokens: s.c.Count(r.Text) + compacting.Overhead, Covers: n, Time: s.c.Now}
	at := len(s.c.Summaries)
	kept := s.c.Summaries[:0:0]
	for _, old := range s.c.Summaries {
		if !slices.Contains(r.Summaries, old.ID) {
			kept = append(kept, old)
			continue
		}
		at = min(at, len(kept))
		sum.Covers += old.Covers
		s.c.Tokens -= compacting.SummaryCost(s.given, old)
	}
	if n > 0 {
		at = len(kept)
	}
	s.c.Summaries = slices.Insert(kept, min(at, len(kept)), sum)
	s.c.Tokens += sum.Tokens
	if last := len(s.replace) - 1; last >= 0 && slices.Contains(r.Summaries, s.replace[last].Ref) {
		r = merged(s.replace[last], r)
		s.replace = s.replace[:last]
	}
	s.replace = append(s.replace, r)
}

// named gives r a ref of the chain's, and turns the refs of its tier into those.
func (s *state) named(r core.Replacement) core.Replacement {
	r.Summaries = slices.Clone(r.Summaries)
	for i, id := range r.Summaries {
		if ref, ok := s.refs[id]; ok {
			r.Summaries[i] = ref
		}
	}
	s.open++
	ref := made + strconv.Itoa(s.open)
	if r.Ref != "" {
		s.refs[r.Ref] = ref
	}
	r.Ref = ref
	return r
}

// merged lets r, which includes the text of last, stand for all that last stands for.
func merged(last, r core.Replacement) core.Replacement {
	r.Entries = slices.Concat(last.Entries, r.Entries)
	r.Summaries = slices.DeleteFunc(slices.Concat(last.Summaries, r.Summaries), func(id string) bool { return id == last.Ref })
	return r
}

// patch returns what was collected and not published.
func (s *state) patch() core.Patch {
	p := core.Patch{Replace: s.replace, Warnings: s.warnings}
	if len(s.stubs) > 0 {
		p.Stubs = s.stubs
	}
	switch {
	case !s.changed:
		p.Reason = s.reason
		if p.Reason == "" {
			p.Reason = core.ReasonAlreadyCompacted
		}
	case s.c.Tokens > s.c.Target:
		p.Reason = cmp.Or(s.reason, "the protected messages cost more than the target")
	}
	return p
}

// leave lets the oldest entries leave behind a line that counts them, when nothing was achieved although entries could go.
func (s *state) leave() {
	if s.changed {
		return
	}
	if r, ok := compacting.Leave(s.c); ok {
		s.reason = ""
		s.take(core.Patch{Replace: []core.Replacement{r}})
	}
}
