package openbrain

import (
	"context"
	"net/http"

	"github.com/contextengine/contextengine/core"
)

// Update implements core.Store. The server makes a new embedding when the content changes. Copies of the entry, which readers do
// not show, are erased, so that nothing of the old content remains.
func (s *Store) Update(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	if err := s.readyFor(ctx, "update", scope); err != nil {
		return err
	}
	g, err := s.agents.acquire(ctx, scope.Agent)
	if err != nil {
		return failed("update", id, err)
	}
	defer s.agents.release(g)
	c, err := s.load(ctx, "update", g)
	if err != nil {
		return failed("update", id, err)
	}
	// Erased and changed content must not come from a scan that began before.
	defer s.scans.outdate(scope.Agent)
	r, err := s.find(ctx, g, c, scope, id)
	if err != nil {
		return failed("update", id, err)
	}
	for _, twin := range c.twins(r) {
		if _, err := s.erase(ctx, "update", g, twin); err != nil {
			return failed("update", id, err)
		}
	}
	if err := s.patch(ctx, "update", applied(r, change), change.Message != nil); err != nil {
		return failed("update", id, err)
	}
	return nil
}

// find returns a scope's entry from a listing or, where that does not show everything, from where it was last seen.
func (s *Store) find(ctx context.Context, g *agent, c census, scope core.Scope, id string) (record, error) {
	for _, r := range c.visible {
		if r.entry.ID == id && scope.Contains(r.entry.SessionID()) {
			return r, nil
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
	return record{}, &partial{path: pathRecent, seen: len(c.visible)}
}

// applied returns r with a change.
func applied(r record, change core.Change) record {
	if change.Message != nil {
		r.entry.Message, r.entry.Tokens, r.entry.Fingerprint = *change.Message, change.Tokens, change.Fingerprint
	}
	if change.Meta != nil {
		r.entry.Meta = change.Meta
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
	_, err = s.client.do(ctx, op, call{method: http.MethodPatch, path: thoughtPath(r.thought), one: true, body: body})
	return err
}

// twins returns the hidden thoughts with the same key or id as a visible one.
func (c census) twins(r record) []record {
	var out []record
	for _, list := range [][]record{c.copies, c.hidden} {
		for _, t := range list {
			if t.key() == r.key() || t.entry.ID == r.entry.ID {
				out = append(out, t)
			}
		}
	}
	return out
}
