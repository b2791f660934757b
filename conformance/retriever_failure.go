package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

const (
	// grace is how many milliseconds a retriever has, once its sound searcher has answered, before its time ends. They are waited for one by one: where a busy
	// machine gives the process no time they are longer. watchdog is when its time ends where none of its searchers answers.
	grace    = 50
	watchdog = 20 * time.Second
	// endlessly is how long it may take then where a searcher waits for the end of a context that has none; else it is besideLate.
	endlessly = time.Second
	// turnsAsked is how often a retriever is asked.
	turnsAsked = 6
)

// expiring is a context whose time is over when it is told so.
type expiring struct {
	context.Context
	over chan struct{}
}

func (c *expiring) Done() <-chan struct{} { return c.over }

func (c *expiring) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// troubled is a searcher that finds what there is, fails, or hangs until its context ends.
type troubled struct {
	store core.Store
	err   error
	// partly says that it finds what there is, and that somebody it asked gave no answer.
	partly bool
	hang   bool
	// endless is set when it hangs in a call whose context never ends; over ends that.
	endless atomic.Bool
	over    <-chan struct{}
	// answered is told after each answer; nil when nobody wants to know.
	answered chan<- struct{}
	// less is taken off all scores.
	less float64
}

func (s *troubled) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if s.hang {
		s.endless.Store(s.endless.Load() || ctx.Done() == nil)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.over:
			return nil, fmt.Errorf("troubled: %w", core.ErrClosed)
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.answered != nil {
		defer func() {
			select {
			case s.answered <- struct{}{}:
			default: // it knows of another one
			}
		}()
	}
	var hits []core.Hit
	for e, err := range core.All(ctx, s.store, q.Scope, true) {
		if err != nil {
			return nil, err
		}
		if !e.Hidden() && len(hits) < q.Limit && (q.Exclude == nil || !q.Exclude(e.ID)) {
			hits = append(hits, core.Hit{Entry: e, Score: float64(e.Seq) - s.less})
		}
	}
	if s.partly {
		return hits, fmt.Errorf("troubled: one of several: %w", core.ErrPartial)
	}
	return hits, nil
}

func failureRetrieve(r *retrieverRun) string {
	if text := inTurn(r.fill, r.failPartly); text != "" {
		return text
	}
	over := make(chan struct{})
	defer close(over)
	for how, bad := range map[string]*troubled{"fails": {err: fmt.Errorf("troubled: %w", core.ErrUnavailable)}, "hangs": {hang: true, over: over}} {
		var want [turnsAsked][]core.Candidate
		var asked [turnsAsked]core.Query
		alone := r.over(r.tb, map[string]core.Searcher{"sound": &troubled{store: r.store}})
		for n := range asked {
			asked[n] = r.query(0, troubling)
			wider[n%len(wider)](&asked[n])
			var err error
			if want[n], err = r.answer(alone, asked[n]); err != nil {
				return fmt.Sprintf("Retrieve over a sound searcher: error %v, want none", err)
			}
		}
		sound := &troubled{store: r.store}
		answered := make(chan struct{}, 1)
		sound.answered = answered
		both := r.over(r.tb, map[string]core.Searcher{"sound": sound, "bad": bad})
		for n, q := range asked {
			where := fmt.Sprintf("Retrieve in %+v", q.Scopes())
			got, err := r.retrieveUntil(both, q, answered, &bad.endless)
			if err == nil || !errors.Is(err, core.ErrPartial) || !strings.Contains(err.Error(), "bad") {
				return fmt.Sprintf("%s where the searcher \"bad\" %s: error %v, want one that wraps core.ErrPartial and names it", where, how, err)
			}
			if quotes(err) {
				return fmt.Sprintf("%s where one searcher %s: an error holds what was asked: %v", where, how, err)
			}
			if d := sameIDs(candidateIDs(got), candidateIDs(want[n])); d != "" && !strings.Contains(err.Error(), "sound") {
				return fmt.Sprintf("%s where one searcher %s, against the other alone: %s", where, how, d)
			}
		}
	}
	return inTurn(r.failSeveral, r.failAll)
}

// failSeveral asks where two of three searchers fail, and in some cases hang: both are named. By name they come before the sound one, as in the other cases: one that
// asks in turn, the last first, has its answer.
func (r *retrieverRun) failSeveral() string {
	over := make(chan struct{})
	defer close(over)
	failing := func() *troubled { return &troubled{err: fmt.Errorf("troubled: %w", core.ErrUnavailable)} }
	hanging := func() *troubled { return &troubled{hang: true, over: over} }
	all := []map[string]*troubled{{"bad": failing(), "foul": failing()}}
	switch len(r.all) % 4 { // waiting takes its time
	case 0:
		all = append(all, map[string]*troubled{"bad": hanging(), "foul": hanging()})
	case 1:
		all = append(all, map[string]*troubled{"bad": failing(), "foul": hanging()})
	}
	for _, bad := range all {
		answered := make(chan struct{}, 1)
		searchers := map[string]core.Searcher{"sound": &troubled{store: r.store, answered: answered}}
		for name, s := range bad {
			searchers[name] = s
		}
		_, err := r.retrieveUntil(r.over(r.tb, searchers), r.query(0, troubling), answered, &bad["foul"].endless)
		for name := range bad {
			if !errors.Is(err, core.ErrPartial) || !strings.Contains(err.Error(), name) {
				return fmt.Sprintf("Retrieve where two of three searchers fail or hang: error %v, want one that wraps core.ErrPartial and names %q", err, name)
			}
		}
	}
	return ""
}

// retrieveScores asks over a searcher whose scores are what is left when the same is taken off them.
func retrieveScores(r *retrieverRun) string {
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	q := r.query(0, troubling)
	want, err := r.answer(r.over(r.tb, map[string]core.Searcher{"sound": &troubled{store: r.store}}), q)
	if err != nil {
		return fmt.Sprintf("Retrieve over a sound searcher: error %v, want none", err)
	}
	for what, less := range map[string]float64{"some scores are": 5, "all scores are": 1e6} {
		got, err := r.answer(r.over(r.tb, map[string]core.Searcher{"sound": &troubled{store: r.store, less: less}}), q)
		if err != nil {
			return fmt.Sprintf("Retrieve over a searcher where %s negative: error %v, want none", what, err)
		}
		if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
			return fmt.Sprintf("Retrieve over a searcher where %s negative, against the same hits where none is: %s", what, d)
		}
	}
	return ""
}

// failPartly asks where a searcher had to go without one of its own: a recall is made of what it found.
func (r *retrieverRun) failPartly() string {
	for _, names := range [][]string{{"some"}, {"some", "sound"}} {
		sound, partly := map[string]core.Searcher{}, map[string]core.Searcher{}
		for _, name := range names {
			sound[name], partly[name] = &troubled{store: r.store}, &troubled{store: r.store, partly: name == "some"}
		}
		want, err := r.answer(r.over(r.tb, sound), r.query(0, troubling))
		if err != nil {
			return fmt.Sprintf("Retrieve over %d sound searchers: error %v, want none", len(names), err)
		}
		got, err := r.retrieve(r.ctx(), r.over(r.tb, partly), r.query(0, troubling))
		if len(want) > 0 && err != nil && !errors.Is(err, core.ErrPartial) {
			return fmt.Sprintf("Retrieve where one of %d searchers found some, with core.ErrPartial: error %v, want none or one that wraps core.ErrPartial", len(names), err)
		}
		if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
			return fmt.Sprintf("Retrieve where one of %d searchers found the same with core.ErrPartial, against without: %s", len(names), d)
		}
	}
	return ""
}

// failAll asks where no searcher answers, turn after turn.
func (r *retrieverRun) failAll() string {
	for n := range 2 {
		searchers := map[string]core.Searcher{}
		for i := range n + 1 {
			searchers[fmt.Sprintf("bad %d", i)] = &troubled{err: fmt.Errorf("troubled: %w", core.ErrUnavailable)}
		}
		retriever := r.over(r.tb, searchers)
		for turn := range turnsAsked {
			got, err := r.retrieve(r.ctx(), retriever, r.query(0, troubling))
			if err == nil || quotes(err) || kindless(err) || len(got) > 0 {
				return fmt.Sprintf("Retrieve where all of %d searchers fail, for the %dth time: %d candidates, error %v, want none and an error that wraps one of core's and does not hold what was asked", n+1, turn+1, len(got), err)
			}
		}
	}
	return ""
}

// troubling is long enough to stand alone. Somebody said it: no error holds it.
const troubling = "which word is meant here, and where was it said before"

// quotes reports whether an error holds what was asked.
func quotes(err error) bool { return strings.Contains(err.Error(), troubling[:20]) }

// retrieveUntil asks, and lets time run out shortly after an answer of the sound searcher; one that does not heed that is left alone, with an error of the suite's.
// endless says that a searcher was asked with a context that never ends: little is waited then.
func (r *retrieverRun) retrieveUntil(retriever core.Retriever, q core.Query, answered <-chan struct{}, endless *atomic.Bool) ([]core.Candidate, error) {
	ctx := &expiring{Context: r.ctx(), over: make(chan struct{})}
	var got []core.Candidate
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = r.retrieve(ctx, retriever, q)
	}()
	end, left := time.After(watchdog), 0
	for ; left >= 0; left-- {
		select {
		case <-done:
			return got, err
		case <-answered:
			end, left = time.After(time.Millisecond), grace
		case <-end:
			end = time.After(time.Millisecond)
		}
	}
	close(ctx.over)
	r.watch.patient(besideLate)
	in := min(besideLate, time.Duration(r.watch.limit.Load()))
	if endless.Load() {
		in = endlessly
	}
	if !back(done, in) {
		r.watch.late.Store(true) // each smaller case would wait as long
		return nil, fmt.Errorf("none although the time was over %s ago", in)
	}
	return got, err
}

func candidateIDs(cs []core.Candidate) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Entry.ID
	}
	return out
}
