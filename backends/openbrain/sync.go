package openbrain

import (
	"context"
	"errors"
	"slices"
)

// newsLimit is how many of the newest thoughts are looked at before an append, and to find an entry whose request was cut off.
const newsLimit = 20

// load makes the index match the server by listing all of the agent's thoughts. A server that does not show all of
// them leaves the index partial: what it does not show cannot be recognised.
func (s *Store) load(ctx context.Context, op string, g *agent) (census, error) {
	c, err := s.take(ctx, op, g.name)
	if _, ok := errors.AsType[*partial](err); ok {
		g.set(c, true)
		return c, nil
	}
	if err != nil {
		g.forget()
		return census{}, err
	}
	g.set(c, false)
	return c, nil
}

// listed is load for those who need what there is, and not the index: where the server says what changed that costs what changed, and an index that is there stays.
func (s *Store) listed(ctx context.Context, op string, g *agent) (census, error) {
	if g.loaded && !g.partial && s.client.can.follow() {
		c, err := s.take(ctx, op, g.name)
		if _, ok := errors.AsType[*partial](err); !ok {
			return c, err
		}
	}
	return s.load(ctx, op, g)
}

// catchUp brings the index up to date with what others wrote, by a look at the newest thoughts. It reports whether it
// listed everything instead.
func (s *Store) catchUp(ctx context.Context, op string, g *agent) (bool, error) {
	if !g.loaded {
		_, err := s.load(ctx, op, g)
		return true, err
	}
	if s.cfg.Exclusive {
		return false, nil
	}
	_, reached, err := s.fresh(ctx, op, g, 0)
	if err != nil && !lacks(err) {
		return false, err
	}
	if reached {
		return false, nil
	}
	_, err = s.load(ctx, op, g)
	return true, err
}

// recent asks for an agent's newest thoughts.
func (s *Store) recent(op, agent string) pageQuery {
	return pageQuery{op: op, path: pathRecent, source: s.cfg.source(agent)}
}

// news asks for the newest thoughts of a source, as many as newsLimit or as the server will give, times more, and says how many
// that is. A server may show those of others with them.
func (s *Store) news(ctx context.Context, q pageQuery, more int) (listing, int, error) {
	q.limit = newsLimit
	if n := int(s.newsLimit.Load()); n > 0 {
		q.limit = n
	}
	q.limit *= more
	for {
		page, err := s.client.thoughtsAt(ctx, q)
		if !tooMuch(err) || q.limit == 1 || more > 1 {
			return page, q.limit, err
		}
		q.limit = (q.limit + 1) / 2
		s.newsLimit.Store(int64(q.limit))
	}
}

// merge takes the newest thoughts into the index. It returns false when they do not reach back to what is known.
func (s *Store) merge(g *agent, newest []thought, limit int) bool {
	n := len(newest)
	if n >= min(limit, surelyWhole) && !g.thoughts[newest[n-1].ID] {
		return false
	}
	var fresh []record
	for _, t := range newest {
		if g.thoughts[t.ID] {
			continue
		}
		g.thoughts[t.ID] = true // those of others too: they mark how far the look reached
		if r, ok := s.cfg.record(t, g.name); ok {
			fresh = append(fresh, r)
			g.ended[r.batch.ID] = g.ended[r.batch.ID] || r.batch.End
		}
	}
	if len(fresh) == 0 {
		return true
	}
	// What is new may end batches of which a part was seen before.
	all := append(fresh, g.hidden...)
	slices.SortFunc(all, record.earlier)
	g.hidden = nil
	for _, r := range all {
		if r.batch.ID != "" && !g.ended[r.batch.ID] {
			g.hidden = append(g.hidden, r)
			continue
		}
		if g.add(r) {
			s.ids.put(r.entry.ID, r.thought)
		}
	}
	return true
}

// locate looks once for an entry among the newest thoughts, where it is if it was stored a moment ago.
func (s *Store) locate(ctx context.Context, op string, want record) (thought, bool, error) {
	q := s.recent(op, want.entry.Agent)
	q.single = true
	page, _, err := s.news(ctx, q, 1)
	if lacks(err) {
		q.path = pathThoughts
		page, _, err = s.news(ctx, q, 1)
	}
	if err != nil {
		return thought{}, false, err
	}
	for _, t := range page.thoughts {
		if s.cfg.holds(t, want) {
			return t, true, nil
		}
	}
	return thought{}, false, nil
}
