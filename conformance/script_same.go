package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// heldChecks look at what is stored, and at how an entry is told from another one.
var heldChecks = []Check{
	{ID: "contract.same", Promise: 2, Suite: SuiteEngine, script: scriptSame,
		Rule: "messages that say the same are as many messages, also in one call with a key, and in a transcript with one id; those with another id or key of their host's are others"},
	{ID: "contract.when", Promise: 2, Suite: SuiteEngine, script: scriptWhen,
		Rule: "an entry has its host's time to the millisecond, in UTC, or the clock's, and the number of the user turn that it was said in"},
}

// alikes are messages of which most say the same.
func alikes() []message.Message {
	var out []message.Message
	for _, text := range []string{"ok", "ok", "no", "ok", "no", "ok"} {
		out = append(out, message.New(message.User, text))
	}
	return append(out, message.New(message.Assistant, "ok"), message.New(message.Assistant, "ok"))
}

func scriptSame(s *script) string {
	list := alikes()
	e, ok := s.engine.(core.BatchIngester)
	for _, key := range []string{"one", "two", ""} {
		if !ok {
			break
		}
		req := core.IngestBatchRequest{Session: s.id, IdempotencyKey: key, Messages: list}
		before := len(s.held(s.id))
		res, err := e.IngestBatch(s.ctx(), req)
		ids := slices.Compact(slices.Sorted(slices.Values(res.IDs)))
		if err != nil || res.Ingested != len(list) || res.Duplicates != 0 || len(ids) != len(list) || len(s.held(s.id)) != before+len(list) {
			return fmt.Sprintf("a batch of %d messages, of which most say the same, with the key %q: %+v, error %v, %d entries more are stored", len(list), key, res, err, len(s.held(s.id))-before)
		}
		if key == "" {
			break // nobody can tell it from a new one
		}
		if key == "two" && s.restarts() {
			s.reopen(true)
			e, _ = s.engine.(core.BatchIngester)
		}
		again, err := e.IngestBatch(s.ctx(), req)
		if err != nil || again.Ingested != 0 || again.Duplicates != len(list) || !slices.Equal(again.IDs, res.IDs) {
			return fmt.Sprintf("the same batch with the key %q again: %+v, error %v, want %d duplicates of %q", key, again, err, len(list), res.IDs)
		}
	}
	for _, by := range []string{"id", "key"} {
		if text := s.othersOf(by); text != "" {
			return text
		}
	}
	return s.eachRead(s.readsSame)
}

// readsSame hands over a transcript that says the same again and again, under one id or key of its host's.
func (s *script) readsSame(id core.SessionID, call reading) string {
	turn := []message.Message{message.New(message.User, "ok"), message.New(message.Assistant, "yes")}
	for _, by := range []string{"id", "key"} {
		for _, whole := range []bool{false, true} {
			id.Session = fmt.Sprintf("the same by %s, whole: %v", by, whole)
			t := &core.Transcript{Whole: whole}
			for range 3 {
				for n, m := range turn {
					if by == "id" {
						m.ID = fmt.Sprintf("host-%d", n)
					} else {
						m.Key = fmt.Sprintf("host-%d", n)
					}
					t.Messages = append(t.Messages, m)
				}
				if err := call(id, &core.Transcript{Messages: copiedMessages(t.Messages), Whole: whole}); err != nil {
					return fmt.Sprintf("a transcript of %d messages that say the same by turns: error %v", len(t.Messages), err)
				}
				res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: transcriptBudget, PromptMode: core.PromptNone})
				if err != nil {
					return fmt.Sprintf("assemble: error %v", err)
				}
				if n := len(s.held(id)); n != len(t.Messages) || len(res.Messages) != n {
					return fmt.Sprintf("messages that say the same are as many messages, also with one %s; of a transcript of %d (whole: %v) %d are stored and %d shown", by, len(t.Messages), whole, n, len(res.Messages))
				}
			}
		}
	}
	return ""
}

// othersOf hands over messages that differ in what their host knows them by, and in nothing else: by ingest the first half, at the end of a turn the rest.
func (s *script) othersOf(by string) string {
	id := core.SessionID{Agent: "agent-a", Session: "others by " + by}
	var list []message.Message
	for _, name := range []string{"host-0", "host-1", "host-10", "host-", "HOST-0", "host-0 "} {
		m := message.New(message.User, "ok")
		if m.Time = s.env.Host.Now(); by == "id" {
			m.ID = name
		} else {
			m.Key = name
		}
		list = append(list, m)
	}
	for n, m := range list[:3] {
		if res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil || res.Ingested != 1 {
			return fmt.Sprintf("message %d with %s %q, which differs from those before in nothing else: %+v, error %v, want it stored", n, by, list[n].ID+list[n].Key, res, err)
		}
	}
	e, ok := s.engine.(core.AfterTurner)
	for range 2 {
		if !ok {
			break
		}
		if err := e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: id, Messages: copiedMessages(list), PrePrompt: 3}); err != nil {
			return fmt.Sprintf("after turn: error %v", err)
		}
		if n := len(s.held(id)); n != len(list) {
			return fmt.Sprintf("%d messages that differ in their %s alone, 3 ingested and the rest at the end of a turn: %d are stored", len(list), by, n)
		}
	}
	return ""
}

// spokenTurns is a conversation, and the user turn that each message of it belongs to.
func (s *script) spokenTurns() (list []message.Message, turns []int64) {
	call, result := s.message(message.Assistant, "looks"), s.message(message.Tool, "")
	call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "call_1", Name: "look", Args: "{}"})
	result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call_1", Name: "look", Text: "it is quiet"}}
	list = []message.Message{
		s.message(message.System, "be brief"), s.message(message.User, "see"), call, result, s.message(message.Assistant, "done"),
		s.message(message.User, "go on"), s.message(message.Assistant, "well"), s.message(message.User, "and"), s.message(message.Assistant, "no more"),
	}
	return list, []int64{0, 1, 1, 1, 1, 2, 2, 3, 3}
}

func scriptWhen(s *script) string {
	for _, name := range slices.Sorted(maps.Keys(s.ways())) {
		id := core.SessionID{Agent: "agent-a", Session: "when by " + name}
		list, turns := s.spokenTurns()
		for i := range list {
			if i%3 != 1 { // the others are made when the clock says
				list[i].Time = s.env.Host.Now().Truncate(time.Second).Add(-time.Duration(len(list)-i)*time.Minute + 123*time.Millisecond).In(time.FixedZone("elsewhere", 5400))
			}
		}
		now := s.env.Host.Now()
		if err := s.ways()[name](id, copiedMessages(list)); err != nil { // a restart may have made a new engine
			return fmt.Sprintf("%s: error %v", name, err)
		}
		held := s.held(id)
		if len(held) != len(list) {
			return fmt.Sprintf("%s of %d messages: %d are stored", name, len(list), len(held))
		}
		for i, e := range held {
			want := list[i].Time
			if want.IsZero() {
				want = now
			}
			_, offset := e.Time.Zone()
			switch {
			case e.Time.Sub(want).Abs() >= time.Millisecond, offset != 0:
				return fmt.Sprintf("message %d by %s, made at %v by its host, is stored with the time %v, want %v", i, name, list[i].Time, e.Time, want.UTC())
			case e.Turn != turns[i]:
				return fmt.Sprintf("message %d by %s (%s) is stored in turn %d, want %d", i, name, e.Role, e.Turn, turns[i])
			}
		}
		if text := s.turnsGoOn(id, name, slices.Max(turns)); text != "" {
			return text
		}
		s.env.Host.advance(1234 * time.Millisecond)
	}
	return ""
}

// turnsGoOn lets a timer have a turn in a session with so many of a user's, and then the user, after a restart where there may be one.
func (s *script) turnsGoOn(id core.SessionID, way string, turns int64) string {
	told := func(beat bool, want int64, roles ...message.Role) string {
		req := core.IngestBatchRequest{Session: id, Heartbeat: beat}
		for _, role := range roles {
			req.Messages = append(req.Messages, s.message(role, "later"))
		}
		before := len(s.held(id))
		if e, ok := s.engine.(core.BatchIngester); ok {
			if _, err := e.IngestBatch(s.ctx(), req); err != nil {
				return fmt.Sprintf("ingest batch: error %v", err)
			}
		} else {
			for _, m := range req.Messages {
				if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m, Heartbeat: beat}); err != nil {
					return fmt.Sprintf("ingest: error %v", err)
				}
			}
		}
		for _, e := range s.held(id)[before:] {
			if e.Turn != want {
				return fmt.Sprintf("a message that came after what %s stored (%s, of a timer: %v) is in turn %d, want %d", way, e.Role, beat, e.Turn, want)
			}
		}
		return ""
	}
	if text := told(true, turns, message.User, message.Assistant, message.User, message.Assistant); text != "" {
		return text
	}
	if text := told(false, turns, message.Assistant); text != "" {
		return text
	}
	if strings.HasPrefix(way, "ingest") && s.restarts() {
		s.reopen(true)
	}
	if text := told(false, turns+1, message.User, message.Assistant); text != "" {
		return text
	}
	return told(false, turns+2, message.User)
}
