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
	// machine gives the process no time they are longer. watchdog is when it is taken to hang itself.
	grace    = 50
	watchdog = 20 * time.Second
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
	// answered is told after each answer; nil when nobody wants to know.
	answered chan<- struct{}
}

func (s *troubled) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if s.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.answered != nil {
		defer func() { s.answered <- struct{}{} }()
	}
	var hits []core.Hit
	for e, err := range core.All(ctx, s.store, q.Scope, true) {
		if err != nil {
			return nil, err
		}
		if !e.Hidden() && len(hits) < q.Limit && (q.Exclude == nil || !q.Exclude(e.ID)) {
			hits = append(hits, core.Hit{Entry: e, Score: float64(e.Seq)})
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
	for how, bad := range map[string]*troubled{"fails": {err: fmt.Errorf("troubled: %w", core.ErrUnavailable)}, "hangs": {hang: true}} {
		sound := &troubled{store: r.store}
		alone := r.over(r.tb, map[string]core.Searcher{"sound": sound})
		want, err := alone.Retrieve(r.ctx(), r.query(0, troubling))
		if err != nil {
			return fmt.Sprintf("Retrieve over a sound searcher: error %v, want none", err)
		}
		answered := make(chan struct{}, 8*turnsAsked)
		sound.answered = answered
		both := r.over(r.tb, map[string]core.Searcher{"sound": sound, "bad": bad})
		for range turnsAsked {
			got, err := r.retrieveUntil(both, answered)
			if err == nil || !errors.Is(err, core.ErrPartial) || !strings.Contains(err.Error(), "bad") {
				return fmt.Sprintf("Retrieve where the searcher \"bad\" %s: error %v, want one that wraps core.ErrPartial and names it", how, err)
			}
			if quotes(err) {
				return fmt.Sprintf("Retrieve where one searcher %s: an error holds what was asked: %v", how, err)
			}
			if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
				return fmt.Sprintf("Retrieve where one searcher %s, against the other alone: %s", how, d)
			}
		}
	}
	return r.failAll()
}

// failPartly asks where a searcher had to go without one of its own: a recall is made of what it found.
func (r *retrieverRun) failPartly() string {
	for _, names := range [][]string{{"some"}, {"some", "sound"}} {
		sound, partly := map[string]core.Searcher{}, map[string]core.Searcher{}
		for _, name := range names {
			sound[name], partly[name] = &troubled{store: r.store}, &troubled{store: r.store, partly: name == "some"}
		}
		want, err := r.over(r.tb, sound).Retrieve(r.ctx(), r.query(0, troubling))
		if err != nil {
			return fmt.Sprintf("Retrieve over %d sound searchers: error %v, want none", len(names), err)
		}
		got, err := r.over(r.tb, partly).Retrieve(r.ctx(), r.query(0, troubling))
		if len(want) > 0 && err != nil && !errors.Is(err, core.ErrPartial) {
			return fmt.Sprintf("Retrieve where one of %d searchers found some, with core.ErrPartial: error %v, want none or one that wraps core.ErrPartial", len(names), err)
		}
		if d := sameIDs(candidateIDs(got), candidateIDs(want)); d != "" {
			return fmt.Sprintf("Retrieve where one of %d searchers found the same with core.ErrPartial, against without: %s", len(names), d)
		}
	}
	return ""
}

// failAll asks where no searcher answers.
func (r *retrieverRun) failAll() string {
	for n := range 2 {
		searchers := map[string]core.Searcher{}
		for i := range n + 1 {
			searchers[fmt.Sprintf("bad %d", i)] = &troubled{err: fmt.Errorf("troubled: %w", core.ErrUnavailable)}
		}
		got, err := r.over(r.tb, searchers).Retrieve(r.ctx(), r.query(0, troubling))
		if err == nil || quotes(err) || len(got) > 0 {
			return fmt.Sprintf("Retrieve where all of %d searchers fail: %d candidates, error %v, want none and an error that does not hold what was asked", n+1, len(got), err)
		}
	}
	return ""
}

// troubling is long enough to stand alone. Somebody said it: no error holds it.
const troubling = "which word is meant here, and where was it said before"

// quotes reports whether an error holds what was asked.
func quotes(err error) bool { return strings.Contains(err.Error(), troubling[:20]) }

// retrieveUntil asks, and lets time run out shortly after an answer of the sound searcher; a retriever that does not heed that has the watchdog's error.
func (r *retrieverRun) retrieveUntil(retriever core.Retriever, answered <-chan struct{}) ([]core.Candidate, error) {
	ctx := &expiring{Context: r.ctx(), over: make(chan struct{})}
	type answer struct {
		got []core.Candidate
		err error
	}
	ch := make(chan answer, 1)
	go func() {
		got, err := retriever.Retrieve(ctx, r.query(0, troubling))
		ch <- answer{got, err}
	}()
	late := time.NewTimer(watchdog)
	defer late.Stop()
	var end <-chan time.Time
	left := 0
	for {
		select {
		case a := <-ch:
			return a.got, a.err
		case <-answered:
			end, left = time.After(time.Millisecond), grace
		case <-end:
			if left--; left > 0 {
				end = time.After(time.Millisecond)
				continue
			}
			close(ctx.over)
			end, answered = nil, nil
		case <-late.C:
			return nil, errors.New("no answer although the time was over")
		}
	}
}

func candidateIDs(cs []core.Candidate) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Entry.ID
	}
	return out
}

// slow is a searcher that is too late when it is asked first, and has what there is once it is ready.
type slow struct {
	troubled
	ready, owes atomic.Bool
}

func (s *slow) Search(ctx context.Context, q core.SearchQuery) ([]core.Hit, error) {
	if !s.ready.Load() {
		s.owes.Store(true)
		return nil, fmt.Errorf("slow: not yet: %w", core.ErrPartial)
	}
	s.owes.Store(false)
	return s.troubled.Search(ctx, q)
}

// Late implements core.LateSearcher.
func (s *slow) Late(core.SearchQuery) bool { return s.ready.Load() && s.owes.Load() }

// lateSearcher asks a retriever that may say that something is late, where one of two searchers is.
func lateSearcher(r *retrieverRun) string {
	r.watch.beat()
	if text := r.fill(); text != "" {
		return text
	}
	behind := &slow{troubled: troubled{store: r.store}}
	retriever := r.over(r.tb, map[string]core.Searcher{"alone": behind})
	late, ok := retriever.(core.LateRetriever)
	if !ok {
		return ""
	}
	q := r.query(0, troubling)
	want, err := r.over(r.tb, map[string]core.Searcher{"alone": &troubled{store: r.store}}).Retrieve(r.ctx(), q)
	if err != nil {
		return fmt.Sprintf("Retrieve over a sound searcher: error %v, want none", err)
	}
	if late.Late(q) {
		return "Late of a query that was never asked: true, want false"
	}
	_, _ = retriever.Retrieve(r.ctx(), q) // what it says of a searcher that has nothing yet is failure.retrieve's
	if late.Late(q) {
		return "Late while the searcher is not ready: true, want false"
	}
	behind.ready.Store(true)
	got, err := retriever.Retrieve(r.ctx(), q)
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
