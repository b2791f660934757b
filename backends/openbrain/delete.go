package openbrain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/contextengine/contextengine/core"
)

// Delete implements core.Store. With an entry go all its copies and what unfinished batches left of it. When it fails,
// some entries may be gone already; repeating it goes on.
//
// On a server that does not show all thoughts of the agent, entries that cannot be seen are erased with the bulk call,
// by their id in the metadata; they are counted when the server says how many it erased.
func (s *Store) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := s.readyFor(ctx, "delete", scope); err != nil {
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	g, err := s.agents.acquire(ctx, scope.Agent)
	if err != nil {
		return 0, failed("delete", ids[0], err)
	}
	defer s.agents.release(g)
	c, err := s.load(ctx, "delete", g)
	if err != nil {
		return 0, failed("delete", ids[0], err)
	}
	defer s.scans.outdate(scope.Agent)
	doomed := c.doomed(scope, ids)
	if err := s.passOn(ctx, c, doomed); err != nil {
		return 0, err
	}
	n := 0
	seen := map[string]bool{}
	for _, r := range doomed {
		// Copies go before the entry itself: were it the other way round, a failure in between would show a copy.
		for _, t := range append(c.twins(r), r) {
			there, err := s.erase(ctx, "delete", g, t)
			if err != nil {
				g.forget()
				return n, failed("delete", r.entry.ID, err)
			}
			if there && t.thought == r.thought && !c.isHidden(r) {
				n++
			}
		}
		seen[r.entry.ID] = true
		g.drop(r.entry.ID)
		s.ids.remove(r.entry.ID)
	}
	if g.partial {
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			if seen[id] {
				continue
			}
			erased, err := s.eraseUnseen(ctx, id)
			n += erased
			if err != nil {
				return n, failed("delete", id, err)
			}
			g.drop(id)
			s.ids.remove(id)
		}
	}
	g.hidden = slices.DeleteFunc(g.hidden, func(h record) bool { return seen[h.entry.ID] })
	return n, nil
}

// doomed returns the visible and hidden records of a scope with these ids.
func (c census) doomed(scope core.Scope, ids []string) []record {
	var out []record
	want := make(map[string]bool, len(ids))
	for _, id := range ids {
		want[id] = true
	}
	for _, list := range [][]record{c.visible, c.hidden} {
		for _, r := range list {
			if want[r.entry.ID] && scope.Contains(r.entry.SessionID()) {
				out = append(out, r)
			}
		}
	}
	return out
}

func (c census) isHidden(r record) bool {
	return slices.ContainsFunc(c.hidden, func(h record) bool { return h.thought == r.thought })
}

// passOn makes a survivor the end of every batch that is about to lose the one it has.
func (s *Store) passOn(ctx context.Context, c census, doomed []record) error {
	goes := map[string]bool{}
	for _, r := range doomed {
		goes[r.thought] = true
		for _, t := range c.twins(r) {
			goes[t.thought] = true
		}
	}
	loses, keeps, heir := map[string]bool{}, map[string]bool{}, map[string]record{}
	for _, r := range slices.Concat(c.visible, c.copies) {
		switch {
		case r.batch.ID == "":
		case goes[r.thought]:
			loses[r.batch.ID] = loses[r.batch.ID] || r.batch.End
		case r.batch.End:
			keeps[r.batch.ID] = true
		default:
			heir[r.batch.ID] = r
		}
	}
	for id := range loses {
		r, ok := heir[id]
		if !loses[id] || keeps[id] || !ok {
			continue
		}
		r.batch.End = true
		if err := s.patch(ctx, "delete", r, false); err != nil {
			return failed("delete", r.entry.ID, fmt.Errorf("its batch cannot be kept whole: %w", err))
		}
	}
	return nil
}

// erase deletes one thought and reports whether it was there.
func (s *Store) erase(ctx context.Context, op string, g *agent, r record) (bool, error) {
	again := false
	_, err := s.client.doUnless(ctx, op, call{method: http.MethodDelete, path: thoughtPath(r.thought), one: true},
		func(context.Context) (bool, error) {
			again = true // the try before may have done it
			return false, nil
		})
	gone := isStatus(err, http.StatusNotFound)
	if err != nil && !gone {
		return false, err
	}
	delete(g.thoughts, r.thought)
	return !gone || again, nil
}

// eraseUnseen deletes an entry by its id in the metadata. The source is left out on purpose: a server that knew only
// that filter would erase the whole agent, while without it, it refuses.
func (s *Store) eraseUnseen(ctx context.Context, id string) (int, error) {
	body, err := s.client.do(ctx, "delete", call{
		method: http.MethodDelete, path: pathThoughts, query: url.Values{keyMetadataID: {pack(id)}},
	})
	if isStatus(err, http.StatusNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil {
		return 0, nil
	}
	for _, key := range []string{"deleted", "count", "deleted_count"} {
		if n, ok := whole(answer[key]); ok {
			return n, nil
		}
	}
	return 0, nil
}
