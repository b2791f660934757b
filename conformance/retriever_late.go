package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// lateFor is how long a check waits for a retriever to say that something is late: one whose searchers say so, says so at once.
const lateFor = 200 * time.Millisecond

// slow is a searcher that answers when it is let: whoever does not wait for that has something to come back for.
type slow struct {
	troubled
	// waits says that it answers late; otherwise it says at once that there is nothing yet.
	waits bool
	// only is the one scope in which it is slow; nil is any.
	only *core.Scope
	let  chan struct{}
	mu   sync.Mutex
	// owes are the questions it has not answered to one who waited.
	owes map[string]bool
}

func newSlow(store core.Store, waits bool) *slow {
	return &slow{troubled: troubled{store: store}, waits: waits, let: make(chan struct{}), owes: map[string]bool{}}
}

func (s *slow) ready() bool {
	select {
	case <-s.let:
		return true
	default:
		return false
	}
}

func question(q core.SearchQuery) string { return fmt.Sprintf("%+v %q", q.Scope, q.Text) }

// owe notes whether an answer is owed.
func (s *slow) owe(q core.SearchQuery, owes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owes[question(q)] = owes
}

// owing reports whether any answer is.
func (s *slow) owing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owes := range s.owes {
		if owes {
			return true
		}
	}
	return false
}

func (s *slow) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if s.only != nil && q.Scope != *s.only {
		return s.troubled.Search(ctx, q)
	}
	if !s.ready() {
		s.owe(q, true)
		if !s.waits {
			return nil, fmt.Errorf("slow: not yet: %w", core.ErrPartial)
		}
		select {
		case <-s.let:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.troubled.Search(ctx, q) // to one who may have gone
	}
	s.owe(q, false)
	return s.troubled.Search(ctx, q)
}

// Late implements core.LateSearcher.
func (s *slow) Late(q core.SearchQuery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready() && s.owes[question(q)]
}

// lateSearcher asks a retriever that may say that something is late, where a searcher is: one that says so at once, then one that lets it wait. It is alone, or
// any of several, and late in the scope of the query, or in what is granted alone.
func lateSearcher(r *retrieverRun) string {
	r.watch.beat()
	r.steps = append(r.steps, ordinary(6))
	if text := r.fill(); text != "" {
		return text
	}
	for _, prompt := range []string{troubling, ""} {
		for _, waits := range []bool{false, true} {
			if text := r.lateBehind(newSlow(r.store, waits), 1, 0, prompt); text != "" {
				return fmt.Sprintf("prompt %q: %s", prompt, text)
			}
		}
	}
	// One of two that is waited for is no more late than one alone, and one that failed is not late at all.
	if text := inTurn(func() string { return r.lateBehind(newSlow(r.store, true), 2, 1, troubling) }, r.lateFailed); text != "" {
		return text
	}
	for n := 1; n <= 3; n++ {
		for at := range n {
			for who := range 3 {
				behind, scope := newSlow(r.store, false), sessionOf(who).Scope()
				behind.only = &scope
				if text := r.lateBehind(behind, n, at, troubling); text != "" {
					return fmt.Sprintf("searcher %d of %d is late in %+v: %s", at+1, n, scope, text)
				}
			}
		}
	}
	return lateKept(r)
}

// others are queries that differ from one, and that nobody asked: of another agent, of another session, and for something else.
func (r *retrieverRun) others(q core.Query) map[string]core.Query {
	q.Granted = nil
	agent, session, prompt := q, q, q
	agent.Session = core.SessionID{Agent: "another", Session: q.Session.Session}
	agent.Scope = agent.Session.Scope()
	session.Session = core.SessionID{Agent: q.Session.Agent, Session: "another"}
	session.Scope = session.Session.Scope()
	prompt.Prompt = strings.ToUpper(q.Prompt) + " and nobody asked this"
	return map[string]core.Query{"for another agent": agent, "for another session": session, "with another prompt": prompt}
}

// lateFailed asks over a searcher that fails, alone and beside one that does not: nothing comes of it later.
func (r *retrieverRun) lateFailed() string {
	bad := &troubled{err: fmt.Errorf("troubled: %w", core.ErrUnavailable)}
	for _, searchers := range []map[string]core.Searcher{{"bad": bad}, {"bad": bad, "sound": &troubled{store: r.store}}} {
		retriever := r.over(r.tb, searchers)
		late, ok := retriever.(core.LateRetriever)
		if !ok {
			return ""
		}
		q := r.query(0, troubling)
		for range turnsAsked {
			_, _ = r.retrieve(r.ctx(), retriever, q)
			if late.Late(q) {
				return fmt.Sprintf("Late where one of %d searchers failed, and nothing came since: true, want false", len(searchers))
			}
			for what, other := range r.others(q) {
				if late.Late(other) {
					return fmt.Sprintf("Late of a query %s than the one for which a searcher failed, which nobody asked: true, want false", what)
				}
			}
		}
	}
	return ""
}

// prompt is a searcher that may be late, and never is.
func (r *retrieverRun) prompt() *slow {
	s := newSlow(r.store, false)
	close(s.let)
	return s
}

// lateBehind asks over n searchers of which the one at a place is slow.
func (r *retrieverRun) lateBehind(behind *slow, n, at int, prompt string) string {
	searchers, sound := map[string]core.Searcher{}, map[string]core.Searcher{}
	for i := range n {
		name := fmt.Sprintf("searcher-%d", i)
		if sound[name] = r.prompt(); i == 2 {
			sound[name] = &troubled{store: r.store}
		}
		searchers[name] = sound[name]
		if i == at {
			searchers[name] = behind
		}
	}
	retriever := r.over(r.tb, searchers)
	late, ok := retriever.(core.LateRetriever)
	if !ok {
		return ""
	}
	q := r.query(0, prompt)
	if behind.only != nil {
		q.Granted = []core.Scope{sessionOf(1).Scope(), sessionOf(2).Scope()}
	}
	want, err := r.answer(r.over(r.tb, sound), q)
	if err != nil {
		return fmt.Sprintf("Retrieve over sound searchers: error %v, want none", err)
	}
	if late.Late(q) {
		return "Late of a query that was never asked: true, want false"
	}
	// What it says of a searcher that has nothing yet is failure.retrieve's. Its time is over soon.
	ctx, cancel := context.WithTimeout(r.ctx(), grace*time.Millisecond)
	defer cancel()
	_, _ = r.retrieve(ctx, retriever, q)
	if late.Late(q) {
		return "Late while the searcher is not ready: true, want false"
	}
	close(behind.let)
	for end := time.Now().Add(lateFor); behind.waits && !late.Late(q) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	for what, other := range r.others(q) {
		if late.Late(other) {
			return fmt.Sprintf("Late of a query %s than the one that was asked, which nobody asked: true, want false", what)
		}
	}
	if !behind.waits && behind.owing() && !late.Late(q) {
		return "Late of what was asked, once the searcher is ready that had nothing then: false, want true"
	}
	if behind.waits {
		return "" // whom it waited for in vain it may leave alone for a while
	}
	got, err := r.answer(retriever, q)
	switch {
	case err != nil:
		return fmt.Sprintf("asked again when the searcher is ready: error %v, want none", err)
	case late.Late(q):
		return "Late once all was asked again: true, want false"
	}
	if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
		return "asked again when the searcher is ready, against one that always was: " + d
	}
	return ""
}
