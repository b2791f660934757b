package openbrain

import (
	"context"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// alike is how many hits are looked at to find a message among others that say the same.
const alike = 100

// Recognise implements core.Recogniser on a server that shows its newest thoughts only: it searches for what each message says, unless it has seen that already.
func (s *Store) Recognise(ctx context.Context, id core.SessionID, messages []message.Message) ([]core.Entry, error) {
	if err := s.readyFor(ctx, "recognise", id.Scope()); err != nil {
		return nil, err
	}
	if s.cfg.Keep == KeepText {
		return nil, nil
	}
	g, err := s.agents.acquire(ctx, id.Agent)
	if err != nil {
		return nil, failed("recognise", "", err)
	}
	if !g.loaded {
		_, err = s.load(ctx, "recognise", g)
	}
	whole := !g.partial
	s.agents.release(g)
	if err != nil {
		return nil, failed("recognise", "", err)
	}
	if whole {
		return nil, nil
	}
	seen := map[string][]core.Entry{}
	for _, r := range s.seen.with(id.Agent, nil) {
		if r.entry.SessionID() == id {
			seen[r.entry.Fingerprint] = append(seen[r.entry.Fingerprint], r.entry.Clone())
		}
	}
	var out []core.Entry
	asked := map[string]bool{}
	for i := range messages {
		fp := message.Fingerprint(messages[i])
		if asked[fp] {
			continue
		}
		asked[fp] = true
		found, err := s.saying(ctx, id, &messages[i])
		if err != nil {
			return nil, failed("recognise", "", err)
		}
		out = append(append(out, seen[fp]...), found...)
	}
	return out, nil
}

// saying searches for the entries of a session that say what a message says.
func (s *Store) saying(ctx context.Context, id core.SessionID, m *message.Message) ([]core.Entry, error) {
	text := clip(content(core.Entry{Message: *m}, s.cfg.MaxContent), maxQuery)
	f := &finder{store: s, q: core.SearchQuery{Scope: id.Scope(), Text: text, Limit: alike}}
	for limit := alike; ; {
		thoughts, err := f.ask(ctx, text, limit)
		if err != nil && tooMuch(err) && limit > 1 {
			limit = asFailure(err).smaller(limit)
			continue
		}
		if err != nil {
			return nil, err
		}
		hits, err := f.hits(ctx, thoughts)
		if err != nil {
			return nil, err
		}
		var out []core.Entry
		for _, h := range hits {
			if h.Entry.Fingerprint == message.Fingerprint(*m) {
				out = append(out, h.Entry.Clone())
			}
		}
		return out, nil
	}
}
