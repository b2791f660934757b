package outbox

import (
	"context"
	"errors"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. It is accepted at every bound of the backlog.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := s.enter(ctx, "update"); err != nil {
		return err
	}
	defer s.leave()
	if err := scope.Check("outbox: update"); err != nil {
		return err
	}
	session, err := s.acquireOwner(ctx, scope, id)
	if errors.Is(err, core.ErrNotFound) && !s.complete(scope) {
		if err = s.copyFor(ctx, scope); err == nil {
			session, err = s.acquireOwner(ctx, scope, id)
		}
	}
	if err != nil {
		return failed("update", id, err)
	}
	defer s.nudge()
	defer s.release()
	touched := s.touches(1, func(int) touch { return touch{session, opUpdate, id, 0} })
	err = s.change(touched, func() (func(string) bool, error) { return nil, s.local.Update(ctx, scope, id, change) })
	if change.Type == core.TypeErased {
		s.holdBack(session)
	}
	if err != nil {
		return failed("update", id, err)
	}
	return nil
}

// Delete implements core.Store; the count is the local store's. Ids that it does not hold are passed on all the same: the
// remote may hold them. It is accepted at every bound of the backlog.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := s.enter(ctx, "delete"); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := scope.Check("outbox: delete"); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if err := s.acquire(ctx); err != nil {
		return 0, failed("delete", "", err)
	}
	defer s.nudge()
	defer s.release()
	owners, err := s.owners(ctx, scope, ids)
	if err != nil {
		return 0, failed("delete", "", err)
	}
	touched := s.touches(len(ids), func(i int) touch { return touch{owners[i], opDelete, ids[i], 0} })
	n := 0
	err = s.change(touched, func() (_ func(string) bool, err error) {
		n, err = s.local.Delete(ctx, scope, ids)
		return nil, err
	})
	s.forgetThese(ids)
	for _, id := range owners {
		s.holdBack(id)
	}
	if err != nil {
		return n, failed("delete", "", err)
	}
	return n, nil
}

// acquireOwner is acquire for a change of one entry, and returns its session. Nothing is held when it fails.
func (s *Store) acquireOwner(ctx context.Context, scope core.Scope, id string) (core.SessionID, error) {
	if err := s.acquire(ctx); err != nil {
		return core.SessionID{}, err
	}
	session, err := s.owner(ctx, scope, id)
	if err != nil {
		s.release()
	}
	return session, err
}

// owner returns the session of a stored entry.
func (s *Store) owner(ctx context.Context, scope core.Scope, id string) (core.SessionID, error) {
	found, err := s.local.Get(ctx, scope, []string{id})
	if err != nil {
		return core.SessionID{}, err
	}
	return found[0].SessionID(), nil
}

// owners returns the sessions of entries; that of one which is not there, or cannot be read, is the scope.
func (s *Store) owners(ctx context.Context, scope core.Scope, ids []string) ([]core.SessionID, error) {
	out := make([]core.SessionID, len(ids))
	if found, err := s.local.Get(ctx, scope, ids); err == nil {
		for i := range found {
			out[i] = found[i].SessionID()
		}
		return out, nil
	}
	for i, id := range ids {
		owner, err := s.owner(ctx, scope, id)
		if ended := ctx.Err(); ended != nil {
			return nil, ended
		}
		if errors.Is(err, core.ErrClosed) {
			return nil, err
		}
		if err != nil {
			owner = core.SessionID(scope)
		}
		out[i] = owner
	}
	return out, nil
}

// Requeue queues every entry of a scope for delivery, whether it was delivered before or not, and returns how many those are. It is for what the
// outbox cannot know: entries that were in the local store before there was an outbox, or were written past it, or were
// named by damaged records of the journal. What the remote has is not stored again; erased entries are erased again; other changes and
// deletes that the journal lost must be repeated. At a bound of the backlog it stops with ErrFull.
func (s *Store) Requeue(ctx context.Context, scope core.Scope) (int, error) {
	if err := s.enter(ctx, "requeue"); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := scope.Check("outbox: requeue"); err != nil {
		return 0, err
	}
	n := 0
	q := core.ScanQuery{Scope: scope, Limit: core.MaxPage}
	for {
		page, err := s.local.Scan(ctx, q)
		if err != nil {
			return n, failed("requeue", "", err)
		}
		if err := s.requeue(ctx, page.Entries); err != nil {
			return n, failed("requeue", "", err)
		}
		n += len(page.Entries)
		if page.Next == "" {
			return n, nil
		}
		q.Cursor = page.Next
	}
}

func (s *Store) requeue(ctx context.Context, entries []core.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	bytes := int64(0)
	for i := range entries {
		bytes += size(&entries[i])
	}
	if err := s.acquireRoom(ctx, len(entries), bytes); err != nil {
		return err
	}
	defer s.nudge()
	defer s.release()
	touched := s.touches(len(entries), func(i int) touch {
		e := &entries[i]
		if e.Type == core.TypeErased {
			// The remote may still have what it said.
			return touch{e.SessionID(), opUpdate, e.ID, size(e)}
		}
		return touch{e.SessionID(), opAppend, e.ID, size(e)}
	})
	return s.change(touched, func() (func(string) bool, error) { return nil, nil })
}
