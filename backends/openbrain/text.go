package openbrain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// thoughtMark begins the ids that Append answers with where only the text is kept: what follows is the server's id of the thought, and
// nothing for an entry that it has none of.
const thoughtMark = "thought:"

// KeepsTextOnly reports whether the store keeps the text of entries only, see KeepText.
func (s *Store) KeepsTextOnly() bool { return s.cfg.Keep == KeepText }

// appendText stores entries where only their text is kept. Each is a thought of its own; there are no batches, because the store in front
// sends again what it does not know to be here, and nothing is listed. What may have arrived without an answer is looked for among the newest
// thoughts first.
func (s *Store) appendText(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	res := core.AppendResult{IDs: make([]string, len(entries))}
	for i, e := range entries {
		g, err := s.agents.acquire(ctx, e.Agent)
		if err != nil {
			return core.AppendResult{}, failed("append", e.ID, err)
		}
		thought, known, err := s.sendText(ctx, g, e)
		s.agents.release(g)
		if err != nil {
			return core.AppendResult{}, failed("append", e.ID, err)
		}
		if known {
			res.Duplicates++
		}
		res.IDs[i] = thoughtMark + thought
	}
	return res, nil
}

// sendText makes the server hold an entry's text, and returns the thought; an erased one has none.
func (s *Store) sendText(ctx context.Context, g *agent, e core.Entry) (thought string, known bool, err error) {
	if !g.loaded {
		// Another process, or a call that was cut off, may have sent it.
		page, _, err := s.news(ctx, pageQuery{op: "append", path: pathRecent, source: s.cfg.source(e.Agent)}, 1)
		if err != nil {
			return "", false, err
		}
		for _, t := range page.thoughts {
			if r, ok := s.cfg.record(t, e.Agent); ok {
				s.ids.put(r.entry.ID, t.ID)
			}
		}
		g.loaded = true
	}
	thought, known = s.ids.get(e.ID)
	if e.Type == core.TypeErased {
		if known {
			err = s.eraseThought(ctx, g, e.ID, thought)
		}
		return "", false, err
	}
	if known {
		return thought, true, nil
	}
	thought, _, err = s.create(ctx, g, record{entry: e})
	if err != nil {
		g.loaded = false // what arrived is in doubt
		return "", false, err
	}
	s.ids.put(e.ID, thought)
	return thought, false, nil
}

// eraseThought deletes a thought; one that is not there is gone.
func (s *Store) eraseThought(ctx context.Context, g *agent, id, thought string) error {
	if _, _, err := s.erase(ctx, "delete", g, record{thought: thought}); err != nil {
		g.loaded = false
		return err
	}
	s.ids.remove(id)
	return nil
}

// thoughtOf returns where an entry is that Append answered with id. ok is false when that is not known: it was written by the first version,
// whose metadata.id is the entry's, or not at all.
func (s *Store) thoughtOf(id string) (thought string, ok bool) {
	if thought, ok = strings.CutPrefix(id, thoughtMark); ok {
		return thought, true
	}
	return s.ids.get(id)
}

// deleteText erases thoughts with one request each.
func (s *Store) deleteText(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	g, err := s.agents.acquire(ctx, scope.Agent)
	if err != nil {
		return 0, failed("delete", ids[0], err)
	}
	defer s.agents.release(g)
	n := 0
	for _, id := range ids {
		thought, ok := s.thoughtOf(id)
		switch {
		case ok && thought == "": // never sent
		case ok:
			if err := s.eraseThought(ctx, g, id, thought); err != nil {
				return n, failed("delete", id, err)
			}
			n++
		default:
			erased, err := s.bulk(ctx, "delete", scope.Agent, pack(id))
			n += erased
			if err != nil {
				return n, failed("delete", id, err)
			}
		}
	}
	return n, nil
}

// updateText writes an entry's text over its thought. An erased entry has no thought: its place is kept by the store in front.
func (s *Store) updateText(ctx context.Context, scope core.Scope, id string, change core.Change) error {
	thought, ok := s.thoughtOf(id)
	if change.Type == core.TypeErased {
		_, err := s.deleteText(ctx, scope, []string{id})
		return err
	}
	if !ok || thought == "" {
		return failed("update", id, core.ErrNotFound)
	}
	if change.Message == nil {
		return nil // the rest is not kept here
	}
	text := content(core.Entry{Message: *change.Message}, s.cfg.MaxContent)
	_, err := s.client.do(ctx, "update", call{method: http.MethodPatch, path: thoughtPath(thought), one: true, body: map[string]any{"content": text}})
	if isStatus(err, http.StatusNotFound) {
		err = core.ErrNotFound
	}
	if err != nil {
		return failed("update", id, err)
	}
	return nil
}

// EraseSession implements core.SessionEraser: all thoughts of a session go with one request, whose metadata_id is the session's. Thoughts that
// were written by the first version carry the entry's id instead, and are not among them.
func (s *Store) EraseSession(ctx context.Context, id core.SessionID) error {
	if err := s.readyFor(ctx, "erase session", id.Scope()); err != nil {
		return err
	}
	if id.Session == "" {
		return failed("erase session", "", fmt.Errorf("session: name the session: %w", core.ErrInvalid))
	}
	g, err := s.agents.acquire(ctx, id.Agent)
	if err != nil {
		return failed("erase session", id.String(), err)
	}
	defer s.agents.release(g)
	defer s.scans.outdate(id.Agent)
	if err := s.outlive(ctx, g, id); err != nil {
		return err
	}
	g.forget()
	if _, err := s.bulk(ctx, "erase session", id.Agent, sessionMark(id.Session)); err != nil {
		return failed("erase session", id.String(), err)
	}
	for _, r := range s.seen.with(id.Agent, nil) {
		if r.entry.Session == id.Session && r.version != firstVersion {
			s.seen.drop(id.Agent, r.thought)
		}
	}
	return nil
}

// outlive keeps what other sessions have of batches that a session ends: without their end they would not be shown any more.
func (s *Store) outlive(ctx context.Context, g *agent, id core.SessionID) error {
	if s.cfg.Keep == KeepText {
		return nil
	}
	c, err := s.load(ctx, "erase session", g)
	if err != nil {
		return failed("erase session", id.String(), err)
	}
	var doomed []record
	for _, r := range slices.Concat(c.visible, c.copies) {
		if r.entry.Session == id.Session && r.version != firstVersion {
			doomed = append(doomed, r)
		}
	}
	_, err = s.passOn(ctx, "erase session", c, doomed)
	return err
}

// readable returns what there is to read of an agent, and whether that is all. Of a server that does not show everything that is a part, see Store.sayLimits. What cannot be
// restored of thoughts that hold only text is said here.
func (s *Store) readable(ctx context.Context, agent string) (visible []record, whole bool, err error) {
	c, err := s.take(ctx, "scan", agent)
	if p := (*partial)(nil); err != nil && !errors.As(err, &p) {
		return nil, false, err
	}
	n := 0
	for i := range c.visible {
		if c.visible[i].textOnly {
			n++
		}
	}
	if n > 0 {
		s.client.log.WarnContext(ctx, "openbrain server holds the text of messages only: tool calls, images, token counts and the hosts' own bytes cannot be restored from it",
			"agent", agent, "messages", n)
	}
	return c.visible, err == nil, nil
}
