package outbox

import (
	"context"
	"errors"

	"github.com/contextengine/contextengine/core"
)

// finish sorts out how a delivery ended. A change that was refused often enough is set aside.
func (p *parcel) finish(ctx context.Context, items []item, err error) {
	if err == nil {
		for _, it := range items {
			p.done = append(p.done, it.seq)
		}
		return
	}
	p.err, p.refused = err, permanent(err)
	if !p.refused || len(items) > 1 {
		return
	}
	attempts := p.s.refusedAgain(p.session, items[0].seq)
	if attempts < p.s.cfg.MaxAttempts {
		return
	}
	// A remote that is not well, or not the right one, may refuse anything.
	if pinger, ok := core.As[core.Pinger](p.s.far); ok {
		if perr := pinger.Ping(ctx); perr != nil {
			p.err, p.refused = errors.Join(err, perr), false
			return
		}
	}
	p.dead = append(p.dead, refusal{items[0].seq, attempts, reasonOf(err), scrub(err, p.sent)})
	p.err, p.refused = nil, false
	p.s.log.WarnContext(ctx, "outbox sets a change aside that the remote refuses", "session", p.session.String(), "id", items[0].id,
		"op", items[0].op.String(), "attempts", attempts, "err", scrub(err, p.sent))
}

// refusedAgain counts the refusals of a change.
func (s *Store) refusedAgain(id core.SessionID, seq uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.q.lanes[id]
	if l == nil {
		return 0
	}
	if l.tries == nil {
		l.tries = map[uint64]int{}
	}
	l.tries[seq]++
	return l.tries[seq]
}
