package openbrain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. The server makes a new embedding when the content changes. Copies of the entry, which readers do
// not show, are erased, so that nothing of the old content remains.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := s.readyFor(ctx, "update", scope); err != nil {
		return err
	}
	if s.cfg.Keep == KeepText {
		return s.updateText(ctx, scope, id, change)
	}
	g, err := s.agents.acquire(ctx, scope.Agent)
	if err != nil {
		return failed("update", id, err)
	}
	defer s.agents.release(g)
	var c census
	r, alone, err := s.alone(ctx, "update", g, scope, id)
	if err == nil && !alone {
		c, err = s.listed(ctx, "update", g)
	}
	if err != nil {
		return failed("update", id, err)
	}
	// Erased and changed content must not come from a scan that began before.
	defer s.scans.outdate(scope.Agent)
	if !alone {
		if r, err = s.find(ctx, g, c, scope, id); err != nil {
			return failed("update", id, err)
		}
	}
	changed := applied(r, change)
	other := g.ids[changed.key()]
	if !alone {
		other = c.holder(changed.key())
	}
	if changed.key() != r.key() && other != "" && other != id {
		return failed("update", id, fmt.Errorf("another entry of the session has the key: %w", core.ErrConflict))
	}
	if err := s.update(ctx, g, c, r, changed, change.Message != nil); err != nil {
		g.forget() // what the server did is in doubt
		return err
	}
	g.rename(id, changed.key())
	return nil
}

// alone reads an entry by itself, where the index says that it is the only one of its thoughts and a look at the newest ones says that this is so still. ok is false when it takes a
// listing.
func (s *Store) alone(ctx context.Context, op string, g *agent, scope core.Scope, id string) (r record, ok bool, err error) {
	if !g.loaded || s.client.can.noGet.Load() || s.client.can.follow() {
		return record{}, false, nil
	}
	if _, err := s.catchUp(ctx, op, g); err != nil {
		return record{}, false, err
	}
	_, known := g.keys[id]
	thought, seen := s.ids.get(id)
	if !known || !seen || g.partial || g.copies > 0 || len(g.hidden) > 0 {
		return record{}, false, nil
	}
	t, ok, err := s.fetch(ctx, op, thought)
	if err != nil || !ok {
		return record{}, false, err
	}
	r, ok = s.cfg.record(t, g.name)
	return r, ok && r.entry.ID == id && scope.Contains(r.entry.SessionID()), nil
}

// update erases the copies of an entry and writes what it is now over its thought.
func (s *Store) update(ctx context.Context, g *agent, c census, old, changed record, withContent bool) error {
	copies := c.twins().of(old)
	ends, err := s.passOn(ctx, "update", c, copies)
	if err != nil {
		return err
	}
	if ends[old.thought] {
		changed.batch.End = true
	}
	if err := s.eraseAll(ctx, "update", g, copies, nil); err != nil {
		return err
	}
	if err := s.patch(ctx, "update", changed, withContent); err != nil {
		return failed("update", old.entry.ID, err)
	}
	return nil
}

// find returns a scope's entry from a listing or, where that does not show everything, from where it was last seen.
func (s *Store) find(ctx context.Context, g *agent, c census, scope core.Scope, id string) (record, error) {
	for i := range c.visible {
		if r := &c.visible[i]; r.entry.ID == id && scope.Contains(r.entry.SessionID()) {
			return *r, nil
		}
	}
	if !g.partial {
		return record{}, core.ErrNotFound
	}
	if at, known := s.ids.get(id); known {
		t, ok, err := s.fetch(ctx, "update", at)
		if err != nil {
			return record{}, err
		}
		if r, ours := s.cfg.record(t, scope.Agent); ok && ours && r.entry.ID == id && scope.Contains(r.entry.SessionID()) {
			return r, nil
		}
	}
	return record{}, fmt.Errorf("%w: %w", core.ErrNotFound, &partial{path: pathRecent, seen: len(c.visible)})
}

// applied returns r with a change. Metadata that others added to an entry may be derived from its content: they do not
// outlive it.
func applied(r record, change core.Change) record {
	if change.Message != nil {
		r.entry.Message, r.entry.Tokens, r.entry.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
	}
	if change.Meta != nil {
		r.entry.Meta = change.Meta
	}
	r.entry.Type, r.entry.Key = cmp.Or(change.Type, r.entry.Type), cmp.Or(change.Key, r.entry.Key)
	if change.Type == core.TypeErased {
		emptied := make(map[string]json.RawMessage, len(r.extra))
		for k := range r.extra {
			emptied[k] = json.RawMessage("null") // a server that merges would keep what is left out
		}
		r.extra = emptied
	}
	return r
}

// patch writes a record over its thought: all metadata, so that it does not matter whether the server replaces or merges.
func (s *Store) patch(ctx context.Context, op string, r record, withContent bool) error {
	metadata, err := s.cfg.metadata(r, true)
	if err != nil {
		return err
	}
	body := map[string]any{"metadata": metadata}
	if withContent {
		body["content"] = content(r.entry, s.cfg.MaxContent)
	}
	_, err = s.client.do(ctx, op, call{method: http.MethodPatch, path: thoughtPath(r.thought), one: true, body: body, created: r.created})
	if err == nil && s.client.can.noList.Load() {
		s.seen.put(r.entry.Agent, r)
	}
	return err
}
