package outbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// deliver is the goroutine that delivers, if this process has the lease, and copies history. It ends with ctx.
func (s *Store) deliver(ctx context.Context) {
	defer close(s.stopped)
	for ctx.Err() == nil {
		wait := s.cfg.Poll
		if s.lead(ctx) {
			s.lookAround(ctx)
			l, due := s.pick()
			if l != nil {
				s.try(ctx, l)
				continue
			}
			if s.hydrate(ctx) {
				continue
			}
			if due >= 0 {
				wait = min(wait, due)
			}
		}
		if !s.rest(ctx, wait) {
			return
		}
	}
}

// rest waits until there may be something to do.
func (s *Store) rest(ctx context.Context, d time.Duration) bool {
	again := time.NewTimer(d)
	defer again.Stop()
	select {
	case <-s.wake:
		return true
	case <-again.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lead takes the lease unless another process has it, and reports whether this one has it.
func (s *Store) lead(ctx context.Context) bool {
	s.mu.Lock()
	leads := s.leads
	s.mu.Unlock()
	if leads {
		return true
	}
	if s.j != nil {
		if err := files.TryLock(s.j.lease.f); err != nil {
			if !errors.Is(err, files.ErrLocked) {
				s.log.WarnContext(ctx, "outbox lease cannot be taken", "file", s.j.lease.path, "err", err)
			}
			return false
		}
	}
	s.mu.Lock()
	s.leads = true
	s.mu.Unlock()
	return true
}

// lookAround takes up what other processes wrote.
func (s *Store) lookAround(ctx context.Context) {
	if s.j == nil || !s.mayHaveGrown() {
		return
	}
	if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
		s.mu.Lock()
		s.failedWith(err, nil)
		s.mu.Unlock()
		s.log.WarnContext(ctx, "outbox journal cannot be read", "file", s.j.path, "err", err)
		s.rest(ctx, s.cfg.MinBackoff)
	}
}

func (s *Store) mayHaveGrown() bool {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return s.j.grown()
	default:
		return false // somebody is about to read it, and wakes the delivery
	}
}

// pick returns the session to deliver for now, or how long it is until there will be one.
func (s *Store) pick() (*lane, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if left := s.next.Sub(now); left > 0 {
		if s.q.waiting == 0 {
			return nil, -1
		}
		return nil, left
	}
	return s.q.due(now)
}

// try delivers one batch of a session and writes down what came of it.
func (s *Store) try(ctx context.Context, l *lane) {
	s.mu.Lock()
	items := batchOf(l, s.cfg)
	s.mu.Unlock()
	if len(items) == 0 {
		return
	}
	tryCtx, cancel := context.WithTimeout(ctx, s.cfg.AttemptTimeout)
	p := &parcel{s: s, session: l.session, items: items}
	p.send(tryCtx)
	cancel()
	if ctx.Err() != nil && p.err != nil {
		p.err = nil // not the remote's failure
		if len(p.done) == 0 {
			return
		}
	}
	s.settle(ctx, p)
}

// batchOf returns what to deliver next of a lane: changes of one kind, as many as fit.
func batchOf(l *lane, cfg Config) []item {
	limit := cfg.BatchEntries
	if l.hold > 0 {
		limit = min(limit, l.hold)
	}
	var out []item
	bytes := int64(0)
	for _, it := range l.items {
		if len(out) > 0 && (len(out) == limit || it.op != out[0].op || it.op == opUpdate || bytes+it.size > cfg.BatchBytes) {
			break
		}
		out = append(out, it)
		bytes += it.size
	}
	return out
}

// settle takes the outcome of a try into journal and queue, and decides when to try again.
func (s *Store) settle(ctx context.Context, p *parcel) {
	records := p.records(s.now().UnixMilli())
	err := p.err
	if len(records) > 0 {
		// What was delivered is written down even when the store is about to close. It would be delivered once more otherwise, to no
		// harm.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		if werr := s.record(ctx, records); werr != nil {
			s.log.WarnContext(ctx, "outbox cannot write down what was delivered", "err", werr)
			err = werr
		}
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
	l := s.q.lanes[p.session]
	if l == nil {
		l = &lane{}
	}
	if err == nil {
		if s.fails > 0 {
			s.log.InfoContext(ctx, "outbox delivers again", "waiting", s.q.waiting)
		}
		l.fails, l.next, l.hold = 0, time.Time{}, 0
		s.fails, s.next = 0, time.Time{}
		return
	}
	l.fails++
	l.hold = p.hold()
	l.next = time.Now().Add(max(s.backoff(l.fails), askedWait(err)))
	if len(p.done)+len(p.dead) > 0 {
		s.fails = 0
	}
	if !p.refused {
		// Everybody's next try waits too, but as the failures in a row are counted over all sessions, one that fails for itself alone
		// holds up the others for a moment only.
		s.fails++
		s.next = time.Now().Add(max(s.backoff(s.fails), askedWait(err)))
	}
	s.failedWith(err, p.sent)
	s.log.WarnContext(ctx, "outbox cannot deliver", "session", p.session.String(), "waiting", s.q.waiting, "tries", l.fails, "err", s.last.text)
}

// maxErased is how many deleted entries are remembered.
const maxErased = 10_000

// forgetThese remembers that entries were deleted: a search of the remote that is under way may bring them still.
func (s *Store) forgetThese(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.erased == nil || len(s.erased) > maxErased {
		s.erased = map[string]bool{}
	}
	for _, id := range ids {
		s.erased[id] = true
		delete(s.believed, id)
	}
}

func (s *Store) isErased(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.erased[id]
}

func (s *Store) deliveredSoFar() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.sent
}

// record writes records and takes them into the queue. Now and then it writes the journal anew.
func (s *Store) record(ctx context.Context, records []record) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	if err := s.j.write(records...); err != nil {
		return err
	}
	s.note(records...)
	s.mu.Lock()
	var anew []record
	if s.j.crowded(s.q) {
		anew = s.q.records()
	}
	s.mu.Unlock()
	if anew != nil {
		if err := s.j.replace(anew); err != nil {
			s.log.WarnContext(ctx, "outbox journal cannot be written anew", "file", s.j.path, "err", err)
		}
	}
	return nil
}

// failedWith remembers the last failure. mu is held.
func (s *Store) failedWith(err error, about []core.Entry) {
	s.last = failure{err: err, text: scrub(err, about), at: s.now()}
}

// backoff returns how long to wait after so many failures in a row: twice as long each time, with chance in half of it.
func (s *Store) backoff(fails int) time.Duration {
	d := s.cfg.MaxBackoff
	if n := fails - 1; n < 40 && s.cfg.MinBackoff<<n < d && s.cfg.MinBackoff<<n > 0 {
		d = s.cfg.MinBackoff << n
	}
	return d/2 + rand.N(d/2+1)
}
