package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// refreshChecks look at what those call who look after an engine from outside.
var refreshChecks = []Check{
	{ID: "contract.refresh", Promise: 2, Suite: SuiteEngine, Needs: []Need{NeedRefresher}, script: scriptRefresh,
		Rule: "after Refresh every session shows what the store holds then, whoever changed it, and shows as before what nobody changed"},
	{ID: "contract.ping", Promise: 9, Suite: SuiteEngine, Needs: []Need{NeedPinger}, script: scriptPing,
		Rule: "Ping is nil where the store can be used, and an error while it cannot"},
}

// refreshed is a session of which a message is changed behind the engine.
type refreshed struct {
	id      core.SessionID
	entries []core.Entry
	before  string
}

// scriptRefresh changes a message in some sessions, takes one away in another, and leaves one alone.
func scriptRefresh(s *script) string {
	var all []refreshed
	for n, id := range []core.SessionID{s.id, {Agent: s.id.Agent, Session: "refreshed too"}, {Agent: "agent-b", Session: s.id.Session}, {Agent: "agent-b", Session: "left alone"}} {
		entries, text := s.talk(id, 4+n, 4)
		if text != "" {
			return text
		}
		all = append(all, refreshed{id: id, entries: entries})
	}
	for round := range 2 {
		for i := range all {
			if all[i].before = ""; round == 1 && i == 0 {
				continue // nobody asks for it between two changes
			}
			shows, text := s.shownOf(all[i].id)
			if text != "" {
				return text
			}
			all[i].before = shows
		}
		var want []string
		for i, r := range all[:3] {
			e := r.entries[(i+round)%len(r.entries)]
			m := e.Message.Clone()
			m.Parts = []message.Part{{Kind: message.Text, Text: fmt.Sprintf("%s is said otherwise now (%d)", marksIn(e.Text())[0], round)}}
			m.Raw = nil
			want = append(want, m.Text())
			if err := s.store.Update(s.ctx(), r.id.Scope(), e.ID, core.Change{Message: &m, Tokens: s.count(m), Fingerprint: message.Fingerprint(m)}); err != nil {
				return fmt.Sprintf("update: error %v", err)
			}
		}
		if err := s.engine.(engine.Refresher).Refresh(s.ctx()); err != nil { //nolint:forcetypeassert // it is needed
			return fmt.Sprintf("refresh: error %v", err)
		}
		for i, r := range all {
			shows, text := s.shownOf(r.id)
			if text != "" {
				return text
			}
			if i < len(want) && !strings.Contains(shows, want[i]) {
				return fmt.Sprintf("a message of session %s was changed in the store, and the engine told to read anew: it does not show %q", r.id, want[i])
			}
			if i >= len(want) && shows != r.before {
				return fmt.Sprintf("nobody changed anything of session %s, and the engine was told to read anew: %s", r.id, firstDifference(shows, r.before))
			}
		}
	}
	ctx, cancel := cancelled(s.ctx())
	defer cancel()
	if err := s.engine.(engine.Refresher).Refresh(ctx); err != nil && !errors.Is(err, context.Canceled) { //nolint:forcetypeassert // it is needed
		return fmt.Sprintf("refresh with a cancelled context: error %v, want context.Canceled", err)
	}
	return ""
}

// shownOf is what a session shows where there is room for all of it.
func (s *script) shownOf(id core.SessionID) (shows, text string) {
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, PromptMode: core.PromptNone})
	if err != nil {
		return "", fmt.Sprintf("assemble: error %v", err)
	}
	return windowText(res), ""
}

// scriptPing asks before, while and after the store fails.
func scriptPing(s *script) string {
	p, _ := s.engine.(core.Pinger)
	for n, down := range []bool{false, true, false} {
		if down {
			s.env.faults.arm(faultDown, 1000)
		}
		err := p.Ping(s.ctx())
		s.env.faults.disarm()
		if (err != nil) != down {
			return fmt.Sprintf("ping %d: error %v, while every call of the store fails: %v", n+1, err, down)
		}
	}
	return ""
}
