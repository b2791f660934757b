package openbrain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/contextengine/contextengine/core"
)

const (
	// syncEvery is how often one source is looked at for what other servers stored.
	syncEvery = time.Second
	// syncWindow is how far other servers' clocks may be behind, in microseconds.
	syncWindow = 5_000_000
	// countAge is how long a count is trusted that only follows this server's own changes, or countShare times what it
	// took to count if that is longer.
	countAge   = 5 * time.Second
	countShare = 20
)

// source is what the server keeps in memory of a source. All of it can be had from the store again.
type source struct {
	name string

	// seq is the highest Seq that was given out or seen in the store; met says that the store was looked at for it.
	seq atomic.Int64
	met atomic.Bool
	// writes is held for reading from the moment a thought gets its Seq until it is stored and counted.
	writes           sync.RWMutex
	created, deleted atomic.Int64

	counting chan struct{} // held by whoever counts
	tally    tally

	syncing chan struct{} // held by whoever looks for news
	tail    tail

	marks marks
}

func newSource(name string) *source {
	return &source{name: name, counting: make(chan struct{}, 1), syncing: make(chan struct{}, 1)}
}

// next returns a Seq for a new thought: now, or behind what the source has.
func (s *source) next(now int64) int64 {
	for {
		last := s.seq.Load()
		next := max(now, last+1)
		if s.seq.CompareAndSwap(last, next) {
			return next
		}
	}
}

// meet looks for the newest thought in the store, so that next is behind it: the clock may have been set back since, or be another
// server's.
func (s *source) meet(ctx context.Context, store core.Store) error {
	newest, err := core.First(ctx, store, core.ScanQuery{Scope: s.scope(), Reverse: true})
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return err
	}
	for last := s.seq.Load(); newest.Seq > last && !s.seq.CompareAndSwap(last, newest.Seq); last = s.seq.Load() {
	}
	s.met.Store(true)
	return nil
}

func (s *source) scope() core.Scope { return core.Scope{Agent: s.name, Session: Session} }

// tally is a count of the thoughts that were there at some time, and where the counters stood then.
type tally struct {
	mu               sync.Mutex
	known            bool
	base             int64
	created, deleted int64
	at               time.Time
	took             time.Duration
}

// count returns how many thoughts the source has.
func (s *source) count(ctx context.Context, store core.Store, now func() time.Time, nextSeq func() int64) (int, error) {
	if n, ok := s.counted(now()); ok {
		return n, nil
	}
	select {
	case s.counting <- struct{}{}:
		defer func() { <-s.counting }()
	case <-ctx.Done():
		return 0, fmt.Errorf("openbrain: count: %w", ctx.Err())
	}
	if n, ok := s.counted(now()); ok { // by the one who was waited for
		return n, nil
	}
	for try := range 3 {
		began := now()
		if err := s.meet(ctx, store); err != nil {
			return 0, fmt.Errorf("openbrain: count: %w", err)
		}
		// Everything this server stored before is below end, everything after is counted by the counters.
		s.writes.Lock()
		end, created, deleted := s.next(nextSeq()), s.created.Load(), s.deleted.Load()
		s.writes.Unlock()
		n := int64(0)
		q := core.ScanQuery{Scope: s.scope(), Limit: core.MaxPage, ToSeq: end}
		for {
			page, err := store.Scan(ctx, q)
			if err != nil {
				return 0, fmt.Errorf("openbrain: count: %w", err)
			}
			for _, e := range page.Entries {
				if _, ok := thoughtOf(e); ok {
					n++
				}
			}
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		if s.deleted.Load() != deleted && try < 2 {
			continue // whether it was seen before it went is not known
		}
		s.tally.mu.Lock()
		s.tally.known, s.tally.base, s.tally.created, s.tally.deleted = true, n, created, deleted
		s.tally.at, s.tally.took = began, now().Sub(began)
		s.tally.mu.Unlock()
		break
	}
	n, _ := s.counted(s.tally.at)
	return n, nil
}

func (s *source) counted(now time.Time) (int, bool) {
	t := &s.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known || now.Sub(t.at) > max(countAge, countShare*t.took) {
		return 0, false
	}
	return int(max(0, t.base+s.created.Load()-t.created-(s.deleted.Load()-t.deleted))), true
}

// tail is what the observers were told of the newest thoughts.
type tail struct {
	mu   sync.Mutex
	on   bool
	last time.Time
	// seen is the highest Seq, ids hold the thoughts within the window below it.
	seen int64
	ids  map[string]int64
}

// note remembers that the observers know a thought.
func (t *tail) note(id string, seq int64) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.on {
		return false
	}
	_, known = t.ids[id]
	t.ids[id] = seq
	t.seen = max(t.seen, seq)
	if len(t.ids)%4096 == 0 {
		t.prune()
	}
	return known
}

func (t *tail) prune() {
	for id, seq := range t.ids {
		if seq < t.seen-syncWindow {
			delete(t.ids, id)
		}
	}
}

// due returns from which Seq on to look, when it is time to look.
func (t *tail) due(now time.Time) (from int64, first, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on && now.Sub(t.last) < syncEvery {
		return 0, false, false
	}
	return t.seen - syncWindow, !t.on, true
}

func (t *tail) begin(seen int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.seen, t.last, t.ids = true, seen, now, map[string]int64{}
}

func (t *tail) done(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = now
	t.prune()
}

// sync finds thoughts that other servers stored in the source since the last time and hands them to tell. The first time only marks the
// place: whoever is told reads what was before from the store.
func (s *source) sync(ctx context.Context, store core.Store, now time.Time, tell func([]core.Entry)) error {
	select {
	case s.syncing <- struct{}{}:
		defer func() { <-s.syncing }()
	case <-ctx.Done():
		return fmt.Errorf("openbrain: look for news: %w", ctx.Err())
	}
	from, first, ok := s.tail.due(now)
	if !ok {
		return nil
	}
	if first {
		newest, err := core.First(ctx, store, core.ScanQuery{Scope: s.scope(), Reverse: true})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return fmt.Errorf("openbrain: look for news: %w", err)
		}
		s.tail.begin(newest.Seq, now)
		from = newest.Seq - syncWindow
	}
	q := core.ScanQuery{Scope: s.scope(), FromSeq: max(from, 0), Limit: core.MaxPage}
	for {
		page, err := store.Scan(ctx, q)
		if err != nil {
			return fmt.Errorf("openbrain: look for news: %w", err)
		}
		var fresh []core.Entry
		for _, e := range page.Entries {
			if known := s.tail.note(e.ID, e.Seq); !known && !first {
				fresh = append(fresh, e)
			}
		}
		if len(fresh) > 0 {
			tell(fresh)
		}
		if page.Next == "" {
			s.tail.done(now)
			return nil
		}
		q.Cursor = page.Next
	}
}
