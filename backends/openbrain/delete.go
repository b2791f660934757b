package openbrain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

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
	if s.cfg.Keep == KeepText {
		return s.deleteText(ctx, scope, ids)
	}
	g, err := s.agents.acquire(ctx, scope.Agent)
	if err != nil {
		return 0, failed("delete", ids[0], err)
	}
	defer s.agents.release(g)
	c, err := s.listed(ctx, "delete", g)
	if err != nil {
		return 0, failed("delete", ids[0], err)
	}
	defer s.scans.outdate(scope.Agent)
	doomed := c.doomed(scope, ids)
	// Copies go before the entry itself: were it the other way round, a failure in between would show a copy.
	others, hidden := c.twins(), map[string]bool{}
	for _, h := range c.hidden {
		hidden[h.thought] = true
	}
	var thoughts []record
	for _, r := range doomed {
		thoughts = append(append(thoughts, others.of(r)...), r)
	}
	if _, err := s.passOn(ctx, "delete", c, thoughts); err != nil {
		return 0, err
	}
	n, seen, entries := 0, map[string]bool{}, map[string]bool{}
	for _, r := range doomed {
		seen[r.entry.ID] = true
		entries[r.thought] = !hidden[r.thought]
	}
	err = s.eraseAll(ctx, "delete", g, thoughts, func(r record) {
		if entries[r.thought] {
			n++
		}
	})
	if err != nil {
		g.forget()
		return n, err
	}
	for id := range seen {
		g.drop(id)
		s.ids.remove(id)
	}
	if g.partial {
		elsewhere := c.shows()
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			if seen[id] || elsewhere[id] {
				continue
			}
			erased, err := s.bulk(ctx, "delete", scope.Agent, pack(id))
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
		for i := range list {
			if r := &list[i]; want[r.entry.ID] && scope.Contains(r.entry.SessionID()) {
				out = append(out, *r)
			}
		}
	}
	return out
}

// shows returns the ids of all entries of a census, begun ones too.
func (c census) shows() map[string]bool {
	out := make(map[string]bool, len(c.visible)+len(c.hidden))
	for _, list := range [][]record{c.visible, c.hidden} {
		for i := range list {
			out[list[i].entry.ID] = true
		}
	}
	return out
}

// passOn makes a survivor the end of every batch that is about to lose the one it has. It returns the thoughts that are ends now.
func (s *Store) passOn(ctx context.Context, op string, c census, doomed []record) (map[string]bool, error) {
	if len(doomed) == 0 {
		return nil, nil
	}
	goes, ends := map[string]bool{}, map[string]bool{}
	for _, r := range doomed {
		goes[r.thought] = true
	}
	loses, keeps, heir := map[string]bool{}, map[string]bool{}, map[string]record{}
	for _, list := range [][]record{c.visible, c.copies} {
		for i := range list {
			switch r := &list[i]; {
			case r.batch.ID == "":
			case goes[r.thought]:
				loses[r.batch.ID] = loses[r.batch.ID] || r.batch.End
			case r.batch.End:
				keeps[r.batch.ID] = true
			default:
				heir[r.batch.ID] = *r
			}
		}
	}
	for id := range loses {
		r, ok := heir[id]
		if !loses[id] || keeps[id] || !ok {
			continue
		}
		r.batch.End = true
		if err := s.patch(ctx, op, r, false); err != nil {
			return nil, failed(op, r.entry.ID, fmt.Errorf("its batch cannot be kept whole: %w", err))
		}
		ends[r.thought] = true
	}
	return ends, nil
}

// eraseAll deletes thoughts, and tells erased of those that were there. A thought that the server says it does not have was erased by
// somebody else, or by a try whose answer was lost; or the call reaches nobody who could erase it. So then the list must agree.
func (s *Store) eraseAll(ctx context.Context, op string, g *agent, thoughts []record, erased func(record)) error {
	var missing []record
	done := map[string]bool{}
	for _, r := range thoughts {
		if done[r.thought] {
			continue
		}
		done[r.thought] = true
		there, listed, err := s.erase(ctx, op, g, r)
		if err != nil {
			return failed(op, r.entry.ID, err)
		}
		if !listed {
			missing = append(missing, r)
		}
		if there && erased != nil {
			erased(r)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	c, err := s.take(ctx, op, g.name)
	if p := (*partial)(nil); err != nil && !errors.As(err, &p) {
		return failed(op, missing[0].entry.ID, err)
	}
	still := map[string]time.Time{}
	for _, r := range slices.Concat(c.visible, c.copies, c.hidden) {
		still[r.thought] = r.created
	}
	for _, r := range missing {
		if created, there := still[r.thought]; there && created.Equal(r.created) { // else another thought has its place

			return failed(op, r.entry.ID, fmt.Errorf("server answers 404 to DELETE %s/{id} and lists the thought all the same; check baseUrl: %w",
				pathThoughts, errors.ErrUnsupported))
		}
	}
	return nil
}

// erase deletes one thought. It reports whether it was there, as far as we know, and whether the server agreed.
func (s *Store) erase(ctx context.Context, op string, g *agent, r record) (there, agreed bool, err error) {
	again := false
	_, err = s.client.doUnless(ctx, op, call{method: http.MethodDelete, path: thoughtPath(r.thought), one: true, created: r.created},
		func(context.Context) (bool, error) {
			again = true // the try before may have done it
			return false, nil
		})
	gone := isStatus(err, http.StatusNotFound)
	if err != nil && !gone {
		return false, false, err
	}
	delete(g.thoughts, r.thought)
	s.seen.drop(g.name, r.thought)
	return !gone || again, !gone, nil
}

// bulk deletes all thoughts of an agent whose metadata.id is this. Both parameters are sent, as the document has them.
func (s *Store) bulk(ctx context.Context, op, agent, id string) (int, error) {
	body, err := s.client.do(ctx, op, call{
		method: http.MethodDelete, path: pathThoughts, query: url.Values{"source": {s.cfg.source(agent)}, "metadata_id": {id}},
	})
	if isStatus(err, http.StatusNotFound) {
		// Nothing matched; or the call reaches nobody, and then some of it may be shown still.
		page, _, lerr := s.news(ctx, s.recent(op, agent), 1)
		for _, t := range page.thoughts {
			if lerr == nil && firstText(t.Meta, keyID) == id {
				return 0, err
			}
		}
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
