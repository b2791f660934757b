package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/upkeep"
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
	_, scrubber := r.(upkeep.Scrubber)
	return map[Need]bool{NeedScrubber: scrubber, NeedSharer: sharer, NeedSearchers: o.over != nil, NeedLateRetriever: late, NeedAttacher: attacher, NeedObserver: observer}
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
			Rule: "Retrieve returns when its context ends, with what it has or with the context's error, also while another call reads the store or waits for a searcher, or while the store fails; what it had not read by then is read by the next; word beside a reading returns so, too"},
		{ID: "failure.retrieve", Promise: 9, Suite: SuiteRetriever, retriever: failureRetrieve, Needs: []Need{NeedSearchers},
			Rule: "each searcher that fails or hangs, in what is granted too, is named in an error that wraps core.ErrPartial, beside what the others found; what one found that says core.ErrPartial counts; where all fail there is an error that wraps one of core's; none holds what was asked"},
		{ID: "retrieve.scores", Suite: SuiteRetriever, retriever: retrieveScores, Needs: []Need{NeedSearchers},
			Rule: "what a searcher finds best comes first, whatever sign its scores have: they order its own hits and say nothing else"},
		{ID: "retrieve.late-searcher", Promise: 9, Suite: SuiteRetriever, retriever: lateSearcher, once: true, Needs: []Need{NeedSearchers},
			Rule: "where any of its searchers is late, in the scope of the query or in what is granted, a retriever says Late of what was asked and is ready now, and of nothing else, nor of what failed, has what it finds when it is asked again, and then nothing is late; what it keeps of one that answered too late is for the same query alone, and as it is stored"},
		{ID: "retrieve.clock", Promise: 6, Suite: SuiteRetriever, retriever: retrieveClock, once: true,
			Rule: "how old an entry is, is counted from the query's time and no clock's: where that and all entries are moved by the same years, the candidates are the same, in the same order and with the same scores, and on a later day they are those of one that was never asked before"},
		{ID: "scrub.retrieve", Promise: 2, Suite: SuiteRetriever, retriever: scrubRetrieve, once: true, Needs: []Need{NeedScrubber},
			Rule: "Scrub changes no answer: what was stored before and after an erasure is found as before it"},
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
	// said holds an error that quotes.
	said *indiscreet
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
			r.open, r.again, r.said = open, again, &indiscreet{}
			r.retriever, r.store = open(tb)
			if a, ok := r.retriever.(core.Attacher); ok {
				if err := a.Attach(r.store); err != nil {
					return fmt.Sprintf("Attach: error %v, want none", err)
				}
			}
			return cmp.Or(c.retriever(r), r.said.text())
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
	q := core.Query{
		Session: id, Scope: id.Scope(), Prompt: prompt, Recent: cloneEntries(recent[max(0, len(recent)-3):]),
		InWindow: func(string) bool { return false }, Now: epoch.Add(time.Hour), Tokens: 2000, Limit: 20,
	}
	switch who {
	case 1: // its host says what it knows of the model
		q.Settings = core.RuntimeSettings{
			SchemaVersion: 1, Provider: "anthropic", Model: "model-5", ResolvedModel: "model-5", ContextWindow: 200_000, MaxOutputTokens: 32_000, PromptTokenBudget: 150_000, Mode: "normal",
		}
	case 2: // the clock of its host is behind: some entries are newer than now
		q.Now = epoch.Add(20 * time.Second)
	}
	return q
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
