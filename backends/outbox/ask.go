package outbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

const (
	// searchTimeout bounds a search of the remote: what comes later is of no use to anybody.
	searchTimeout = 10 * time.Second
	// missesToRest is how many searches in a row may get no answer in time before the remote is left alone; it is asked again once after
	// firstRest, and each time that fails after twice as long, up to lastRest.
	missesToRest        = 3
	firstRest, lastRest = 30 * time.Second, 5 * time.Minute
	// maxFlights is how many searches may be under way, maxKept how many answers are kept, and keptFor how long.
	maxFlights, maxKept = 4, 32
	keptFor             = 30 * time.Second
	// anticipated is how many hits are asked for when nobody has asked yet.
	anticipated = 20
	// maxTopic bounds by how much of it a query is recognised, in bytes.
	maxTopic = 512
)

// asker asks the remote's search in the background, so that nobody waits for it longer than he wants to. An answer that comes too late for who asked is
// kept for who asks the same next.
type asker struct {
	search core.Searcher
	now    func() time.Time
	// ctx ends when the store is closed.
	ctx  context.Context
	work sync.WaitGroup

	mu      sync.Mutex
	flights map[topic]*flight
	order   []topic
	flying  int
	// misses counts the searches in a row without an answer in time; until rest nobody asks.
	misses int
	rest   time.Time
	pause  time.Duration
}

// topic is what a search is about.
type topic struct {
	scope core.Scope
	words string
}

func topicOf(scope core.Scope, text string) topic {
	words := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	return topic{scope, words[:min(len(words), maxTopic)]}
}

// flight is one search of the remote.
type flight struct {
	began time.Time
	// since is the number of the first delivery that it may have missed.
	since uint64
	limit int
	done  chan struct{}
	// hits and err are set when done is closed. taken says that a search has had them, late that one went on without them; asker.mu guards those two.
	hits        []core.Hit
	err         error
	taken, late bool
}

// fits reports whether a flight answers a search of that limit now.
func (f *flight) fits(limit int, delivered uint64, now time.Time) bool {
	return f.limit >= limit && now.Sub(f.began) < keptFor && (!f.taken || f.since == delivered) && !f.failed()
}

func (f *flight) failed() bool {
	select {
	case <-f.done:
		return f.err != nil
	default:
		return false
	}
}

var errResting = errors.New("the remote did not answer lately")

// begin returns the search under way for a query, or starts one. delivered counts what the remote was given so far.
func (a *asker) begin(q core.SearchQuery, delivered uint64) (*flight, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	whole := core.Scope{Agent: q.Scope.Agent}
	for _, t := range []topic{topicOf(q.Scope, q.Text), topicOf(whole, q.Text)} {
		if f := a.flights[t]; f != nil && f.fits(q.Limit, delivered, now) {
			return f, nil
		}
	}
	if now.Before(a.rest) || a.flying >= maxFlights || a.ctx.Err() != nil {
		return nil, errResting
	}
	if a.misses >= missesToRest {
		a.rest = now.Add(a.pause) // one may try; the others wait for what comes of it
		a.pause = min(2*a.pause, lastRest)
	}
	f := &flight{began: now, since: delivered, limit: q.Limit, done: make(chan struct{})}
	a.keep(topicOf(q.Scope, q.Text), f)
	a.flying++
	q.Exclude, q.From, q.To = nil, time.Time{}, time.Time{}
	a.work.Go(func() { a.fly(f, q) })
	return f, nil
}

func (a *asker) keep(t topic, f *flight) {
	if a.flights[t] == nil {
		a.order = append(a.order, t)
	}
	a.flights[t] = f
	if len(a.order) > maxKept {
		delete(a.flights, a.order[0])
		a.order = a.order[1:]
	}
}

func (a *asker) fly(f *flight, q core.SearchQuery) {
	ctx, cancel := context.WithTimeout(a.ctx, searchTimeout)
	defer cancel()
	f.hits, f.err = a.search.Search(ctx, q)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flying--
	close(f.done)
	switch {
	case f.err == nil:
		a.misses, a.rest, a.pause = 0, time.Time{}, firstRest
	case !f.late && a.ctx.Err() == nil:
		a.missed()
	}
}

// missed counts a search without an answer in time. mu is held.
func (a *asker) missed() {
	if a.misses++; a.misses == missesToRest {
		a.rest, a.pause = a.now().Add(firstRest), 2*firstRest
	}
}

// await returns what a search found, or nil with its error, or errLate when it took longer than wait.
func (a *asker) await(ctx context.Context, f *flight, wait time.Duration) ([]core.Hit, error) {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-f.done:
	case <-limit.C:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-f.done:
		f.taken = f.err == nil
		return f.hits, f.err
	default:
	}
	if !f.late {
		f.late = true
		a.missed()
	}
	return nil, errLate
}

var errLate = errors.New("the remote has not answered yet")

// arrived reports whether an answer is there that a search before went on without.
func (a *asker) arrived(q core.SearchQuery) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range []topic{topicOf(q.Scope, q.Text), topicOf(core.Scope{Agent: q.Scope.Agent}, q.Text)} {
		f := a.flights[t]
		if f == nil || !f.late || f.taken {
			continue
		}
		select {
		case <-f.done:
			return f.err == nil && len(f.hits) > 0
		default:
		}
	}
	return false
}

// anticipate asks for what a user just said: the search of the turn that it begins will ask for the same.
func (s *Store) anticipate(entries []core.Entry) {
	if s.asks == nil || len(entries) == 0 {
		return
	}
	last := &entries[len(entries)-1]
	if last.Role != "user" || last.Type != core.TypeMessage {
		return // a turn that is over
	}
	text := strings.TrimSpace(last.Text())
	if text == "" {
		return
	}
	_, _ = s.asks.begin(core.SearchQuery{Scope: core.Scope{Agent: last.Agent}, Text: text, Limit: anticipated}, s.deliveredSoFar())
}
