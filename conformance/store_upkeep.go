package conformance

import (
	"cmp"
	"fmt"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// chore is something that a store is asked to do now and then, and that changes no entry.
type chore struct {
	what string
	do   func() error
}

// chores are those that a store has. Each of them looks for its companion anew: the store may have been opened again.
func (r *storeRun) chores() []chore {
	var out []chore
	add := func(has bool, what string, do func() error) {
		if has {
			out = append(out, chore{what, do})
		}
	}
	add(offers[upkeep.Repairer](r.store), "a repair", func() error {
		s, _ := core.As[upkeep.Repairer](r.store)
		_, err := s.Repair(r.ctx())
		return err
	})
	add(offers[upkeep.Scrubber](r.store), "a scrub", func() error {
		s, _ := core.As[upkeep.Scrubber](r.store)
		return s.Scrub(r.ctx())
	})
	add(offers[upkeep.Drainer](r.store), "a drain", func() error {
		s, _ := core.As[upkeep.Drainer](r.store)
		_, err := s.Drain(r.ctx())
		return err
	})
	add(offers[vector.Store](r.store), "vectors stored", func() error {
		s, _ := core.As[vector.Store](r.store)
		var given []vector.Vector
		for i, e := range r.all {
			given = append(given, vector.Vector{ID: e.ID, End: 4, Hash: uint64(i), Values: []float32{1, float32(i)}})
		}
		return s.PutVectors(r.ctx(), "upkeep/2", given)
	})
	add(offers[vector.Store](r.store), "vectors dropped", func() error {
		s, _ := core.As[vector.Store](r.store)
		return s.DropVectors(r.ctx(), "upkeep/2", "")
	})
	add(offers[upkeep.Statter](r.store), "figures told", func() error {
		s, _ := core.As[upkeep.Statter](r.store)
		_, err := s.Stats(r.ctx())
		return err
	})
	add(offers[core.SessionEraser](r.store), "a session erased that is not there", func() error {
		s, _ := core.As[core.SessionEraser](r.store)
		return s.EraseSession(r.ctx(), core.SessionID{Agent: "agent-a", Session: "nobody"})
	})
	add(r.views() != nil, "a view published and deleted", func() error {
		id := core.SessionID{Agent: "agent-a", Session: "viewed"}
		return cmp.Or(r.views().SwapView(r.ctx(), richView(id, 1)), r.views().DeleteView(r.ctx(), id))
	})
	add(r.reopen != nil, "closing and opening again", func() error {
		r.again(nil)
		return nil
	})
	return out
}

// feedUpkeep has some follow the feed of a store that is looked after meanwhile: one who asks at once, one who asks when much was changed, and one who was not at the end.
func feedUpkeep(r *storeRun) string {
	r.steps = []batch{ordinary(9)}
	if text := r.fill(); text != "" {
		return text
	}
	// More was changed than there are entries: numbers that are made anew come nowhere near.
	for round := range 4 {
		if text := r.changesAll(fmt.Sprint("before ", round)); text != "" {
			return text
		}
	}
	for n := range r.chores() {
		followers := r.followers()
		for _, f := range followers {
			if text := f.follow(); text != "" || f.mark == "" {
				return text // without a mark it has no feed
			}
		}
		at := followers[0]
		behind := followers[2]
		if text := r.changesSome(fmt.Sprint("untold ", n)); text != "" {
			return text
		}
		if text := at.follow(); text != "" {
			return text
		}
		up := r.chores()[n]
		if err := up.do(); err != nil && !unsupported(err) {
			return fmt.Sprintf("%s: error %v, want none", up.what, err)
		}
		for _, f := range followers {
			f.feed, _ = core.As[core.ChangeFeed](r.store)
		}
		after := func(f *follower, when string) string {
			if text := f.follow(); text != "" {
				return fmt.Sprintf("from a mark of before %s, %s: %s", up.what, when, text)
			}
			return ""
		}
		if text := after(at, "at once"); text != "" {
			return text
		}
		for _, f := range []*follower{nil, at, behind} {
			if f != nil {
				if text := after(f, "after more changes"); text != "" {
					return text
				}
			}
			if text := r.oneMore(); text != "" {
				return text
			}
		}
		if text := r.changesSome(fmt.Sprint("after ", n)); text != "" {
			return text
		}
		for _, f := range append(followers, r.followers()...) {
			if text := after(f, "after many more changes"); text != "" {
				return text
			}
		}
	}
	return ""
}

// changesAll changes what every entry says.
func (r *storeRun) changesAll(to string) string {
	for i := range r.all {
		e := &r.all[i]
		m := message.New(e.Role, to+" "+e.ID)
		if text := r.change(e, core.Change{Message: &m, Tokens: 5, Fingerprint: to}); text != "" {
			return text
		}
	}
	return ""
}

// changesSome changes the half of them.
func (r *storeRun) changesSome(to string) string {
	all := r.all
	defer func() { r.all = all }()
	r.all = all[:len(all)/2]
	return r.changesAll(to)
}

// oneMore appends an entry, and deletes the oldest of all.
func (r *storeRun) oneMore() string {
	b := r.make(batch{Entries: []entrySpec{{Who: r.made % 3}}})
	if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
		return fmt.Sprintf("Append: error %v, want none", err)
	}
	r.remember(b)
	gone := r.all[0]
	r.all = r.all[1:]
	return r.erases(gone)
}
