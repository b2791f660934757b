package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

const (
	// singleGets is the number of entries that Get asks for one by one in any case.
	singleGets = 32
	// listedPerGet is how many thoughts of a listing cost as much as one request. More entries than that allows are taken from one
	// listing.
	listedPerGet = 50
)

// Get implements core.Store. A few entries whose place on the server is known are asked for one by one; otherwise the
// agent's thoughts are listed.
func (s *Store) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	if err := s.readyFor(ctx, "get", scope); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found := map[string]core.Entry{}
	if len(ids) <= max(singleGets, s.sizes.get(scope.Agent)/listedPerGet) {
		ok, err := s.getSome(ctx, scope, ids, found)
		if err != nil {
			return nil, err
		}
		if ok {
			return collect(scope, ids, found, nil)
		}
		clear(found)
	}
	c, err := s.take(ctx, "get", scope.Agent)
	var p *partial
	if err != nil && !errors.As(err, &p) {
		return nil, failed("get", ids[0], err)
	}
	for _, r := range c.visible {
		found[r.entry.ID] = r.entry
	}
	return collect(scope, ids, found, err)
}

// collect puts what was found in the order asked for. unseen, when it is not nil, is why not being found proves nothing.
func collect(scope core.Scope, ids []string, found map[string]core.Entry, unseen error) ([]core.Entry, error) {
	out := make([]core.Entry, 0, len(ids))
	for _, id := range ids {
		e, ok := found[id]
		switch {
		case ok && scope.Contains(e.SessionID()):
			out = append(out, e.Clone())
		case !ok && unseen != nil:
			return nil, failed("get", id, fmt.Errorf("%w: %w", core.ErrNotFound, unseen))
		default:
			return nil, failed("get", id, core.ErrNotFound)
		}
	}
	return out, nil
}

// getSome asks for entries one by one. It returns false when one of them cannot be had so.
func (s *Store) getSome(ctx context.Context, scope core.Scope, ids []string, found map[string]core.Entry) (bool, error) {
	thoughts := make([]string, len(ids))
	for i, id := range ids {
		var ok bool
		if thoughts[i], ok = s.ids.get(id); !ok {
			return false, nil
		}
	}
	for i, id := range ids {
		if _, again := found[id]; again {
			continue
		}
		t, ok, err := s.fetch(ctx, "get", thoughts[i])
		if err != nil {
			return false, failed("get", id, err)
		}
		r, ours := s.cfg.record(t, scope.Agent)
		if !ok || !ours || r.entry.ID != id {
			return false, nil
		}
		found[id] = r.entry
	}
	return true, nil
}

// fetch reads one thought. ok is false when the server does not have it, or does not have the call.
func (s *Store) fetch(ctx context.Context, op, id string) (t thought, ok bool, err error) {
	if s.client.can.noGet.Load() {
		return thought{}, false, nil
	}
	body, err := s.client.do(ctx, op, call{method: http.MethodGet, path: thoughtPath(id), one: true, wantJSON: true})
	if lacks(err) && (s.client.can.noList.Load() || !isStatus(err, http.StatusNotFound)) {
		// Not found may be the thought or the call; a server that cannot list has the documented calls alone.
		s.client.can.noGet.Store(true)
	}
	if lacks(err) || isStatus(err, http.StatusUnprocessableEntity) {
		return thought{}, false, nil
	}
	if err != nil {
		return thought{}, false, err
	}
	if t, ok = decodeOne(body); !ok {
		return thought{}, false, &failure{what: fmt.Sprintf("answer to %s is %v", "GET "+pathThoughts+"/{id}", errShape), kind: core.ErrUnavailable}
	}
	return t, t.ID == id, nil
}
