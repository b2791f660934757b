package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/contextengine/contextengine/core"
)

// Drain implements core.Drainer: it tries everything at once that waits for its next try, and goes on until nothing waits
// or ctx ends. Changes that were set aside count as left, but are not tried: see Retry.
func (s *Store) Drain(ctx context.Context) (left int, err error) {
	if err := s.enter(ctx, "drain"); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := s.refresh(ctx); err != nil {
		return 0, failed("drain", "", err)
	}
	return s.drain(ctx, s.closing)
}

// drain gives up early when the channel is closed.
func (s *Store) drain(ctx context.Context, closing <-chan struct{}) (int, error) {
	s.mu.Lock()
	s.next = time.Time{}
	for _, l := range s.q.lanes {
		l.next = time.Time{}
	}
	s.mu.Unlock()
	s.nudge()
	for {
		s.mu.Lock()
		waiting, dead, last, news, leads := s.q.waiting, len(s.q.dead), s.last.err, s.news, s.leads
		s.mu.Unlock()
		switch {
		case waiting == 0 && dead == 0:
			return 0, nil
		case waiting == 0:
			return dead, failed("drain", "", errSetAside)
		}
		again := time.NewTimer(s.cfg.Poll)
		select {
		case <-news:
		case <-again.C:
			if !leads {
				if err := s.refresh(ctx); err != nil {
					again.Stop()
					return waiting + dead, failed("drain", "", err)
				}
			}
		case <-closing:
			again.Stop()
			return waiting + dead, failed("drain", "", core.ErrClosed)
		case <-ctx.Done():
			again.Stop()
			return waiting + dead, failed("drain", "", errors.Join(ctx.Err(), last))
		}
		again.Stop()
	}
}

// errSetAside is why a drained outbox still has changes.
var errSetAside = errors.New("the remote refuses what is left: see DeadLetters and Retry")
