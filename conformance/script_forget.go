package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// scriptForgotten looks at what a host's transcript brings back, at requests that contradict themselves, and at erasures of an agent.
func scriptForgotten(s *script) string {
	f, ok := s.engine.(engine.Forgetter)
	if !ok {
		return ""
	}
	for _, purge := range []bool{false, true} {
		if text := s.comesBack(f, purge); text != "" {
			return text
		}
	}
	if text := s.askedBefore(f); text != "" {
		return text
	}
	if text := s.forgetRefused(f); text != "" {
		return text
	}
	if text := s.forgetRecords(f); text != "" {
		return text
	}
	if text := s.forgetAgent(f); text != "" {
		return text
	}
	for n := range 3 { // the last of them opens another engine
		if text := s.toldAgain(n); text != "" {
			return text
		}
	}
	return ""
}

// comesBack erases all of a session whose host hands over its transcript once more.
func (s *script) comesBack(f engine.Forgetter, purge bool) string {
	id := core.SessionID{Agent: "agent-a", Session: fmt.Sprintf("comes back %v", purge)}
	t := s.transcript(4)
	show := func() string {
		_, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 8000, Transcript: t})
		if err == nil {
			return ""
		}
		return fmt.Sprintf("assemble: error %v", err)
	}
	if text := show(); text != "" {
		return text
	}
	req := engine.ForgetRequest{Scope: id.Scope(), Purge: purge, Reason: "asked for"}
	rec, err := f.Forget(s.ctx(), req)
	if err != nil || rec.Entries != len(t.Messages) || rec.Sessions != 1 {
		return fmt.Sprintf("forget of a session of %d messages, purge: %v: %+v, error %v", len(t.Messages), purge, rec, err)
	}
	if b, ok := s.engine.(core.Bootstrapper); ok {
		res, err := b.Bootstrap(s.ctx(), core.BootstrapRequest{Session: id, Transcript: t})
		if err != nil || purge != (res.Imported == len(t.Messages)) || !purge && res.Imported != 0 {
			return fmt.Sprintf("bootstrap with the %d messages that were erased, purge: %v: %+v, error %v", len(t.Messages), purge, res, err)
		}
	}
	if text := show(); text != "" {
		return text
	}
	// What comes behind what was erased is new.
	t.Messages = append(t.Messages, s.transcript(2).Messages...)
	if text := show(); text != "" {
		return text
	}
	var back []string
	for _, e := range s.held(id) {
		back = append(back, marksIn(e.Text())...)
	}
	from := 4
	if purge {
		from = 0
	}
	for i, m := range t.Messages {
		if want := i >= from; slices.Contains(back, marksIn(m.Text())[0]) != want {
			return fmt.Sprintf("a session was erased, purge: %v, and its host hands over all of it and 2 messages more: message %d is stored: %v, want %v", purge, i, !want, want)
		}
	}
	if d := differs(rec.Request, req); d != "" {
		return "the request in a receipt: " + d
	}
	return ""
}

// toldAgain erases two messages of a session, whose host tells of them again, in every way. It knows messages by an id, a key, or both; then there is a new
// engine.
func (s *script) toldAgain(knows int) string {
	agent := fmt.Sprintf("told again %d", knows)
	id := core.SessionID{Agent: agent, Session: "main"}
	list := s.transcript(4).Messages
	for i := range list {
		switch knows {
		case 0:
			list[i].Key = ""
		case 1:
			list[i].ID = ""
		}
	}
	ways := s.tellings()
	if err := ways["ingest"](id, copiedMessages(list)); err != nil {
		return fmt.Sprintf("ingest: error %v", err)
	}
	gone := []string{marksIn(list[1].Text())[0], marksIn(list[2].Text())[0]}
	if rec, err := s.forgets(engine.ForgetRequest{Scope: id.Scope(), Entries: idsOf(s.held(id)[1:3])}); err != nil || rec.Entries != 2 {
		return fmt.Sprintf("forget of two entries: %+v, error %v", rec, err)
	}
	if knows == 2 && s.restarts() {
		s.reopen(true)
		ways = s.tellings()
	}
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		for _, of := range [][]message.Message{list[1:2], list} {
			if len(of) < len(list) && strings.HasSuffix(name, "with a transcript") {
				continue // it says that the others were taken back
			}
			if err := ways[name](id, copiedMessages(of)); err != nil {
				return fmt.Sprintf("%s of what was erased: error %v", name, err)
			}
			text := cmp.Or(s.leftOf([]string{agent}, gone...), s.noneShows([]core.SessionID{id}, gone...))
			if text == "" && s.reaches(id, gone[0]) {
				text = "a search finds it"
			}
			if text != "" {
				return fmt.Sprintf("messages that were erased came again by %s, the host knows them by %s; %s", name, [...]string{"ids", "keys", "both"}[knows], text)
			}
		}
	}
	return ""
}

// forgetRefused asks for what cannot be, or for what is not there, beside what is.
func (s *script) forgetRefused(f engine.Forgetter) string {
	id, other := core.SessionID{Agent: "agent-a", Session: "stays"}, core.SessionID{Agent: "agent-a", Session: "stays too"}
	entries, text := s.talk(id, 4, 3)
	if text != "" {
		return text
	}
	others, text := s.talk(other, 2, 3)
	if text != "" {
		return text
	}
	ids := idsOf(entries[:2])
	for _, c := range []struct {
		what string
		req  engine.ForgetRequest
		want error
	}{
		{"purge with entries", engine.ForgetRequest{Purge: true, Entries: ids}, core.ErrInvalid},
		{"purge with a beginning", engine.ForgetRequest{Purge: true, From: entries[1].Time}, core.ErrInvalid},
		{"purge with an end", engine.ForgetRequest{Purge: true, To: entries[2].Time}, core.ErrInvalid},
		{"an entry of another session", engine.ForgetRequest{Entries: []string{ids[0], others[0].ID}}, core.ErrNotFound},
		{"an unknown entry first", engine.ForgetRequest{Entries: []string{"nobody", ids[0]}}, core.ErrNotFound},
	} {
		c.req.Scope = id.Scope()
		if _, err := f.Forget(s.ctx(), c.req); !errors.Is(err, c.want) {
			return fmt.Sprintf("forget, %s: error %v, want %v", c.what, err, c.want)
		}
		for _, of := range [][]core.Entry{entries, others} {
			if d := sameEntries(s.held(of[0].SessionID()), of); d != "" {
				return fmt.Sprintf("after a forget that was refused (%s): %s", c.what, d)
			}
		}
	}
	return ""
}

// forgetRecords names entries of the engine's own records: receipts, outcomes, and what else the store holds of these.
func (s *script) forgetRecords(f engine.Forgetter) string {
	id := core.SessionID{Agent: "agent-records", Session: "main"}
	entries, text := s.talk(id, 3, 3)
	if text != "" {
		return text
	}
	if _, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope(), Entries: []string{entries[0].ID}}); err != nil {
		return fmt.Sprintf("forget: error %v", err)
	}
	if e, ok := s.engine.(engine.Scorer); ok {
		if err := e.Score(s.ctx(), engine.Outcome{Session: id, Turn: 1, Name: "kept", Value: 1}); err != nil {
			return fmt.Sprintf("score: error %v", err)
		}
	}
	said := s.held(id)
	for _, name := range reservedNames {
		own := core.SessionID{Agent: id.Agent, Session: name}
		for _, record := range s.held(own) {
			for _, named := range [][]string{{record.ID}, {entries[1].ID, record.ID}} {
				was := s.held(own)
				rec, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: core.Scope{Agent: id.Agent}, Entries: named})
				if !errors.Is(err, core.ErrInvalid) {
					return fmt.Sprintf("forget of %d entries, one of the engine's own records (%s): %+v, error %v, want ErrInvalid", len(named), name, rec, err)
				}
				if d := cmp.Or(sameEntries(s.held(id), said), sameEntries(s.held(own), was)); d != "" {
					return "forget of one of the engine's own records was refused, and something was erased: " + d
				}
			}
		}
	}
	return ""
}

// forgetAgent erases entries of two sessions of an agent by their ids, then by their time, then all.
func (s *script) forgetAgent(f engine.Forgetter) string {
	const agent = "agent-forgotten"
	s.id = core.SessionID{Agent: agent, Session: "main"}
	var receipts []engine.Receipt
	kept, text := s.talk(core.SessionID{Agent: agent + "-not", Session: "main"}, 2, 3)
	if text != "" {
		return text
	}
	var entries [2][]core.Entry
	for n, session := range []string{"main", "second"} {
		if entries[n], text = s.talk(core.SessionID{Agent: agent, Session: session}, 5, 3); text != "" {
			return text
		}
	}
	ids := []string{entries[1][2].ID, entries[0][1].ID, entries[0][0].ID}
	given := slices.Clone(ids)
	for _, c := range []struct {
		req engine.ForgetRequest
		// erased is what the receipt says; then so many places are left, and so many of them hold something.
		erased, left, full int
	}{
		{engine.ForgetRequest{Entries: ids}, 3, 10, 7},
		{engine.ForgetRequest{From: entries[0][2].Time, To: entries[1][1].Time}, 4, 10, 3},
		{engine.ForgetRequest{To: entries[1][2].Time}, 1, 10, 2},
		{engine.ForgetRequest{From: entries[1][4].Time}, 1, 10, 1},
		{engine.ForgetRequest{Purge: true}, 1, 0, 0},
	} {
		c.req.Scope = core.Scope{Agent: agent}
		rec, err := f.Forget(s.ctx(), c.req)
		if err != nil || rec.Entries != c.erased || c.erased > 1 && rec.Sessions != 2 {
			return fmt.Sprintf("forget in an agent (%d entries named, from %v to %v, purge: %v): %+v, error %v, want %d entries", len(c.req.Entries), c.req.From, c.req.To, c.req.Purge, rec, err, c.erased)
		}
		if !slices.Equal(ids, given) {
			return fmt.Sprintf("forget changed the list of ids that it was given: %q, want %q", ids, given)
		}
		n, full := 0, 0
		for _, e := range slices.Concat(s.held(entries[0][0].SessionID()), s.held(entries[1][0].SessionID())) {
			if n++; e.Text() != "" {
				full++
			}
		}
		if n != c.left || full != c.full {
			return fmt.Sprintf("after a forget in an agent (%d entries named, purge: %v) %d places are there, %d of them hold something, want %d and %d", len(c.req.Entries), c.req.Purge, n, full, c.left, c.full)
		}
		s.env.Host.advance(time.Second)
		receipts = append(receipts, rec)
	}
	if text := s.kept(receipts); text != "" {
		return "an agent was purged: " + text
	}
	if views, ok := core.As[core.ViewStore](s.store); ok {
		left, err := views.ListViews(s.ctx(), core.ViewQuery{Agent: agent, Limit: core.MaxPage})
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("an agent was purged, and %d views of it are there, error %v: %v", len(left), err, left)
		}
	}
	if d := sameEntries(s.held(kept[0].SessionID()), kept); d != "" {
		return "another agent after erasures: " + d
	}
	return ""
}
