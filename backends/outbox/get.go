package outbox

import (
	"context"
	"errors"

	"github.com/contextengine/contextengine/core"
)

// Get implements core.Store: the local store answers. With Config.Hydrate, what the remote has is copied first if need be.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := s.enter(ctx, "get"); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := scope.Check("outbox: get"); err != nil {
		return nil, err
	}
	found, err := s.local.Get(ctx, scope, ids)
	if errors.Is(err, core.ErrNotFound) && !s.complete(scope) {
		if err = s.copyFor(ctx, scope); err == nil {
			found, err = s.local.Get(ctx, scope, ids)
		}
	}
	if errors.Is(err, core.ErrNotFound) && s.textOnly {
		found, err = s.withBelieved(ctx, scope, ids)
	}
	if err != nil {
		return nil, failed("get", "", err)
	}
	return found, nil
}

// maxBelieved is how many entries that only the remote has are kept for those who ask for them by id.
const maxBelieved = 1000

// believe keeps what a search found in the remote alone.
func (s *Store) believe(e core.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.believed == nil || len(s.believed) >= maxBelieved {
		s.believed = map[string]core.Entry{}
	}
	s.believed[e.ID] = e
}

// withBelieved is Get with what searches found in the remote alone.
func (s *Store) withBelieved(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	out := make([]core.Entry, 0, len(ids))
	for _, id := range ids {
		found, err := s.local.Get(ctx, scope, []string{id})
		if err == nil {
			out = append(out, found...)
			continue
		}
		s.mu.Lock()
		e, ok := s.believed[id]
		s.mu.Unlock()
		if !errors.Is(err, core.ErrNotFound) || !ok || !scope.Contains(e.SessionID()) {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Scan implements core.Store: the local store answers, and its cursors are used. With Config.Hydrate, what the remote has of the
// scope is copied before the first page; core.ErrUnavailable means that it cannot be.
func (s *Store) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	if err := s.enter(ctx, "scan"); err != nil {
		return core.Page{}, err
	}
	defer s.leave()
	if err := q.Scope.Check("outbox: scan"); err != nil {
		return core.Page{}, err
	}
	if q.Cursor == "" {
		if err := s.copyFor(ctx, q.Scope); err != nil {
			return core.Page{}, failed("scan", "", err)
		}
	}
	page, err := s.local.Scan(ctx, q)
	if err != nil {
		return core.Page{}, failed("scan", "", err)
	}
	return page, nil
}
