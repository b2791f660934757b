package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// sequenceChecks play all that a store offers in a drawn order.
func sequenceChecks() []Check {
	rule := "in whatever order entries, views and vectors are stored, read, changed, removed and stored again, every answer is what the calls before it make it"
	return []Check{
		{ID: "sequence.same", Promise: 2, Suite: SuiteStore, store: sequenceSame, Rule: rule + ", whoever of several made them"},
		{ID: "sequence.reopen", Promise: 2, Suite: SuiteStore, store: sequenceReopen, Needs: []Need{NeedReopen}, dear: true,
			Rule: rule + ", also where the store was closed and opened again between them"},
	}
}

// sequence is a store and what it must hold: its entries are those of storeRun.all, in no order.
type sequence struct {
	*storeRun
	rnd   *rand.Rand
	users []core.Store
	// forth says that each session grows at its end alone, by names of its own.
	forth bool
	views map[core.SessionID]core.View
	// numbers are what Tail said of sessions in a store that keeps no views; a session that was changed since is not there.
	numbers map[core.SessionID]uint64
	// before are numbers of sessions that were changed since.
	before  map[core.SessionID]uint64
	follows []*follower
	vectors map[string][]vector.Vector
	// dims is the length of the space's vectors, 0 while it may be any.
	dims int
	// loose are entries of which it is open whether their vectors stay: what they say, or their type, was changed.
	loose map[string]bool
	// former are entries by the names that they had before they were removed, or got another key.
	former []core.Entry
	// gone are words that no entry says any more.
	gone []string
	did  []string
	ways []func() string
	// probes read what the last call changed.
	probes []func() string
}

const (
	// sequenceNames is how many names of each kind are used, again and again.
	sequenceNames = 6
	sequenceSpace = "sequence/3"
	// callsOfStep is how many calls a generated entry stands for; callsShown how many a finding lists.
	callsOfStep, callsShown = 16, 16
	// formerNames is how many of the newest former entries come again.
	formerNames = 4
)

func sequenceSame(r *storeRun) string { return newSequence(r, r.users(2)).play() }

func sequenceReopen(r *storeRun) string {
	s := newSequence(r, []core.Store{r.store})
	s.ways = append(s.ways, s.reopens)
	return s.play()
}

func newSequence(r *storeRun, users []core.Store) *sequence {
	s := &sequence{
		storeRun: r, users: users, views: map[core.SessionID]core.View{}, numbers: map[core.SessionID]uint64{}, before: map[core.SessionID]uint64{},
		vectors: map[string][]vector.Vector{}, loose: map[string]bool{},
	}
	r.untimely = true
	often := func(times int, f func() string) {
		for range times {
			s.ways = append(s.ways, f)
		}
	}
	often(6, s.append)
	often(6, s.get)
	often(4, s.scanned)
	often(4, s.update)
	often(3, s.remove)
	if offers[core.SessionEraser](r.store) {
		often(1, s.erase)
	}
	if offers[core.ViewStore](r.store) {
		often(3, s.swap)
		often(2, s.load)
		often(2, s.dropView)
		often(2, s.list)
	}
	if offers[core.Tailer](r.store) {
		often(3, s.tail)
	}
	if offers[core.ChangeFeed](r.store) {
		s.follows = r.followers()
		often(3, s.follow)
	}
	if v, ok := core.As[vector.Store](r.store); ok {
		if _, err := v.VectorSpaces(r.ctx(), ""); !unsupported(err) {
			often(3, s.putVectors)
			often(3, s.readVectors)
			often(1, s.dropVectors)
		}
	}
	if offers[core.Searcher](r.store) {
		often(3, s.searched)
	}
	if offers[upkeep.Statter](r.store) {
		often(1, s.stats)
	}
	if offers[upkeep.Scrubber](r.store) && r.bound == 0 {
		often(1, s.scrub)
	}
	if offers[upkeep.Repairer](r.store) {
		often(1, s.repair)
	}
	return s
}

// play makes some calls for each generated entry, and then reads everything.
func (s *sequence) play() string {
	for _, b := range s.steps {
		for _, e := range b.Entries {
			s.from(e)
			for range callsOfStep {
				if text := s.call(); text != "" {
					return text + s.calls()
				}
			}
		}
	}
	if text := s.everything(); text != "" {
		return "at the end: " + text + s.calls()
	}
	return ""
}

// from lets what is drawn from here on follow from a generated entry.
func (s *sequence) from(e entrySpec) {
	s.rnd = rand.New(rand.NewSource(seedFor(int64(e.Size), e.String())))
}

// call makes one, and often reads what it changed, as one of the users.
func (s *sequence) call() string {
	s.probes = nil
	s.store = pick(s, s.users)
	if text := pick(s, s.ways)(); text != "" || len(s.probes) == 0 || s.one(3) {
		return text
	}
	s.store = pick(s, s.users)
	return pick(s, s.probes)()
}

// look reads entries that were changed, in a scope or in another one.
func (s *sequence) look(scope core.Scope, ids ...string) {
	for _, in := range []core.Scope{scope, {Agent: scope.Agent}} {
		s.probes = append(s.probes, func() string { return s.getsAs(in, []string{pick(s, ids)}) })
	}
	s.probes = append(s.probes, func() string { return s.getsAs(s.scope(), ids) })
	if offers[core.ChangeFeed](s.store) {
		s.probes = append(s.probes, s.follow)
	}
}

// calls lists the last ones that changed something.
func (s *sequence) calls() string {
	return "\nbehind\n  " + strings.Join(s.did[max(0, len(s.did)-callsShown):], "\n  ")
}

func (s *sequence) done(format string, args ...any) {
	s.did = append(s.did, fmt.Sprintf(format, args...))
}

// everything reads by every user what there is.
func (s *sequence) everything() string {
	for _, s.store = range s.users {
		for who := range 3 {
			for _, scope := range []core.Scope{sessionOf(who).Scope(), {Agent: sessionOf(who).Agent}} {
				if text := s.settled(func() string { return s.scansAs(core.ScanQuery{Scope: scope, Limit: core.MaxPage}) }); text != "" {
					return text
				}
				if text := s.getsAs(scope, idsOf(s.in(scope))); text != "" {
					return text
				}
			}
			if offers[core.ViewStore](s.store) {
				if text := s.loads(sessionOf(who)); text != "" {
					return text
				}
			}
		}
	}
	for i := range s.follows {
		if text := s.followBy(i); text != "" {
			return text
		}
	}
	return s.stats()
}

// pick draws one of a list that holds something.
func pick[T any](s *sequence, of []T) T { return of[s.rnd.Intn(len(of))] }

// one reports whether a draw of one in n falls.
func (s *sequence) one(n int) bool { return s.rnd.Intn(n) == 0 }

// scope draws a session or an agent.
func (s *sequence) scope() core.Scope {
	scope := sessionOf(s.rnd.Intn(3)).Scope()
	if s.one(3) {
		scope.Session = ""
	}
	return scope
}

// ids draws names of an agent's entries: of those that are there, and of others.
func (s *sequence) ids(agent string, n int) []string {
	var there []string
	for _, e := range s.in(core.Scope{Agent: agent}) {
		there = append(there, e.ID)
	}
	out := make([]string, n)
	for i := range out {
		out[i] = s.name(agent)
		if len(there) > 0 && !s.one(4) {
			out[i] = pick(s, there)
		}
	}
	return out
}

func (s *sequence) name(agent string) string {
	return fmt.Sprintf("S-%s-%d", agent, s.rnd.Intn(sequenceNames))
}

// fresh is a name that nothing had.
func (s *sequence) fresh() string {
	s.made++
	return fmt.Sprintf("S-fresh-%d", s.made)
}

// find returns an entry's place in all, or -1.
func (s *sequence) find(scope core.Scope, id string) int {
	return slices.IndexFunc(s.all, func(e core.Entry) bool { return e.ID == id && scope.Contains(e.SessionID()) })
}

// append stores some new entries, some that are there, and sometimes one that must be refused.
func (s *sequence) append() string {
	all, want, refused := slices.Clone(s.all), core.AppendResult{}, ""
	var given []core.Entry
	var calls []string
	for range 1 + s.rnd.Intn(3) {
		spec := genEntry(s.rnd)
		spec.Size = min(spec.Size, 12)
		s.made++
		e := spec.entry(s.made, 0)
		what := "new"
		switch k := s.rnd.Intn(10); {
		case k < 3 && len(all) > 0:
			e.ID = s.fresh()
			other := pick(s, all)
			e.Agent, e.Session, e.Key, e.Seq = other.Agent, other.Session, other.Key, int64(s.rnd.Intn(9))
			if s.one(2) {
				e.ID = other.ID
			}
			want.IDs, want.Duplicates = append(want.IDs, other.ID), want.Duplicates+1
			given, calls = append(given, e), append(calls, fmt.Sprintf("%q, whose key %q has", e.ID, other.ID))
			continue
		case k < 4 && len(all) > 0 && refused == "":
			other := pick(s, all)
			e.Key, e.Agent = s.fresh(), other.Agent
			if s.one(2) {
				e.ID, e.Session = other.ID, other.Session
				if other.Agent == sessionOf(0).Agent {
					e.Session = sessionOf(s.rnd.Intn(2)).Session
				}
				e.Seq, what = free(s, all, e.SessionID()), "an id that is taken"
			} else {
				e.ID, e.Session, e.Seq, what = s.fresh(), other.Session, other.Seq, "a position that is taken"
			}
			refused = what
		case k < 6 && len(s.former) > 0 && !s.forth:
			old := s.former[len(s.former)-1-s.rnd.Intn(min(len(s.former), formerNames))]
			e.Agent, e.Session, e.ID, e.Key, what = old.Agent, old.Session, old.ID, old.Key, "as one that was there"
			taken := slices.IndexFunc(all, func(o core.Entry) bool { return o.Agent == e.Agent && o.ID == e.ID })
			if i := slices.IndexFunc(all, func(o core.Entry) bool { return o.SessionID() == e.SessionID() && o.Key == e.Key }); i >= 0 {
				if taken >= 0 && taken != i { // it would be both known and refused
					e.ID = s.fresh()
				}
				want.IDs, want.Duplicates = append(want.IDs, all[i].ID), want.Duplicates+1
				given, calls = append(given, e), append(calls, fmt.Sprintf("%q, whose key %q has", e.ID, all[i].ID))
				continue
			}
			if e.Seq = free(s, all, e.SessionID()); taken >= 0 {
				what = "an id that is taken, its key is not any more"
				refused = what
			}
		default:
			e.ID, e.Key, e.Seq = s.name(e.Agent), fmt.Sprint("K-", s.rnd.Intn(sequenceNames)), free(s, all, e.SessionID())
			if slices.ContainsFunc(all, func(o core.Entry) bool { return o.Agent == e.Agent && o.ID == e.ID }) {
				e.ID = s.fresh()
			}
			if slices.ContainsFunc(all, func(o core.Entry) bool { return o.SessionID() == e.SessionID() && o.Key == e.Key }) {
				e.Key = s.fresh()
			}
		}
		want.IDs, given, all = append(want.IDs, e.ID), append(given, e), append(all, e)
		calls = append(calls, fmt.Sprintf("%q (%s at %d, key %s, %s)", e.ID, e.SessionID(), e.Seq, e.Key, what))
	}
	call := "Append of " + strings.Join(calls, ", ")
	copied := cloneEntries(given)
	got, err := s.store.Append(s.ctx(), copied)
	spoilt(copied)
	if refused != "" {
		if !errors.Is(err, core.ErrConflict) {
			return fmt.Sprintf("%s: error %v, want ErrConflict", call, err)
		}
		s.done("%s: refused", call)
		return ""
	}
	if err != nil || got.Duplicates != want.Duplicates || !slices.Equal(got.IDs, want.IDs) {
		return fmt.Sprintf("%s: %+v, error %v, want %+v and none", call, got, err, want)
	}
	s.done("%s", call)
	s.all = all
	s.look(core.Scope{Agent: given[0].Agent}, given[0].ID)
	return ""
}

// free draws a position of a session that no entry holds: mostly the one behind the last.
func free(s *sequence, all []core.Entry, id core.SessionID) int64 {
	taken, next := map[int64]bool{}, int64(0)
	for _, e := range all {
		if e.SessionID() == id {
			taken[e.Seq] = true
			next = max(next, e.Seq+1)
		}
	}
	if !s.forth && s.one(3) && next > 0 {
		if at := s.rnd.Int63n(next); !taken[at] {
			return at
		}
	}
	return next + int64(s.rnd.Intn(4)/3)
}

func (s *sequence) get() string {
	scope := s.scope()
	return s.getsAs(scope, s.ids(scope.Agent, 1+s.rnd.Intn(3)))
}

func (s *sequence) getsAs(scope core.Scope, ids []string) string {
	var want []core.Entry
	for _, id := range ids {
		if i := s.find(scope, id); i >= 0 {
			want = append(want, s.all[i])
		}
	}
	got, err := s.store.Get(s.ctx(), scope, slices.Clone(ids))
	if len(want) < len(ids) {
		if !errors.Is(err, core.ErrNotFound) || len(got) > 0 {
			return fmt.Sprintf("Get of %q in %+v, which holds %d of them: %d entries, error %v, want ErrNotFound", ids, scope, len(want), len(got), err)
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf("Get of %q in %+v: error %v, want none", ids, scope, err)
	}
	if d := sameEntries(got, want); d != "" {
		return fmt.Sprintf("Get of %q in %+v: %s", ids, scope, d)
	}
	spoilt(got)
	return ""
}

func (s *sequence) scanned() string {
	q := core.ScanQuery{Scope: s.scope(), Limit: pick(s, []int{1, 2, 3, core.MaxPage}), Reverse: s.one(2)}
	// Where Scan does not show all there is, places that are not shown may be filled in a range that is asked for.
	if q.Scope.Session != "" && s.one(3) && !offers[core.Recogniser](s.store) {
		q.FromSeq, q.ToSeq = int64(s.rnd.Intn(4)), int64(s.rnd.Intn(8))
	}
	if s.one(4) {
		q.Type = pick(s, []core.EntryType{core.TypeMessage, core.TypeErased, core.TypeHeartbeat})
	}
	return s.settled(func() string { return s.scansAs(q) })
}

// scansAs holds a scan against what there is: across sessions each of them in its order.
func (s *sequence) scansAs(q core.ScanQuery) string {
	got, text := s.scan(q)
	if text != "" {
		return text
	}
	sessions := []core.SessionID{sessionOf(0), sessionOf(1), sessionOf(2)}
	read := 0
	for _, id := range sessions {
		of := func(entries []core.Entry) []core.Entry {
			return slices.DeleteFunc(slices.Clone(entries), func(e core.Entry) bool {
				out := q.Scope.Session != "" && (e.Seq < q.FromSeq || q.ToSeq > 0 && e.Seq >= q.ToSeq)
				return e.SessionID() != id || out || q.Type != "" && e.Type != q.Type
			})
		}
		want := of(s.in(q.Scope))
		slices.SortFunc(want, func(a, b core.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
		if q.Reverse {
			slices.Reverse(want)
		}
		mine := of(got)
		if d := sameEntries(mine, want); d != "" {
			return fmt.Sprintf("Scan(%+v), of session %s: %s", q, id, d)
		}
		read += len(mine)
	}
	if q.Type == "" && read != len(got) {
		return fmt.Sprintf("Scan(%+v) visits %d entries, %d of them in the scope", q, len(got), read)
	}
	spoilt(got)
	return ""
}

func (s *sequence) update() string {
	scope := s.scope()
	id := s.ids(scope.Agent, 1)[0]
	i := s.find(core.Scope{Agent: scope.Agent}, id)
	if i >= 0 && s.all[i].Type == core.TypeErased {
		return ""
	}
	var c core.Change
	var what []string
	s.made++
	if s.one(2) {
		m := message.New(message.User, makeText(markOf(0, s.made), textKind(s.rnd.Intn(int(textKinds))), s.rnd.Intn(9), s.made, nil))
		if i >= 0 {
			m.Role = s.all[i].Role
		}
		c.Message, c.Tokens, c.Fingerprint = &m, s.made, message.Fingerprint(m)
		what = append(what, "message")
	}
	if s.one(2) {
		c.Meta = pick(s, []map[string]string{{}, {"made": fmt.Sprint(s.made)}, {"made": fmt.Sprint(s.made), "x": ""}})
		what = append(what, fmt.Sprint("meta ", c.Meta))
	}
	if s.one(4) {
		c.Type = pick(s, []core.EntryType{core.TypeMessage, core.TypeHeartbeat})
		what = append(what, "type "+string(c.Type))
	}
	if s.one(3) {
		c.Key = fmt.Sprint("K-", s.rnd.Intn(sequenceNames))
		what = append(what, "key "+c.Key)
	}
	if s.one(5) {
		m := message.New(message.User, "")
		c = core.Change{Message: &m, Fingerprint: fmt.Sprint("erased ", s.made), Type: core.TypeErased, Key: s.fresh(), Meta: map[string]string{}}
		what = []string{"erased, key " + c.Key}
	}
	return s.updates(scope, id, c, strings.Join(what, ", "))
}

// retype hides an entry, or shows it again.
func (s *sequence) retype() string {
	scope := s.scope()
	id := s.ids(scope.Agent, 1)[0]
	c := core.Change{Type: core.TypeHeartbeat}
	if i := s.find(core.Scope{Agent: scope.Agent}, id); i >= 0 {
		switch s.all[i].Type {
		case core.TypeErased:
			return ""
		case core.TypeHeartbeat:
			c.Type = core.TypeMessage
		}
	}
	return s.updates(scope, id, c, "type "+string(c.Type))
}

// updates makes a change, of an entry that is there or of another name.
func (s *sequence) updates(scope core.Scope, id string, c core.Change, what string) string {
	call := fmt.Sprintf("Update of %q in %+v: %s", id, scope, what)
	want := error(nil)
	there := s.find(scope, id)
	if there < 0 {
		want = core.ErrNotFound
	} else if slices.ContainsFunc(s.all, func(o core.Entry) bool {
		return o.ID != id && o.SessionID() == s.all[there].SessionID() && o.Key == c.Key
	}) {
		want = core.ErrConflict
	}
	given := c
	if c.Message != nil {
		m := *c.Message
		m.Parts = slices.Clone(m.Parts)
		given.Message = &m
	}
	if err := s.store.Update(s.ctx(), scope, id, given); !errors.Is(err, want) {
		return fmt.Sprintf("%s: error %v, want %v", call, err, want)
	}
	if want != nil {
		s.done("%s: refused", call)
		return ""
	}
	s.done("%s", call)
	e := &s.all[there]
	s.changed(*e, c.Message != nil)
	if c.Key != "" && c.Key != e.Key {
		s.former = append(s.former, *e)
	}
	if c.Type != "" {
		s.loose[id] = true
	}
	if c.Type == core.TypeErased {
		delete(s.vectors, id)
		delete(s.loose, id)
	}
	if c.Message != nil {
		e.Message, e.Tokens, e.Fingerprint = *c.Message, c.Tokens, c.Fingerprint
	}
	if c.Meta != nil {
		e.Meta = c.Meta
	}
	e.Key, e.Type = cmp.Or(c.Key, e.Key), cmp.Or(c.Type, e.Type)
	s.look(scope, id)
	return ""
}

// changed notes what follows when an entry is changed or removed.
func (s *sequence) changed(e core.Entry, said bool) {
	id := e.SessionID()
	if n, ok := s.numbers[id]; ok {
		s.before[id] = n
		delete(s.numbers, id)
	}
	if said {
		s.gone = append(s.gone, marksIn(e.Text())...)
		s.loose[e.ID] = true
	}
}

// without removes entries from what there must be.
func (s *sequence) without(gone func(core.Entry) bool) {
	s.all = slices.DeleteFunc(slices.Clone(s.all), func(e core.Entry) bool {
		if !gone(e) {
			return false
		}
		s.changed(e, true)
		s.former = append(s.former, e)
		delete(s.vectors, e.ID)
		delete(s.loose, e.ID)
		return true
	})
}

func (s *sequence) remove() string {
	scope := s.scope()
	ids := s.ids(scope.Agent, 1+s.rnd.Intn(3))
	want := map[string]bool{}
	for _, id := range ids {
		if s.find(scope, id) >= 0 {
			want[id] = true
		}
	}
	call := fmt.Sprintf("Delete of %q in %+v", ids, scope)
	if n, err := s.store.Delete(s.ctx(), scope, slices.Clone(ids)); err != nil || n != len(want) {
		return fmt.Sprintf("%s: %d, error %v, want %d and none", call, n, err, len(want))
	}
	s.done("%s", call)
	s.without(func(e core.Entry) bool { return want[e.ID] && scope.Contains(e.SessionID()) })
	s.look(scope, ids...)
	return ""
}
