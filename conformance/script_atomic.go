package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// leastTogether is how many messages come in one call at least: more than the pages in which programs like to write.
const leastTogether = 120

func scriptAtomic(s *script) string {
	ways := s.ways()
	for _, name := range []string{"ingest batch", "commit turn"} {
		way := ways[name]
		if way == nil {
			continue
		}
		list := s.transcript(max(leastTogether, together*s.cases)).Messages
		id := core.SessionID{Agent: "together by " + name, Session: "main"}
		bad := append(slices.Clone(list), s.message("nobody", "no role"))
		if err := way(id, bad); err != nil && len(s.held(id)) > 0 {
			return fmt.Sprintf("%s of %d messages was refused because of the last one (%v), and %d are stored", name, len(bad), err, len(s.held(id)))
		}
		// The store takes the first part, where there are parts, and no second one.
		id.Session = "a store that fails"
		s.env.faults.armAfter(faultAppend, 1, 1000)
		err := way(id, list)
		s.env.faults.disarm()
		if n := len(s.held(id)); err != nil && n > 0 || err == nil && n != len(list) {
			return fmt.Sprintf("%s of %d messages, of which the store takes one append: error %v, %d are stored, want all or none", name, len(list), err, n)
		}
		s.recover()
	}
	return s.madeAgain()
}

// madeAgain lets each call that stores something fail before anything is stored, and makes it again.
func (s *script) madeAgain() string {
	// An engine that gave up is made anew: the calls are those of the one that there is.
	tellings := func() map[string]func(core.SessionID, []message.Message) error {
		out := s.tellings()
		maps.Copy(out, s.counted())
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(tellings())) {
		id := core.SessionID{Agent: "again by " + name, Session: "main"}
		list := s.transcript(2).Messages
		s.env.faults.arm(faultAppend, 1000)
		err := tellings()[name](id, copiedMessages(list))
		hits := s.env.faults.disarm()
		s.recover()
		s.env.Host.advance(time.Hour)
		if hits == 0 || len(s.held(id)) > 0 || s.over {
			continue
		}
		what := fmt.Sprintf("%s made again, after the store's append failed (error %v) and nothing was stored", name, err)
		if err := tellings()[name](id, list); err != nil {
			return fmt.Sprintf("%s: %v, want none", what, err)
		}
		var stored []message.Message
		for _, e := range s.held(id) {
			stored = append(stored, e.Message)
		}
		if text := sameTexts(stored, list); text != "" {
			return fmt.Sprintf("%s: %s", what, text)
		}
	}
	return ""
}

// counted are calls that name what they store, and for which it is an error that they do not say that all of it is new.
func (s *script) counted() map[string]func(core.SessionID, []message.Message) error {
	out := map[string]func(core.SessionID, []message.Message) error{}
	all := func(what string, got, want int, err error) error {
		if err == nil && got != want {
			return fmt.Errorf("it says that of %d new %s %d are new", want, what, got)
		}
		return err
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		out["commit turn"] = func(id core.SessionID, list []message.Message) error {
			res, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: id, AdvancementKey: "turn", Messages: list})
			return all("turns", map[string]int{core.Committed: 1}[res.Status], 1, err)
		}
	}
	if e, ok := s.engine.(core.BatchIngester); ok {
		out["ingest batch"] = func(id core.SessionID, list []message.Message) error {
			res, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: list, IdempotencyKey: "call"})
			return all("messages", res.Ingested, len(list), err)
		}
	}
	if e, ok := s.engine.(core.Bootstrapper); ok {
		out["bootstrap"] = func(id core.SessionID, list []message.Message) error {
			res, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: id, Transcript: &core.Transcript{Messages: list}})
			return all("messages", res.Imported, len(list), err)
		}
	}
	return out
}
