package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// What a sequence does with the companions of a store.

func (s *sequence) erase() string {
	id := sessionOf(s.rnd.Intn(3))
	in := idsOf(s.in(id.Scope()))
	e, _ := core.As[core.SessionEraser](s.store)
	err := e.EraseSession(s.ctx(), id)
	if unsupported(err) {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("EraseSession(%s): error %v, want none", id, err)
	}
	s.done("EraseSession(%s)", id)
	s.without(func(e core.Entry) bool { return e.SessionID() == id })
	if len(in) > 0 {
		s.look(core.Scope{Agent: id.Agent}, in...)
	}
	return ""
}

func (s *sequence) swap() string {
	id := sessionOf(s.rnd.Intn(3))
	version := s.views[id].Version + 1
	if s.one(4) {
		version = pick(s, []uint64{version + 1, max(version, 2) - 1, version + 7})
	}
	s.made++
	v := richView(id, version)
	v.Pinned = fmt.Sprint("pinned ", s.made)
	want := error(nil)
	if version != s.views[id].Version+1 {
		want = core.ErrConflict
	}
	call := fmt.Sprintf("SwapView of %s, version %d", id, version)
	given := v.Clone()
	err := s.storeRun.views().SwapView(s.ctx(), given)
	if !errors.Is(err, want) {
		return fmt.Sprintf("%s over version %d: error %v, want %v", call, s.views[id].Version, err, want)
	}
	spoiltView(&given)
	if want == nil {
		s.views[id] = v
		s.done("%s", call)
		s.lookAt(id)
	}
	return ""
}

func (s *sequence) load() string { return s.loads(sessionOf(s.rnd.Intn(3))) }

func (s *sequence) loads(id core.SessionID) string {
	got, err := s.storeRun.views().LoadView(s.ctx(), id)
	want, ok := s.views[id]
	if !ok {
		if !errors.Is(err, core.ErrNotFound) {
			return fmt.Sprintf("LoadView(%s), which has none: error %v, want ErrNotFound", id, err)
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf("LoadView(%s): error %v, want none", id, err)
	}
	if d := sameView(got, want); d != "" {
		return fmt.Sprintf("LoadView(%s): %s", id, d)
	}
	spoiltView(&got)
	return ""
}

func (s *sequence) dropView() string {
	id := sessionOf(s.rnd.Intn(3))
	if err := s.storeRun.views().DeleteView(s.ctx(), id); err != nil {
		return fmt.Sprintf("DeleteView(%s): error %v, want none", id, err)
	}
	delete(s.views, id)
	s.done("DeleteView(%s)", id)
	s.lookAt(id)
	return ""
}

// lookAt reads a view that was changed.
func (s *sequence) lookAt(id core.SessionID) {
	s.probes = append(s.probes, func() string { return s.loads(id) }, s.list, s.list)
	if offers[core.Tailer](s.store) {
		s.probes = append(s.probes, func() string { return s.tailOf(id) })
	}
}

func (s *sequence) list() string {
	q := core.ViewQuery{Limit: core.MaxPage}
	if s.one(3) {
		q = core.ViewQuery{Agent: pick(s, []string{"", "agent-a", "agent-b"}), Limit: pick(s, []int{1, 2, core.MaxPage}), After: pick(s, []core.SessionID{{}, sessionOf(s.rnd.Intn(3))})}
	}
	var want []core.SessionID
	for id := range s.views {
		if (q.Agent == "" || id.Agent == q.Agent) && order(id, q.After) > 0 {
			want = append(want, id)
		}
	}
	slices.SortFunc(want, order)
	want = want[:min(len(want), q.Limit)]
	if got, err := s.storeRun.views().ListViews(s.ctx(), q); err != nil || !slices.Equal(got, want) {
		return fmt.Sprintf("ListViews(%+v): %v, error %v, want %v", q, got, err, want)
	}
	return ""
}

// order is that of ListViews.
func order(a, b core.SessionID) int {
	return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session))
}

func (s *sequence) tail() string { return s.tailOf(sessionOf(s.rnd.Intn(3))) }

func (s *sequence) tailOf(id core.SessionID) string {
	t, _ := core.As[core.Tailer](s.store)
	got, err := t.Tail(s.ctx(), id)
	if unsupported(err) {
		return ""
	}
	next := int64(0)
	for _, e := range s.in(id.Scope()) {
		next = max(next, e.Seq+1)
	}
	if err != nil || got.Next != next {
		return fmt.Sprintf("Tail(%s): %+v, error %v, want Next %d", id, got, err, next)
	}
	if offers[core.ViewStore](s.store) {
		if got.View != s.views[id].Version {
			return fmt.Sprintf("Tail(%s): View is %d, want the view's version %d", id, got.View, s.views[id].Version)
		}
		return ""
	}
	if n, ok := s.before[id]; ok && got.View == n {
		return fmt.Sprintf("Tail(%s): View is %d, as it was before an entry of the session was changed or deleted", id, n)
	}
	s.numbers[id] = got.View
	delete(s.before, id)
	return ""
}

func (s *sequence) follow() string { return s.followBy(s.rnd.Intn(len(s.follows))) }

func (s *sequence) followBy(i int) string {
	f := s.follows[i]
	f.feed, _ = core.As[core.ChangeFeed](s.store)
	return f.follow()
}

func (s *sequence) putVectors() string {
	agent := sessionOf(s.rnd.Intn(3)).Agent
	v, _ := core.As[vector.Store](s.store)
	dims := s.dims
	if dims == 0 {
		dims = 2 + s.rnd.Intn(3)
	}
	var given []vector.Vector
	for i, id := range s.ids(agent, 1+s.rnd.Intn(3)) {
		s.made++
		values := []float32{float32(s.made), 1, -float32(i), 0.5}
		given = append(given, s.differing(vector.Vector{ID: id, Part: s.rnd.Intn(2), Start: i, End: i + 5, Hash: uint64(s.made), Values: values[:dims]}))
	}
	// Of two with one id and part in a call it is not said which stays.
	slices.SortStableFunc(given, byPart)
	given = slices.CompactFunc(given, func(a, b vector.Vector) bool { return byPart(a, b) == 0 })
	for _, g := range given {
		// Names of the vectors' entries are looked for in every agent: the names of a sequence tell the agents apart, but for new ones.
		if i := s.find(core.Scope{Agent: agent}, g.ID); i < 0 || s.all[i].Type == core.TypeErased || s.all[i].Type == core.TypeHeartbeat {
			return ""
		}
	}
	if s.dims > 0 && s.one(4) {
		return s.putWrong(v, given)
	}
	copied := slices.Clone(given)
	for i := range copied {
		copied[i].Values = slices.Clone(copied[i].Values)
	}
	if err := v.PutVectors(s.ctx(), sequenceSpace, copied); err != nil {
		return fmt.Sprintf("PutVectors of %d: error %v, want none", len(given), err)
	}
	spoilt(copied)
	s.dims = dims
	for _, g := range given {
		s.vectors[g.ID] = append(slices.DeleteFunc(s.vectors[g.ID], func(o vector.Vector) bool { return o.Part == g.Part }), g)
		s.done("PutVectors of %q, part %d", g.ID, g.Part)
	}
	return ""
}

// differing makes a vector, sometimes, one that is there but for one of its fields.
func (s *sequence) differing(v vector.Vector) vector.Vector {
	i := slices.IndexFunc(s.vectors[v.ID], func(o vector.Vector) bool { return o.Part == v.Part })
	if i < 0 || len(s.vectors[v.ID][i].Values) != len(v.Values) || s.one(2) {
		return v
	}
	have := s.vectors[v.ID][i]
	have.Values = slices.Clone(have.Values)
	switch s.rnd.Intn(4) {
	case 0:
		have.Values[0] += 0.5
	case 1:
		have.Hash++
	case 2:
		have.Start++
	case 3:
		have.End++
	}
	return have
}

// putWrong stores vectors of another length than those that are there: of whichever agent these are, none is taken.
func (s *sequence) putWrong(v vector.Store, given []vector.Vector) string {
	if !slices.ContainsFunc(s.all, func(e core.Entry) bool { return len(s.vectors[e.ID]) > 0 && !s.loose[e.ID] }) {
		return ""
	}
	values := []float32{1, 2, 3, 4, 5}
	for i := range given {
		given[i].Values = values[:s.dims+1]
	}
	if err := v.PutVectors(s.ctx(), sequenceSpace, given); !errors.Is(err, core.ErrInvalid) {
		return fmt.Sprintf("PutVectors of length %d, where those of the space have %d: error %v, want ErrInvalid", s.dims+1, s.dims, err)
	}
	return ""
}

// byPart is the order of vectors by entry and part.
func byPart(a, b vector.Vector) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Part, b.Part))
}

func (s *sequence) readVectors() string {
	agent := sessionOf(s.rnd.Intn(3)).Agent
	v, _ := core.As[vector.Store](s.store)
	got, text := s.vectorsOf(v, sequenceSpace, agent, pick(s, []int{1, 2, core.MaxPage}))
	if text != "" {
		return text
	}
	got = slices.DeleteFunc(got, func(g vector.Vector) bool { return s.loose[g.ID] })
	var want []vector.Vector
	for _, e := range s.in(core.Scope{Agent: agent}) {
		if !s.loose[e.ID] {
			want = append(want, s.vectors[e.ID]...)
		}
	}
	slices.SortFunc(want, byPart)
	if d := differs(got, want); d != "" {
		return fmt.Sprintf("the vectors of agent %q: %s", agent, d)
	}
	spoilt(got)
	return ""
}

// dropVectors empties a space, of an agent or of all: then vectors of another length may come.
func (s *sequence) dropVectors() string {
	agent := pick(s, []string{"", "agent-a", "agent-b"})
	v, _ := core.As[vector.Store](s.store)
	if err := v.DropVectors(s.ctx(), sequenceSpace, agent); err != nil {
		return fmt.Sprintf("DropVectors of agent %q: error %v, want none", agent, err)
	}
	s.done("DropVectors of agent %q", agent)
	for _, e := range s.all {
		if agent == "" || e.Agent == agent {
			delete(s.vectors, e.ID)
			delete(s.loose, e.ID)
		}
	}
	if agent == "" {
		s.dims = 0
	}
	s.probes = append(s.probes, s.readVectors, s.putVectors)
	return ""
}

// searched looks for a word of an entry, or for one that nobody says any more.
func (s *sequence) searched() string {
	scope := s.scope()
	mark, want := "", core.Entry{}
	if in := s.in(scope); len(in) > 0 && !s.one(3) {
		if want = pick(s, in); !searchable(want) {
			return ""
		}
		mark = marksIn(want.Text())[0]
	} else if len(s.gone) > 0 {
		mark = pick(s, s.gone)
	}
	if mark == "" {
		return ""
	}
	return s.settled(func() string {
		hits, text := s.search(core.SearchQuery{Scope: scope, Text: mark, Limit: 5})
		if text != "" {
			return text
		}
		for _, h := range hits {
			i := s.find(scope, h.Entry.ID)
			if i < 0 {
				return fmt.Sprintf("Search(%q) in %+v: a hit is %q, which is not there", mark, scope, h.Entry.ID)
			}
			if d := sameEntry(h.Entry, s.all[i]); d != "" {
				return fmt.Sprintf("Search(%q) in %+v: a hit's entry is not the stored one: %s", mark, scope, d)
			}
		}
		if want.ID != "" && !found(hits, want.ID) {
			return fmt.Sprintf("Search(%q) in %+v: %d hits, none is %q, the entry with that word", mark, scope, len(hits), want.ID)
		}
		spoilt(hits)
		return ""
	})
}

func (s *sequence) scrub() string {
	c, _ := core.As[upkeep.Scrubber](s.store)
	if err := c.Scrub(s.ctx()); err != nil && !unsupported(err) {
		return fmt.Sprintf("Scrub: error %v, want none", err)
	}
	s.done("Scrub")
	if offers[core.ChangeFeed](s.store) {
		s.probes = append(s.probes, s.follow)
	}
	return ""
}

// repair is one of a store that is whole: nothing is changed.
func (s *sequence) repair() string {
	c, _ := core.As[upkeep.Repairer](s.store)
	saved, err := c.Repair(s.ctx())
	if unsupported(err) {
		return ""
	}
	if err != nil || saved != "" {
		return fmt.Sprintf("Repair of a store that is whole: a copy at %q, error %v, want neither", saved, err)
	}
	s.done("Repair")
	if offers[core.ChangeFeed](s.store) {
		s.probes = append(s.probes, s.follow)
	}
	return ""
}

func (s *sequence) stats() string { return s.figures(slices.Collect(maps.Keys(s.views))...) }

func (s *sequence) reopens() string {
	s.store = s.reopen(s.tb, s.store)
	s.users[0] = s.store
	s.done("closed and opened again")
	if offers[core.ChangeFeed](s.store) {
		s.probes = append(s.probes, s.follow)
	}
	return ""
}
