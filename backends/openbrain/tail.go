package openbrain

import (
	"context"
	"errors"
	"strconv"

	"github.com/contextengine/contextengine/core"
)

// headerChanges is in what servers of this project answer about the newest thoughts of one source: a number that is another one after a thought of that source was
// changed or deleted.
const headerChanges = "OpenBrain-Changes"

// Tail implements core.Tailer where the server counts changes and deletions, as that of this project does: one look at the newest thoughts. Tail.View is the count
// of the agent's. On other servers it is errors.ErrUnsupported, which the first call finds out: what others store there is seen by the next append, what they erase
// when a session is read anew. So it is with Config.Exclusive, and in a store that keeps the text alone, which is not what sessions are read from.
func (s *Store) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if err := s.readyFor(ctx, "tail", id.Scope()); err != nil {
		return core.Tail{}, err
	}
	if s.cfg.Keep == KeepText || s.cfg.Exclusive || s.client.can.noChanges.Load() {
		return core.Tail{}, failed("tail", "", errors.ErrUnsupported)
	}
	g, err := s.agents.acquire(ctx, id.Agent)
	if err != nil {
		return core.Tail{}, failed("tail", "", err)
	}
	defer s.agents.release(g)
	_, reached, err := s.fresh(ctx, "tail", g, 0)
	if err != nil && !lacks(err) {
		return core.Tail{}, failed("tail", "", err)
	}
	view, bad := strconv.ParseUint(g.count, 10, 64)
	if err != nil || bad != nil {
		s.client.can.noChanges.Store(true)
		return core.Tail{}, failed("tail", "", errors.ErrUnsupported)
	}
	if !reached || g.stale { // what is gone may have been the newest
		if _, err := s.load(ctx, "tail", g); err != nil {
			return core.Tail{}, failed("tail", "", err)
		}
	}
	return core.Tail{View: view, Next: g.next[id.Session]}, nil
}
