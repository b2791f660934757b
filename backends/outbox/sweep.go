package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/contextengine/contextengine/core"
)

const (
	// sweepFrom is how many changes of a session must wait before it is looked whether all of it was erased.
	sweepFrom = 4
	// holdErasures is how long an erasure waits for those that follow it: what erases a session does so entry by entry. Drain does not wait.
	holdErasures = 2 * time.Second
)

// holdBack delays the delivery of a session's erasures, where the remote can erase it as a whole.
func (s *Store) holdBack(id core.SessionID) {
	if _, ok := s.eraser(); !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.q.lanes[id]; l != nil {
		l.next = time.Now().Add(holdErasures)
	}
}

// eraser returns the remote's way to erase a session, where it may be used: a remote that keeps erased entries as places must be told each.
func (s *Store) eraser() (core.SessionEraser, bool) {
	if !s.textOnly {
		return nil, false
	}
	return core.As[core.SessionEraser](s.far)
}

// sweep reports whether the erasure of an entry is done with, because its session was erased in the remote as a whole; it does that when the
// local store has nothing of it any more. Entries that the remote has under their own ids were written before it knew sessions, and are not among them.
func (p *parcel) sweep(ctx context.Context, it item) (bool, error) {
	eraser, ok := p.s.eraser()
	if !ok || p.session.Session == "" {
		return false, nil
	}
	p.s.mu.Lock()
	l := p.s.q.lanes[p.session]
	last, waiting, swept, aliased := it.seq, 0, p.s.swept[p.session], p.s.q.remoteID(it.id) != it.id
	if l != nil {
		last, waiting = l.items[len(l.items)-1].seq, len(l.items)
	}
	p.s.mu.Unlock()
	if it.seq < swept {
		return aliased, nil
	}
	if waiting < sweepFrom {
		return false, nil
	}
	gone, err := p.nothingLeft(ctx)
	if err != nil || !gone {
		return false, err
	}
	if err := eraser.EraseSession(ctx, p.session); err != nil {
		return false, err
	}
	p.s.mu.Lock()
	if p.s.swept == nil {
		p.s.swept = map[core.SessionID]uint64{}
	}
	p.s.swept[p.session] = last + 1
	p.s.mu.Unlock()
	return aliased, nil
}

// nothingLeft reports whether the local store has nothing of the session but the places of what was erased.
func (p *parcel) nothingLeft(ctx context.Context) (bool, error) {
	q := core.ScanQuery{Scope: p.scope(), Limit: core.MaxPage}
	for {
		page, err := p.s.local.Scan(ctx, q)
		if errors.Is(err, core.ErrNotFound) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("local store: %w", passing(err))
		}
		for i := range page.Entries {
			if page.Entries[i].Type != core.TypeErased {
				return false, nil
			}
		}
		if page.Next == "" {
			return true, nil
		}
		q.Cursor = page.Next
	}
}
