package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// TestRetriever holds a retriever to the contract of core.Retriever. open returns a retriever and the empty store it
// reads; the suite attaches the retriever when it is a core.Attacher, and tells it about appends and deletions when it is a core.Observer.
func TestRetriever(t *testing.T, open func(tb testing.TB) (core.Retriever, core.Store), opts ...Option) {
	t.Helper()
	o := resolve(t, fewer(25), opts)
	t.Logf("conformance seed %d", o.seed)
	defer func() { o.close(t, t.Failed()) }()
	have := retrieverHas(t, open, o)
	for _, c := range retrieverChecks() {
		t.Run(c.ID, func(t *testing.T) {
			runCheck(t, c, have, o, func() (Finding, bool) { return examineRetriever(t, c, open, o) })
		})
	}
}

// ExamineRetriever is TestRetriever for tools: it returns what it finds instead of failing a test.
func ExamineRetriever(tb testing.TB, open func(tb testing.TB) (core.Retriever, core.Store), opts ...Option) []Finding {
	tb.Helper()
	o := resolve(tb, fewer(25), opts)
	have := retrieverHas(tb, open, o)
	var out []Finding
	for _, c := range retrieverChecks() {
		if len(missing(c, have)) > 0 || o.claims != nil && !matches(c, o.claims) {
			continue
		}
		if f, found := examineRetriever(tb, c, open, o); found {
			out = append(out, f)
			if o.first {
				break
			}
		}
	}
	return out
}

func retrieverHas(tb testing.TB, open func(testing.TB) (core.Retriever, core.Store), o options) map[Need]bool {
	tb.Helper()
	c := &caseTB{TB: tb}
	defer c.end()
	r, _ := open(c)
	_, sharer := r.(core.Sharer)
	_, late := r.(core.LateRetriever)
	_, attacher := r.(core.Attacher)
	_, observer := r.(core.Observer)
	return map[Need]bool{NeedSharer: sharer, NeedSearchers: o.over != nil, NeedLateRetriever: late, NeedAttacher: attacher, NeedObserver: observer}
}

func retrieverChecks() []Check {
	// Whoever reads a part of the store alone is named so: told ones come before those that let a store fail.
	return slices.Concat(retrieverContract(), toldRetrieverChecks(), meanwhileChecks(), moreRetrieverChecks(), memoryRetrieverChecks(), sequenceRetrieverChecks())
}

func retrieverContract() []Check {
	return []Check{
		{ID: "retrieve.once", Promise: 5, Suite: SuiteRetriever, retriever: retrieveOnce,
			Rule: "no candidate comes twice, and none that the window shows already"},
		{ID: "retrieve.order", Suite: SuiteRetriever, retriever: retrieveOrder,
			Rule: "candidates come best first and name what found them"},
		{ID: "retrieve.content", Promise: 2, Suite: SuiteRetriever, retriever: retrieveContent,
			Rule: "a candidate's entry is the stored entry; where a retriever says that it reads the store, also what nobody told it of"},
		{ID: "retrieve.erased", Promise: 2, Suite: SuiteRetriever, retriever: retrieveErased,
			Rule: "an erased entry is no candidate any more"},
		{ID: "retrieve.heartbeat", Suite: SuiteRetriever, retriever: retrieveHeartbeat,
			Rule: "what is hidden is never recalled: heartbeats, and system messages from the beginning of a transcript"},
		{ID: "isolation.retrieve", Promise: 8, Suite: SuiteRetriever, retriever: isolationRetrieve,
			Rule: "no candidate lies outside the scopes of the query, whatever of a session, an agent and grants of either they are made of"},
		{ID: "deterministic.retrieve", Promise: 6, Suite: SuiteRetriever, retriever: deterministicRetrieve,
			Rule: "the same store and query give the same candidates"},
		{ID: "cancel.retrieve", Promise: 9, Suite: SuiteRetriever, retriever: cancelRetrieve,
			Rule: "Retrieve returns when its context ends, with what it has or with the context's error, also while another call reads the store or waits for a searcher"},
		{ID: "failure.retrieve", Promise: 9, Suite: SuiteRetriever, retriever: failureRetrieve, Needs: []Need{NeedSearchers},
			Rule: "a searcher that fails or hangs, in what is granted too, is named in an error that wraps core.ErrPartial, beside what the others found; what one found that says core.ErrPartial counts; where all fail there is an error; none holds what was asked"},
		{ID: "retrieve.late-searcher", Promise: 9, Suite: SuiteRetriever, retriever: lateSearcher, once: true, Needs: []Need{NeedSearchers},
			Rule: "where any of its searchers is late, in the scope of the query or in what is granted, a retriever says Late of what was asked and is ready now, and of nothing else, has what it finds when it is asked again, and then nothing is late"},
		{ID: "retrieve.clock", Promise: 6, Suite: SuiteRetriever, retriever: retrieveClock, once: true,
			Rule: "how old an entry is, is counted from the query's time and no clock's: where that and all entries are moved by the same years, the candidates are the same, in the same order"},
		{ID: "retrieve.share", Promise: 1, Suite: SuiteRetriever, retriever: retrieveShare, Needs: []Need{NeedSharer},
			Rule: "RecallShare is 0 to 0.5 and does not change from call to call"},
	}
}

type retrieverRun struct {
	storeRun
	retriever core.Retriever
	// beside is another retriever: it has read what is stored, and is told of changes alone.
	beside core.Retriever
	over   func(testing.TB, map[string]core.Searcher) core.Retriever
	// open makes another retriever.
	open func(testing.TB) (core.Retriever, core.Store)
	// nothing says that it is right to find nothing.
	nothing bool
	// again counts what is asked again.
	again *atomic.Int64
}

func examineRetriever(tb testing.TB, c Check, open func(testing.TB) (core.Retriever, core.Store), o options) (Finding, bool) {
	tb.Helper()
	defer o.watch.tally.during(c, o.watch)()
	w := watched{watch: o.watch}
	again := mayAskAgain()
	cases := o.cases
	switch {
	case c.once:
		cases = 1
	case c.dear && !o.exact:
		cases = max(1, cases/5)
	}
	text, steps, found := forAll(seedFor(o.seed, c.ID), cases, o.shrink, genBatches, batchShrinker(), func(steps []batch) string {
		tb := &caseTB{TB: tb}
		defer w.finish(tb)
		return w.run(tb, func() string {
			r := &retrieverRun{}
			r.watch = w.watch
			r.tb, r.steps, r.bound, r.over, r.nothing = tb, steps, o.bound, o.over, o.nothing
			r.open, r.again = open, again
			r.retriever, r.store = open(tb)
			if a, ok := r.retriever.(core.Attacher); ok {
				if err := a.Attach(r.store); err != nil {
					return fmt.Sprintf("Attach: error %v, want none", err)
				}
			}
			return c.retriever(r)
		})
	})
	if !found {
		return Finding{}, false
	}
	text = cmp.Or(w.hung, text)
	lines := make([]string, len(steps))
	for i, s := range steps {
		lines[i] = s.String()
	}
	return Finding{Check: c, Text: text, Case: strings.Join(lines, "\n"), Seed: o.seed}, true
}

// fill stores the steps and tells a retriever with a memory of its own.
func (r *retrieverRun) fill() string {
	if text := r.storeRun.fill(); text != "" {
		return text
	}
	o, ok := r.retriever.(core.Observer)
	if !ok || len(r.all) == 0 {
		return ""
	}
	if err := o.Appended(r.ctx(), cloneEntries(r.all)); err != nil {
		return fmt.Sprintf("Appended: error %v, want none", err)
	}
	return ""
}

func (r *retrieverRun) query(who int, prompt string) core.Query {
	id := sessionOf(who)
	recent := r.entries[id]
	return core.Query{
		Session: id, Scope: id.Scope(), Prompt: prompt, Recent: cloneEntries(recent[max(0, len(recent)-3):]),
		InWindow: func(string) bool { return false }, Now: epoch.Add(time.Hour), Tokens: 2000, Limit: 20,
	}
}

// each asks every prompt in every session and hands the candidates to check.
func (r *retrieverRun) each(change func(*core.Query), check func(core.Query, []core.Candidate) string) string {
	if text := r.fill(); text != "" {
		return text
	}
	return r.ask(change, check)
}

func (r *retrieverRun) ask(change func(*core.Query), check func(core.Query, []core.Candidate) string) string {
	for who := range 3 {
		for _, prompt := range append([]string{""}, queries...) {
			q := r.query(who, prompt)
			if change != nil {
				change(&q)
			}
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve(%q in %+v): error %v, want none", prompt, q.Scope, err)
			}
			if text := check(q, got); text != "" {
				return fmt.Sprintf("Retrieve(%q in %+v): %s", prompt, q.Scope, text)
			}
		}
	}
	return ""
}

func retrieveOnce(r *retrieverRun) string {
	if text := r.fillParted(); text != "" {
		return text
	}
	shown := func(id string) bool { return id[len(id)-1]%3 == 0 }
	for _, change := range wider {
		text := r.ask(func(q *core.Query) { q.InWindow, q.Limit = shown, core.MaxPage; change(q) }, func(q core.Query, got []core.Candidate) string {
			seen := map[string]bool{}
			for _, c := range got {
				if seen[c.Entry.ID] {
					return fmt.Sprintf("%q comes twice, %+v are granted", c.Entry.ID, q.Granted)
				}
				if shown(c.Entry.ID) {
					return fmt.Sprintf("%q is in the window already, %+v are granted", c.Entry.ID, q.Granted)
				}
				seen[c.Entry.ID] = true
			}
			return ""
		})
		if text != "" {
			return text
		}
	}
	return ""
}

// wider are the scopes a query may look into: its session's, all of the agent's, and grants that open what is another's, its own, or the same twice, beside either.
var wider = []func(*core.Query){
	func(*core.Query) {},
	func(q *core.Query) { q.Scope.Session = "" },
	func(q *core.Query) { q.Granted = []core.Scope{sessionOf(1).Scope(), sessionOf(2).Scope()} },
	func(q *core.Query) {
		q.Granted = []core.Scope{{Agent: sessionOf(2).Agent}, sessionOf(2).Scope(), {Agent: sessionOf(0).Agent}, sessionOf(1).Scope(), sessionOf(1).Scope()}
	},
	func(q *core.Query) {
		q.Scope.Session, q.Granted = "", []core.Scope{sessionOf(1).Scope(), sessionOf(2).Scope()}
	},
	func(q *core.Query) { q.Scope.Session, q.Granted = "", []core.Scope{{Agent: sessionOf(2).Agent}} },
}

func retrieveOrder(r *retrieverRun) string {
	if text := r.fillAged(); text != "" {
		return text
	}
	n := 0
	text := r.ask(func(q *core.Query) { wider[n%len(wider)](q); n++ }, func(_ core.Query, got []core.Candidate) string { return bestFirst(got) })
	if text != "" {
		return text
	}
	// The scores of what is found by many words lie close together.
	for who := range 3 {
		for _, prompt := range r.wordy(who) {
			got, err := r.answer(r.retriever, r.query(who, prompt))
			if err != nil {
				break // others say so
			}
			if text := bestFirst(got); text != "" {
				return fmt.Sprintf("Retrieve(%q): %s", prompt, text)
			}
		}
	}
	return ""
}

// wordy are prompts of many words: what each entry of a session says, and more.
func (r *retrieverRun) wordy(who int) []string {
	var out []string
	for _, e := range r.entries[sessionOf(who)] {
		out = append(out, "what was it about "+e.Text()+", the budget report of friday")
	}
	return out
}

func bestFirst(got []core.Candidate) string {
	for i, c := range got {
		if i > 0 && c.Score > got[i-1].Score {
			return fmt.Sprintf("candidate %d has score %v after %v", i, c.Score, got[i-1].Score)
		}
		if c.Source == "" {
			return fmt.Sprintf("candidate %q names no source", c.Entry.ID)
		}
	}
	return ""
}

func retrieveContent(r *retrieverRun) string {
	r.steps = append(r.steps, fullEach())
	if text := r.fillOdd(); text != "" {
		return text
	}
	if text := r.ask(nil, r.asStored); text != "" || !core.ReadsStore(r.retriever) {
		return text
	}
	// Another process changes what is stored.
	for _, e := range cloneEntries(r.all) {
		if e.Hidden() {
			continue
		}
		now := message.New(e.Role, "they moved: "+e.Text())
		if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, core.Change{Message: &now, Tokens: e.Tokens + 3, Fingerprint: message.Fingerprint(now)}); err != nil {
			return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
		}
	}
	if text := r.settled(func() string { return r.ask(nil, r.asStored) }); text != "" {
		return "it says that it reads the store, where something was changed that it was not told of: " + text
	}
	return ""
}

// asStored looks whether candidates are as the store holds them.
func (r *retrieverRun) asStored(_ core.Query, got []core.Candidate) string {
	for _, c := range got {
		stored, err := r.store.Get(r.ctx(), c.Entry.SessionID().Scope(), []string{c.Entry.ID})
		if err != nil {
			return fmt.Sprintf("candidate %q cannot be read: %v", c.Entry.ID, err)
		}
		if d := sameEntries([]core.Entry{c.Entry}, stored); d != "" {
			return d
		}
	}
	return ""
}

func retrieveErased(r *retrieverRun) string {
	// What is asked afterwards was asked before.
	if text := r.each(nil, nothing); text != "" {
		return text
	}
	if text := r.readsBeside(nil); text != "" {
		return text
	}
	gone := map[string]bool{}
	remove := func(scope core.Scope, ids []string) string {
		if len(ids) == 0 {
			return ""
		}
		if _, err := r.store.Delete(r.ctx(), scope, slices.Clone(ids)); err != nil {
			return fmt.Sprintf("Delete(%q): error %v, want none", ids, err)
		}
		for _, o := range r.observers() {
			if err := o.Deleted(r.ctx(), scope, slices.Clone(ids)); err != nil {
				return fmt.Sprintf("Deleted(%q): error %v, want none", ids, err)
			}
		}
		for _, id := range ids {
			gone[id] = true
		}
		return ""
	}
	// Every other one goes: some alone, some together, some by their agent.
	several := map[core.Scope][]string{}
	for i, e := range r.all {
		scope := e.SessionID().Scope()
		if i%8 >= 4 {
			scope.Session = ""
		}
		switch i % 4 {
		case 0:
			if text := remove(scope, []string{e.ID}); text != "" {
				return text
			}
		case 2, 3:
			several[scope] = append(several[scope], e.ID)
		}
	}
	for scope, ids := range several {
		if text := remove(scope, ids); text != "" {
			return text
		}
	}
	for id, entries := range r.entries {
		r.entries[id] = slices.DeleteFunc(entries, func(e core.Entry) bool { return gone[e.ID] })
	}
	text := r.both(func() string {
		return r.ask(nil, func(_ core.Query, got []core.Candidate) string {
			for _, c := range got {
				if gone[c.Entry.ID] {
					return fmt.Sprintf("candidate %q was erased", c.Entry.ID)
				}
			}
			return ""
		})
	})
	if text != "" {
		return text
	}
	return r.goneNext(func(e core.Entry) (*core.Entry, string) { return nil, remove(e.SessionID().Scope(), []string{e.ID}) })
}

func retrieveHeartbeat(r *retrieverRun) string {
	r.steps = append(r.steps, batch{Entries: []entrySpec{{Size: 6, Shape: 23}, {Who: 2, Size: 6, Shape: 23}}})
	if text := r.fillLeading(); text != "" {
		return text
	}
	return r.ask(nil, func(_ core.Query, got []core.Candidate) string {
		for _, c := range got {
			switch {
			case c.Entry.Type == core.TypeHeartbeat:
				return fmt.Sprintf("candidate %q is a heartbeat", c.Entry.ID)
			case c.Entry.Hidden():
				return fmt.Sprintf("candidate %q is hidden: a system message from the beginning of a transcript", c.Entry.ID)
			}
		}
		return ""
	})
}

func isolationRetrieve(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(6))
	n := len(r.steps)
	if text := r.fill(); text != "" {
		return text
	}
	for _, granted := range grantings(n) {
		for who := range 6 {
			n++
			q := r.query(who%3, queries[n%2])
			q.Granted = slices.Clone(granted) // a query is the retriever's own
			if who >= 3 {
				q.Scope.Session = ""
			}
			scopes := q.Scopes()
			got, err := r.answer(r.retriever, q)
			if err != nil {
				return fmt.Sprintf("Retrieve(%q in %+v): error %v, want none", q.Prompt, scopes, err)
			}
			for _, c := range got {
				if !slices.ContainsFunc(scopes, func(s core.Scope) bool { return s.Contains(c.Entry.SessionID()) }) {
					return fmt.Sprintf("Retrieve(%q in %+v): candidate %q is of session %s", q.Prompt, scopes, c.Entry.ID, c.Entry.SessionID())
				}
			}
		}
	}
	return ""
}

// grantings are nothing, each session and agent alone, and a few of the pairs: others for each n.
func grantings(n int) [][]core.Scope {
	single := []core.Scope{sessionOf(0).Scope(), sessionOf(1).Scope(), sessionOf(2).Scope(), {Agent: sessionOf(0).Agent}, {Agent: sessionOf(2).Agent}}
	out := [][]core.Scope{nil}
	for i, one := range single {
		out = append(out, []core.Scope{one})
		if (n+i)%2 == 0 {
			out = append(out, []core.Scope{one, single[(i+1+n%4)%len(single)]})
		}
	}
	return out
}

func deterministicRetrieve(r *retrieverRun) string {
	// More than a limit of one score and one time: which of them come, and in which order, stays the same.
	if text := r.tellAlike(36); text != "" {
		return text
	}
	n := 0
	return r.each(func(q *core.Query) { wider[n%len(wider)](q); n++ }, func(q core.Query, got []core.Candidate) string {
		again, err := r.answer(r.retriever, q)
		if err != nil {
			return fmt.Sprintf("the second time: error %v", err)
		}
		ids := func(cs []core.Candidate) []string {
			out := make([]string, len(cs))
			for i, c := range cs {
				out[i] = fmt.Sprintf("%s %v %q", c.Entry.ID, c.Score, c.Text)
			}
			return out
		}
		if d := sameIDs(ids(again), ids(got)); d != "" {
			return "the second time: " + d
		}
		return ""
	})
}

func cancelRetrieve(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(6))
	if text := r.fill(); text != "" {
		return text
	}
	ctx, cancel := cancellable(r.ctx())
	cancel()
	if _, err := r.retriever.Retrieve(ctx, r.query(0, queries[0])); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Retrieve with a cancelled context: error %v, want none or context.Canceled", err)
	}
	return inTurn(r.cancelSlow, r.cancelBeside)
}

func retrieveShare(r *retrieverRun) string {
	s, _ := r.retriever.(core.Sharer)
	first := s.RecallShare()
	if first < 0 || first > 0.5 {
		return fmt.Sprintf("RecallShare() = %v, want 0 to 0.5", first)
	}
	again := func(core.Query, []core.Candidate) string {
		if next := s.RecallShare(); next != first {
			return fmt.Sprintf("RecallShare() = %v, then %v", first, next)
		}
		return ""
	}
	unasked := func() string { return again(core.Query{}, nil) }
	return inTurn(r.fill, unasked, func() string { return r.ask(nil, again) })
}
