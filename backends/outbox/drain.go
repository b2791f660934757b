package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Drain implements upkeep.Drainer: it tries everything at once that waits for its next try, and goes on until nothing waits of what did when it was called,
// or ctx ends. What comes later is not waited for: others may never stop writing. Changes that were set aside count as left, but are not tried: see Retry.
func (s *Store) Drain(ctx context.Context) (left int, err error) {
	if err := s.enter(ctx, "drain"); err != nil {
		return s.left(), err
	}
	defer s.leave()
	if err := s.refresh(ctx); err != nil {
		return s.left(), failed("drain", "", err)
	}
	return s.drain(ctx, s.closing)
}

// left is how many changes wait or were set aside, as far as this process knows.
func (s *Store) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.before(s.q.next) + s.q.deadBefore(s.q.next)
}

// drain gives up early when the channel is closed.
func (s *Store) drain(ctx context.Context, closing <-chan struct{}) (int, error) {
	s.mu.Lock()
	end := s.q.next
	s.next = time.Time{}
	for _, l := range s.q.lanes {
		l.next = time.Time{}
	}
	s.mu.Unlock()
	s.nudge()
	for {
		s.mu.Lock()
		waiting, dead, last, news, leads := s.q.before(end), s.q.deadBefore(end), s.last.err, s.news, s.leads
		s.mu.Unlock()
		switch {
		case waiting == 0 && dead == 0:
			return 0, nil
		case waiting == 0:
			return dead, failed("drain", "", errSetAside)
		}
		switch err := s.await(ctx, closing, news, leads); {
		case err == nil:
		case ctx.Err() != nil:
			return waiting + dead, failed("drain", "", errors.Join(ctx.Err(), last))
		default:
			return waiting + dead, failed("drain", "", err)
		}
	}
}

// await returns when the queue has changed, and now and then where another process delivers: then it has taken up what that one wrote.
func (s *Store) await(ctx context.Context, closing, news <-chan struct{}, leads bool) error {
	again := time.NewTimer(s.cfg.Poll)
	defer again.Stop()
	select {
	case <-news:
	case <-again.C:
		if !leads {
			return s.refresh(ctx)
		}
	case <-closing:
		return core.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// errSetAside is why a drained outbox still has changes.
var errSetAside = errors.New("the remote refuses what is left: see DeadLetters and Retry")
