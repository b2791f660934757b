package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// scriptLoud looks at what became of each call that stores something, while the store fails and after it did.
func scriptLoud(s *script) string {
	for _, place := range []faultPlace{faultAppend, faultAck, faultScan, faultSwap, faultUpdate} {
		id := core.SessionID{Agent: "agent-a", Session: "loud " + place.String()}
		said, text := s.talk(id, 4, 3)
		if text != "" {
			return text
		}
		for _, c := range append(s.storingCalls(id, marksIn(said[0].Text())[0]), s.erasingCall(id, said[3].ID)...) {
			s.env.faults.arm(place, 1000)
			err := s.heard(c.name, c.call())
			hits := s.env.faults.disarm()
			if err != nil && !ofCore(err) {
				return fmt.Sprintf("%s while the store's %s fails: the error wraps none of core's: %v", c.name, place, err)
			}
			if s.recover(); s.over {
				return "" // nothing may be restarted
			}
			if err != nil {
				s.env.Host.advance(time.Hour)
				if err := c.call(); err != nil {
					return fmt.Sprintf("%s after the store's %s failed: error %v, want none", c.name, place, err)
				}
			}
			if text := c.done(); text != "" {
				return fmt.Sprintf("%s while the store's %s fails (%d times): error %v, made again: %v; %s", c.name, place, hits, err, err != nil, text)
			}
		}
	}
	return ""
}

// ofCore reports whether callers can tell what an error is.
func ofCore(err error) bool {
	return slices.ContainsFunc([]error{
		core.ErrUnavailable, core.ErrQuarantined, core.ErrConflict, core.ErrNotFound, core.ErrInvalid, core.ErrClosed, core.ErrAuth, core.ErrPartial, context.Canceled, context.DeadlineExceeded,
	}, func(target error) bool { return errors.Is(err, target) })
}

// erasingCall is an erasure of an entry, where an engine erases.
func (s *script) erasingCall(id core.SessionID, entry string) []storing {
	if _, ok := s.engine.(engine.Forgetter); !ok {
		return nil
	}
	return []storing{{"forget", func() error {
		_, err := s.engine.(engine.Forgetter).Forget(s.ctx(), engine.ForgetRequest{Scope: id.Scope(), Entries: []string{entry}})
		return err
	}, func() string {
		if e, text := s.get(id, entry); text == "" && e.Text() != "" {
			return fmt.Sprintf("entry %q is not erased", entry)
		}
		return ""
	}}}
}

// storing is a call that stores something, and how to see whether it did.
type storing struct {
	name string
	call func() error
	// done says what is missing.
	done func() string
}

// storingCalls are the calls of a session that store something, each with something of its own, of the engine that there is when they are made.
func (s *script) storingCalls(id core.SessionID, mark string) []storing {
	here := func(of core.SessionID, list ...message.Message) func() string {
		return func() string {
			for _, m := range list {
				n := 0
				for _, e := range s.held(of) {
					if e.Text() == m.Text() {
						n++
					}
				}
				if n != 1 {
					return fmt.Sprintf("a message of it is stored %d times, want once", n)
				}
			}
			return ""
		}
	}
	m := s.message(message.User, "to be stored")
	out := []storing{{"ingest", func() error {
		_, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m})
		return err
	}, here(id, m)}}
	if _, ok := s.engine.(core.BatchIngester); ok {
		list := s.transcript(2).Messages
		out = append(out, storing{"ingest batch", func() error {
			_, err := s.engine.(core.BatchIngester).IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list})
			return err
		}, here(id, list...)})
	}
	if _, ok := s.engine.(core.TurnCommitter); ok {
		list := s.transcript(2).Messages
		out = append(out, storing{"commit turn", func() error {
			_, err := s.engine.(core.TurnCommitter).CommitTurn(s.ctx(), core.CommitTurnRequest{Session: id, AdvancementKey: "the turn", Messages: list})
			return err
		}, here(id, list...)})
	}
	if _, ok := s.engine.(core.AfterTurner); ok {
		of := core.SessionID{Agent: id.Agent, Session: id.Session + " after turn"}
		list := s.transcript(2).Messages
		out = append(out, storing{"after turn", func() error {
			return s.engine.(core.AfterTurner).AfterTurn(s.ctx(), core.AfterTurnRequest{Session: of, Messages: list})
		}, here(of, list...)})
	}
	if _, ok := s.engine.(core.SubagentHost); ok {
		kid := core.SessionID{Agent: "agent-c", Session: id.Session + " fork"}
		out = append(out, storing{"prepare spawn", func() error {
			_, err := s.engine.(core.SubagentHost).PrepareSubagentSpawn(s.ctx(), core.SpawnRequest{Parent: id, Child: kid, Mode: core.SpawnFork, TTL: 10 * time.Hour})
			return err
		}, func() string { return s.startsFrom(kid, mark, core.SpawnFork) }})
		ends := core.SessionID{Agent: "agent-c", Session: id.Session + " ends"}
		result := s.message(message.Assistant, "is what came of it")
		out = append(out, storing{"subagent ended", func() error {
			return s.engine.(core.SubagentHost).OnSubagentEnded(s.ctx(), core.SubagentEnded{Parent: id, Child: ends, Reason: "completed", Result: result.Text()})
		}, func() string {
			n := 0
			for _, e := range s.held(id) {
				if e.Type == core.TypeSubagent && slices.Contains(marksIn(e.Text()), marksIn(result.Text())[0]) {
					n++
				}
			}
			if n != 1 {
				return fmt.Sprintf("its result is stored %d times, want once", n)
			}
			return ""
		}})
	}
	return out
}
