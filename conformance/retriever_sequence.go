package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
)

func sequenceRetrieverChecks() []Check {
	return []Check{
		{ID: "sequence.retrieve", Promise: 2, Suite: SuiteRetriever, retriever: sequenceRetrieve, dear: true,
			Rule: "in whatever order a retriever is told of what is stored, changed and erased, and is asked between, each answer is of what the store holds now, and as good as that of one that reads the store anew"},
	}
}

// retrieverSequence is a store that a drawn order of calls changes, and the retrievers that are told of it.
type retrieverSequence struct {
	*retrieverRun
	stored *sequence
	// told are those that hear of each change.
	told []core.Retriever
	// anew says that another one can be attached to what is stored.
	anew  bool
	asked []core.Query
	// lately holds what was stored or changed last.
	lately []core.Entry
	now    time.Time
}

const (
	// keptQueries is how many of the last queries, and of the last changes, come up again.
	keptQueries = 6
	// toldOfStep is how many calls a generated entry stands for.
	toldOfStep = 60
)

func sequenceRetrieve(r *retrieverRun) string {
	s := &retrieverSequence{retrieverRun: r, told: []core.Retriever{r.retriever}, now: epoch.Add(time.Hour)}
	_, s.anew = r.retriever.(core.Attacher)
	s.stored = changing(&r.storeRun)
	s.stored.from(entrySpec{}) // there may be no entry that more follows from
	for i, b := range r.steps {
		for _, e := range b.Entries {
			s.stored.from(e)
			for range toldOfStep {
				if text := s.call(); text != "" {
					return text + s.stored.calls()
				}
			}
			if s.stored.one(2) {
				if text := s.likeAnew(8); text != "" {
					return text + s.stored.calls()
				}
			}
		}
		if i == 0 && s.anew {
			second, text := r.attached(r.store)
			if text != "" {
				return text
			}
			s.told = append(s.told, second)
		}
	}
	if text := s.likeAnew(16); text != "" {
		return "at the end: " + text + s.stored.calls()
	}
	return ""
}

// changing is a sequence of a store that is changed alone, each session from its beginning to its end.
func changing(r *storeRun) *sequence {
	s := newSequence(r, []core.Store{r.store})
	s.forth, s.ways = true, []func() string{s.append, s.append, s.append, s.update, s.update, s.retype, s.remove, s.remove}
	return s
}

// call changes something and tells of it, or asks.
func (s *retrieverSequence) call() string {
	if !s.stored.one(3) {
		return s.ask(pick(s.stored, s.told), s.draw())
	}
	before := cloneEntries(s.all)
	if text := pick(s.stored, s.stored.ways)(); text != "" {
		return text
	}
	s.entries = map[core.SessionID][]core.Entry{}
	for _, e := range s.all {
		s.entries[e.SessionID()] = append(s.entries[e.SessionID()], e)
	}
	if s.stored.one(4) { // between the change and word of it any answer will do, but it must not stay
		_, _ = s.retrieve(s.ctx(), pick(s.stored, s.told), s.draw())
	}
	n := s.news(before)
	for _, one := range s.told {
		if o, ok := one.(core.Observer); ok {
			if text := s.tellNews(o, n); text != "" {
				return text
			}
		}
	}
	return s.ask(pick(s.stored, s.told), s.draw())
}

// news is what a call changed.
type news struct {
	added   map[core.SessionID][]core.Entry
	updated []core.Entry
	deleted map[core.Scope][]string
}

// news compares what is stored with what was.
func (s *retrieverSequence) news(before []core.Entry) news {
	n := news{added: map[core.SessionID][]core.Entry{}, deleted: map[core.Scope][]string{}}
	was := map[string]core.Entry{}
	for _, e := range before {
		was[e.ID] = e
	}
	for _, e := range s.all {
		old, there := was[e.ID]
		delete(was, e.ID)
		switch {
		case !there:
			n.added[e.SessionID()] = append(n.added[e.SessionID()], e)
		case sameEntry(e, old) != "":
			n.updated = append(n.updated, e)
		default:
			continue
		}
		s.lately = append(s.lately[max(0, len(s.lately)+1-keptQueries):], e)
	}
	asAgent := s.stored.one(3)
	for _, e := range before {
		if _, gone := was[e.ID]; !gone {
			continue
		}
		scope := e.SessionID().Scope()
		if asAgent {
			scope.Session = ""
		}
		n.deleted[scope] = append(n.deleted[scope], e.ID)
	}
	return n
}

func (s *retrieverSequence) tellNews(o core.Observer, n news) string {
	for _, e := range cloneEntries(n.updated) {
		if err := o.Updated(s.ctx(), e); err != nil {
			return fmt.Sprintf("Updated(%q): error %v, want none", e.ID, err)
		}
	}
	for _, scope := range slices.SortedFunc(maps.Keys(n.deleted), byScope) {
		ids := n.deleted[scope]
		if err := o.Deleted(s.ctx(), scope, slices.Clone(ids)); err != nil {
			return fmt.Sprintf("Deleted(%q): error %v, want none", ids, err)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.added), order) {
		entries := n.added[id]
		if err := o.Appended(s.ctx(), cloneEntries(entries)); err != nil {
			return fmt.Sprintf("Appended of %d entries: error %v, want none", len(entries), err)
		}
	}
	return ""
}

func byScope(a, b core.Scope) int { return order(core.SessionID(a), core.SessionID(b)) }

// draw makes a query, or takes one that was asked before.
func (s *retrieverSequence) draw() core.Query {
	d := s.stored
	s.now = s.now.Add(time.Minute)
	var q core.Query
	if len(s.asked) > 0 && d.one(2) {
		q = s.again()
		if d.one(2) {
			return q
		}
	} else {
		q = s.query(d.rnd.Intn(3), pick(d, queries))
		switch k := d.rnd.Intn(8); {
		case k < 2 && len(s.all) > 0:
			q.Prompt = "what was said of " + pick(d, append(marksIn(pick(d, s.all).Text()), queries[0]))
		case k < 4 && len(s.lately) > 0:
			e := pick(d, s.lately)
			q = s.query(slices.Index([]core.SessionID{sessionOf(0), sessionOf(1), sessionOf(2)}, e.SessionID()), "what was said of "+pick(d, append(marksIn(e.Text()), queries[0])))
		case k < 5 && len(d.gone) > 0:
			q.Prompt = "what was said of " + pick(d, d.gone)
		}
	}
	// What was asked before may be asked in other scopes, of another window and for more.
	q.Scope, q.Granted, q.InWindow = q.Session.Scope(), nil, func(string) bool { return false }
	pick(d, wider)(&q)
	q.Now, q.Limit = s.now, pick(d, []int{1, 3, 20, core.MaxPage})
	if n := d.rnd.Intn(8); n < 3 {
		q.InWindow = func(id string) bool { return int(id[len(id)-1])%3 == n }
	}
	s.asked = append(s.asked[max(0, len(s.asked)+1-keptQueries):], q)
	return q
}

// again is a query that was asked before, in the conversation as it is now.
func (s *retrieverSequence) again() core.Query {
	q := pick(s.stored, s.asked)
	in := s.entries[q.Session]
	q.Now, q.Recent = s.now, cloneEntries(in[max(0, len(in)-3):])
	return q
}

// ask holds an answer against what is stored.
func (s *retrieverSequence) ask(one core.Retriever, q core.Query) string {
	if s.stored.one(8) { // one whose caller went away leaves nothing behind
		ctx, cancel := context.WithCancel(s.ctx())
		cancel()
		_, _ = s.retrieve(ctx, one, q)
	}
	text := s.settled(func() string {
		asked := q
		asked.Granted = slices.Clone(q.Granted) // the retriever's own
		got, err := s.answer(one, asked)
		if err != nil {
			return fmt.Sprintf("error %v, want none", err)
		}
		text := s.right(q, got)
		spoilt(got)
		return text
	})
	if text != "" {
		return fmt.Sprintf("Retrieve(%q) in %+v, at most %d: %s", q.Prompt, q.Scopes(), q.Limit, text)
	}
	return ""
}

// right looks whether candidates are what a query may be answered with.
func (s *retrieverSequence) right(q core.Query, got []core.Candidate) string {
	if len(got) > q.Limit {
		return fmt.Sprintf("%d candidates", len(got))
	}
	seen := map[string]bool{}
	for _, c := range got {
		id := c.Entry.ID
		i := s.stored.find(core.Scope{Agent: c.Entry.Agent}, id)
		switch {
		case i < 0:
			return fmt.Sprintf("candidate %q is not there", id)
		case seen[id]:
			return fmt.Sprintf("candidate %q comes twice", id)
		case q.InWindow(id):
			return fmt.Sprintf("candidate %q is in the window already", id)
		case s.all[i].Hidden():
			return fmt.Sprintf("candidate %q is hidden", id)
		case !slices.ContainsFunc(q.Scopes(), func(in core.Scope) bool { return in.Contains(s.all[i].SessionID()) }):
			return fmt.Sprintf("candidate %q is of session %s", id, s.all[i].SessionID())
		}
		seen[id] = true
		if d := sameEntry(c.Entry, s.all[i]); d != "" {
			return "a candidate's entry is not the stored one: " + d
		}
	}
	return bestFirst(got)
}

// likeAnew holds answers of all against those of one that reads the store anew.
func (s *retrieverSequence) likeAnew(queries int) string {
	if !s.anew {
		return ""
	}
	anew, text := s.attached(s.store)
	if text != "" {
		return text
	}
	for range queries {
		q := s.draw()
		switch s.stored.rnd.Intn(3) {
		case 0:
			q.Limit = core.MaxPage
		case 1:
			q = s.again()
		}
		for _, one := range s.told {
			text := s.settled(func() string {
				want, err := s.answer(anew, q)
				if err != nil {
					return fmt.Sprintf("of one that reads the store anew: error %v, want none", err)
				}
				got, err := s.answer(one, q)
				if err != nil {
					return fmt.Sprintf("error %v, want none", err)
				}
				if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
					return "against one that reads the store anew: " + d
				}
				return ""
			})
			if text != "" {
				return fmt.Sprintf("Retrieve(%q) in %+v: %s", q.Prompt, q.Scopes(), text)
			}
		}
	}
	return ""
}
