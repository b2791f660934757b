package openbrain

import (
	"context"
	"net/http"
	"slices"

	"github.com/contextengine/contextengine/core"
)

const (
	// reach is how many times more than newsLimit of the newest thoughts are looked at.
	reach = 16
	// farther is by how much a look goes on that did not reach back to what is known.
	farther = 4
)

// fresh looks at the newest thoughts, and takes them into a loaded index. It returns those that it saw, which are at least as many as asked for; reached says
// whether they reach back to what is known. Listing it all costs more than to look a little farther.
func (s *Store) fresh(ctx context.Context, op string, g *agent, least int) (newest []thought, reached bool, err error) {
	q := s.recent(op, g.name)
	q.answered = func(h http.Header) {
		g.saw(h)
		s.client.can.heard(h)
	}
	for more := 1; ; more *= farther {
		page, limit, err := s.news(ctx, q, more)
		if more > 1 && tooMuch(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		n := len(page.thoughts)
		reached = reached || g.loaded && s.merge(g, page.thoughts, limit)
		if reached && n >= least {
			return page.thoughts, true, nil
		}
		if !g.loaded || more >= reach || n < limit || s.client.can.follow() {
			return page.thoughts, reached, nil
		}
	}
}

// near answers a scan of a session from the newest thoughts, where the index says which entries it is about and all of them are among those. ok is false when it takes a
// listing.
func (s *Store) near(ctx context.Context, q core.ScanQuery) (records []record, ok bool, err error) {
	if q.Scope.Session == "" || s.cfg.Keep == KeepText || s.cfg.Exclusive || s.client.can.noChanges.Load() {
		return nil, false, nil
	}
	g, err := s.agents.acquire(ctx, q.Scope.Agent)
	if err != nil {
		return nil, false, err
	}
	defer s.agents.release(g)
	far := int64(reach * newsLimit)
	if s.client.can.follow() {
		far = newsLimit // what changed is less than that
	}
	if !g.loaded || g.partial || g.tied || g.count == "" || g.next[q.Scope.Session]-q.FromSeq > far {
		return nil, false, nil
	}
	newest, reached, err := s.fresh(ctx, "scan", g, int(min(max(g.next[q.Scope.Session]-q.FromSeq, 0), reach*newsLimit)))
	if err != nil || !reached || g.tied || g.count == "" {
		if lacks(err) {
			err = nil
		}
		return nil, false, err
	}
	wanted := map[string]bool{}
	for seq := q.FromSeq; seq < g.next[q.Scope.Session] && (q.ToSeq <= 0 || seq < q.ToSeq); seq++ {
		if id, there := g.taken[position{q.Scope.Session, seq}]; there {
			wanted[id] = true
		}
	}
	for _, t := range newest {
		r, ours := s.cfg.record(t, q.Scope.Agent)
		if first, _ := s.ids.get(r.entry.ID); !ours || !wanted[r.entry.ID] || first != r.thought {
			continue
		}
		delete(wanted, r.entry.ID)
		records = append(records, r)
	}
	if len(wanted) > 0 {
		return nil, false, nil // it was deleted, or is farther back
	}
	slices.SortFunc(records, record.compare)
	return selected(records, q), true, nil
}

// scanned returns the records that a query asks for, in its order.
func (s *Store) scanned(ctx context.Context, q core.ScanQuery) ([]record, error) {
	records, ok, err := s.near(ctx, q)
	if ok || err != nil {
		return records, err
	}
	visible, whole, err := s.readable(ctx, q.Scope.Agent)
	if err != nil {
		return nil, err
	}
	records = selected(visible, q)
	if !whole {
		records = withPlaces(records, visible, q)
	}
	return records, nil
}
