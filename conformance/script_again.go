package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// againChecks look at the second time, at several at once, and at what stays after a restart.
var againChecks = []Check{
	{ID: "contract.again", Promise: 4, Suite: SuiteEngine, Needs: []Need{NeedOwner}, script: scriptAgain,
		Rule: "the second compaction is as true as the first, in every field and with its wishes, and the third, after a restart and without a budget of its own, too"},
	{ID: "contract.keys", Promise: 6, Suite: SuiteEngine, script: scriptKeys,
		Rule: "keys hold after a restart, for every session apart, to their last byte and however many turns came since, and a batch of known and new messages stores the new ones"},
	{ID: "contract.concurrent", Promise: 8, Suite: SuiteEngine, script: scriptConcurrent,
		Rule: "calls at the same time get what each of them gets alone, whether for one session or for several, no session waits for another one, and no result changes later"},
	{ID: "contract.known", Promise: 6, Suite: SuiteEngine, script: scriptKnown,
		Rule: "what is known of a session is known after a restart, in every field of every way to store it"},
}

func scriptAgain(s *script) string {
	if _, text := s.talk(s.id, 24, 25); text != "" {
		return text
	}
	var last core.CompactResult
	for round, wishes := range []string{"keep the kestrel bridge", "keep the harbour of Å – 橋", "keep the third"} {
		if round > 0 {
			if _, text := s.talk(s.id, 24, 25); text != "" {
				return text
			}
		}
		if _, err := s.assemble(900, nil); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		req := core.CompactRequest{Session: s.id, Budget: 900, Force: true, Instructions: wishes}
		if round == 2 {
			if s.restarts() {
				s.reopen(true)
				if _, err := s.assemble(900, nil); err != nil {
					return fmt.Sprintf("assemble after a restart: error %v", err)
				}
			}
			req.Budget, req.Force = 0, false
		}
		calls := s.env.Model.Calls()
		res, err := s.engine.Compact(s.ctx(), req)
		what := fmt.Sprintf("compaction %d of a conversation that goes on (budget %d, forced %v)", round+1, req.Budget, req.Force)
		switch {
		case err != nil || !res.OK || !res.Compacted || res.Delegated || res.TokensAfter <= 0 || res.TokensBefore <= res.TokensAfter || res.Successor != (core.SessionID{}):
			return fmt.Sprintf("%s: %+v, error %v", what, res, err)
		case s.env.Model.Calls() > calls && !s.env.Model.heard(wishes):
			return what + ": the model was asked, never with the wishes"
		case round > 0 && res.FirstKept == last.FirstKept:
			return fmt.Sprintf("%s: the first kept is %q, as before", what, res.FirstKept)
		}
		held := s.held(s.id)
		var said []core.Entry
		newest := ""
		for _, e := range held {
			switch e.Type {
			case core.TypeMessage:
				said = append(said, e)
			case core.TypeSummary:
				newest = e.Text()
			}
		}
		if newest != "" && (strings.TrimSpace(res.Summary) == "" || !strings.Contains(newest, strings.TrimSpace(res.Summary))) {
			return fmt.Sprintf("%s: the result's summary is %.60q, the stored one %.60q", what, res.Summary, newest)
		}
		if text := s.firstKept(s.id, res, said); text != "" {
			return what + ": " + text
		}
		idle, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: s.id, Budget: 1 << 20})
		if err != nil || idle.TokensBefore != 0 && idle.TokensBefore != res.TokensAfter {
			return fmt.Sprintf("%s ended at %d tokens, right after it a session costs %d, error %v", what, res.TokensAfter, idle.TokensBefore, err)
		}
		live := 0
		for _, e := range said[max(len(said)-24, 0):] {
			live += e.Tokens
		}
		if last = res; res.TokensBefore < live || res.TokensBefore > 3*live {
			return fmt.Sprintf("%s: it began at %d tokens, the newest 24 messages cost %d", what, res.TokensBefore, live)
		}
	}
	return ""
}

// longestKey is how long a key of a call may be, in bytes.
const longestKey = 256

func scriptKeys(s *script) string {
	e, ok := s.engine.(core.BatchIngester)
	if !ok {
		return ""
	}
	list := []message.Message{s.message(message.User, "one"), s.message(message.Assistant, "two"), s.message(message.User, "three"), s.message(message.Assistant, "four")}
	first, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: list[:2]})
	if err != nil || first.Ingested != 2 {
		return fmt.Sprintf("a batch of 2: %+v, error %v", first, err)
	}
	res, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: list})
	if err != nil || res.Ingested != 2 || res.Duplicates != 2 || len(res.IDs) != 4 || !slices.Equal(res.IDs[:2], first.IDs) {
		return fmt.Sprintf("a batch of 2 known messages and 2 new ones: %+v, error %v, the known are %q", res, err, first.IDs)
	}
	for i, id := range res.IDs {
		if entry, text := s.get(s.id, id); text != "" || entry.Text() != list[i].Text() {
			return fmt.Sprintf("message %d of a batch is %q %s, want %q", i, entry.Text(), text, list[i].Text())
		}
	}
	long := strings.Repeat("k", longestKey-1)
	bare := func(text string) []message.Message { return []message.Message{message.New(message.User, text)} }
	other := sessionOf(1)
	n := 0
	for _, c := range []struct {
		id      core.SessionID
		key     string
		restart bool
		new     int
	}{
		{s.id, "call", false, 1}, {s.id, "call", false, 0}, {other, "call", false, 1}, {s.id, "call", true, 0}, {other, "call", false, 0},
		{s.id, "caLL", false, 1}, {s.id, "call ", false, 1}, {s.id, "call", false, 0},
		{s.id, long + "a", false, 1}, {s.id, long + "b", false, 1}, {s.id, long + "a", false, 0}, {s.id, long + "b", true, 0},
		{s.id, "ka" + long[1:], false, 1}, {s.id, "kb" + long[1:], false, 1}, {s.id, "ka" + long[1:], false, 0}, {s.id, "", false, 1}, {s.id, "", false, 1},
	} {
		if n++; c.restart {
			if !s.restarts() {
				continue
			}
			s.reopen(true)
			e, _ = s.engine.(core.BatchIngester)
		}
		const text = "the same in every call" // the keys tell them apart, nothing else
		for _, batch := range []bool{false, true} {
			var got core.IngestResult
			if batch {
				got, err = e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: c.id, Messages: bare(text + " of a batch"), IdempotencyKey: keyOf(c.key, "+")})
			} else {
				got, err = s.engine.Ingest(s.ctx(), core.IngestRequest{Session: c.id, Message: bare(text)[0], IdempotencyKey: c.key})
			}
			if err != nil || got.Ingested != c.new || got.Duplicates != 1-c.new || len(got.IDs) != 1 {
				return fmt.Sprintf("call %d into %s with the key %.20q (%d bytes), in a batch: %v, after a restart: %v: %+v, error %v, want %d new", n, c.id, c.key, len(c.key), batch, c.restart, got, err, c.new)
			}
		}
	}
	if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: bare("too long")[0], IdempotencyKey: long + "ab"}); !errors.Is(err, core.ErrInvalid) {
		return fmt.Sprintf("an idempotency key of %d bytes: error %v, want ErrInvalid", longestKey+1, err)
	}
	return s.oldTurns()
}

// keyOf makes the key of another call out of one, without changing its length. An empty one stays empty.
func keyOf(key, mark string) string {
	if key == "" {
		return ""
	}
	return mark + key[1:]
}

// oldTurns commits turns, and each of them again when all are there.
func (s *script) oldTurns() string {
	e, ok := s.engine.(core.TurnCommitter)
	if !ok {
		return ""
	}
	id := sessionOf(2)
	var reqs []core.CommitTurnRequest
	long := strings.Repeat("k", longestKey-1)
	keys := []string{"turn", "Turn", "turn ", long + "a", long + "b", "a" + long, "b" + long}
	for i := range 8 {
		keys = append(keys, fmt.Sprintf("turn-%d", i))
	}
	for i, key := range keys {
		req := core.CommitTurnRequest{Session: id, AdvancementKey: key, Messages: []message.Message{message.New(message.User, "go on"), message.New(message.Assistant, "done")}}
		if res, err := e.CommitTurn(s.ctx(), req); err != nil || res.Status != core.Committed {
			return fmt.Sprintf("turn %d, which says what others say: %+v, error %v, want it committed", i+1, res, err)
		}
		reqs = append(reqs, req)
	}
	for i, req := range reqs {
		if res, err := e.CommitTurn(s.ctx(), req); err != nil || res.Status != core.Duplicate || len(s.held(id)) != 2*len(reqs) {
			return fmt.Sprintf("turn %d of %d once more: %+v, error %v, %d entries are stored, want a duplicate and %d", i+1, len(reqs), res, err, len(s.held(id)), 2*len(reqs))
		}
	}
	return s.agedTurns(e)
}

// concurrent is how many calls are made at the same time.
const concurrent = 8

func scriptConcurrent(s *script) string {
	var ids []core.SessionID
	var want, got [concurrent]core.AssembleResult
	for i := range concurrent {
		id := core.SessionID{Agent: fmt.Sprintf("at-once-%d", i), Session: "main"} // agents, so that none recalls what another one says
		if _, text := s.talk(id, 3, 20); text != "" {
			return text
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		var err error
		if want[i], err = s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 4000}); err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		want[i].Messages = copiedMessages(want[i].Messages)
		want[i].Choices, want[i].Stepped = slices.Clone(want[i].Choices), false
	}
	text := atOnce(concurrent, func(i int) (text string) {
		var err error
		if got[i], err = s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: ids[i], Budget: 4000}); err != nil {
			return fmt.Sprintf("assemble while others are: error %v", err)
		}
		return ""
	})
	if text != "" {
		return text
	}
	for i := range ids {
		if d := differs(got[i], want[i]); d != "" {
			return "assemble while others are: " + d
		}
		for j := range got[i].Messages {
			if got[i].Messages[j].Entry != want[i].Messages[j].Entry {
				return fmt.Sprintf("message %d, assembled while others were, shows entry %q, want %q", j, got[i].Messages[j].Entry, want[i].Messages[j].Entry)
			}
		}
	}
	one := core.SessionID{Agent: "agent-b", Session: "all at once"}
	var list [concurrent]message.Message
	for i := range list {
		list[i] = s.message(message.User, "at the same time")
	}
	text = atOnce(concurrent, func(i int) string {
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: one, Message: list[i]})
		if err != nil || res.Ingested != 1 || len(res.IDs) != 1 {
			return fmt.Sprintf("ingest into a session that others write to: %+v, error %v", res, err)
		}
		return ""
	})
	if held := s.held(one); text == "" && len(held) != concurrent {
		text = fmt.Sprintf("of %d messages ingested at the same time %d are stored", concurrent, len(held))
	}
	if text != "" {
		return text
	}
	return s.sideBySide()
}

// sideBySide uses a session while the store lets another one wait, in each call that stores something.
func (s *script) sideBySide() string {
	for _, name := range []string{"ingest", "ingest batch", "bootstrap", "commit turn", "after turn", "assemble", "compact"} {
		waits := core.SessionID{Agent: "waits", Session: name}
		call := s.storing(waits)[name]
		if call == nil {
			continue
		}
		if text := s.whileHeld(waits, call, func() string { return s.goesOn(core.SessionID{Agent: "goes on beside " + name, Session: "main"}) }); text != "" {
			return fmt.Sprintf("while the store lets %s of another session wait: %s", name, text)
		}
	}
	return ""
}

// storing are the calls for a session, of which all that take messages store some.
func (s *script) storing(id core.SessionID) map[string]func(context.Context) error {
	calls, t := s.calls(id), s.transcript(3)
	calls["assemble"] = func(ctx context.Context) error {
		_, err := s.engine.Assemble(ctx, core.AssembleRequest{Session: id, Budget: 4000, Transcript: t})
		return err
	}
	calls["compact"] = func(ctx context.Context) error {
		_, _ = s.engine.Compact(ctx, core.CompactRequest{Session: id, Budget: 4000, Transcript: t}) // that it returns is what counts here
		return nil
	}
	return calls
}

// whileHeld makes a call that the store lets wait, and does something meanwhile. A call that stores nothing only returns.
func (s *script) whileHeld(id core.SessionID, call func(context.Context) error, do func() string) string {
	reached, release := s.env.faults.hold(id)
	defer release()
	done := make(chan string, 1)
	go func() {
		done <- guard(func() string {
			if err := call(s.ctx()); err != nil {
				return fmt.Sprintf("the call that waited: error %v", err)
			}
			return ""
		})
	}()
	select {
	case text := <-done:
		return text
	case <-reached:
	}
	text := do()
	release()
	return cmp.Or(text, <-done)
}

// goesOn uses a session.
func (s *script) goesOn(id core.SessionID) string {
	if _, text := s.talk(id, 2, 3); text != "" {
		return text
	}
	if res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 4000}); err != nil || len(res.Messages) != 2 {
		return fmt.Sprintf("assemble: %d messages, error %v, want 2", len(res.Messages), err)
	}
	_, _ = s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: 4000}) // that it returns is what counts here
	return ""
}

func scriptDigest(s *script) string {
	t := s.transcript(4)
	var epoch uint64
	for n := range 12 {
		now := &core.Transcript{Messages: slices.Clone(t.Messages)}
		if n%3 == 2 {
			skip := len(now.Messages) - 1
			now.Skipped, now.Digest, now.Messages = skip, message.DigestOf(now.Messages[:skip]), now.Messages[skip:]
		}
		res, err := s.assemble(8000, func(r *core.AssembleRequest) { r.Transcript = now })
		if errors.Is(err, core.ErrNeedTranscript) && now.Skipped > 0 {
			res, err = s.assemble(8000, func(r *core.AssembleRequest) { r.Transcript = &core.Transcript{Messages: t.Messages} })
		}
		if err != nil || len(res.Messages) != len(t.Messages) {
			return fmt.Sprintf("assemble with %d messages of a host: %d are shown, error %v", len(t.Messages), len(res.Messages), err)
		}
		if n > 0 && (res.Epoch != epoch || res.Stepped) {
			return fmt.Sprintf("a host's conversation of %d messages only grew, the epoch was %d and is %d, stepped is %v", len(t.Messages), epoch, res.Epoch, res.Stepped)
		}
		epoch = res.Epoch
		t.Messages = append(t.Messages, s.transcript(2).Messages...)
	}
	return s.eachRead(s.readsSkipped)
}

func scriptKnown(s *script) string {
	list := s.everyField()
	image := s.message(message.User, "see")
	image.Parts = append(image.Parts, message.Part{Kind: message.Image, Raw: []byte(`{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + pixel + `"}}`)})
	called := s.message(message.Assistant, "")
	called.Parts = []message.Part{{Kind: message.ToolCall, CallID: "call_2", Name: "read", Args: `{"path": "Å – 橋"}`}}
	result := s.message(message.Tool, "")
	result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call_2", Name: "read", Text: markOf(0, 701) + " 橋 ", IsError: true}}
	list = append(list, image, called, result)
	for name, way := range s.ways() {
		id := core.SessionID{Agent: "agent-a", Session: "by " + name}
		if err := way(id, copiedMessages(list)); err != nil {
			return fmt.Sprintf("%s: error %v", name, err)
		}
		held := s.held(id)
		if len(held) != len(list) {
			return fmt.Sprintf("%s of %d messages: %d are stored", name, len(list), len(held))
		}
		for i := range held {
			if d := differs(held[i].Message, list[i]); d != "" {
				return fmt.Sprintf("message %d by %s, against what was given: %s", i, name, d)
			}
		}
	}
	return s.knownAgain()
}

// ways are the calls that store messages for a session, as many of them as there are.
func (s *script) ways() map[string]func(core.SessionID, []message.Message) error {
	ways := map[string]func(core.SessionID, []message.Message) error{}
	if e, ok := s.engine.(core.BatchIngester); ok {
		ways["ingest batch"] = func(id core.SessionID, m []message.Message) error {
			_, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: id, Messages: m})
			return err
		}
	}
	if e, ok := s.engine.(core.TurnCommitter); ok {
		ways["commit turn"] = func(id core.SessionID, m []message.Message) error {
			_, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: id, AdvancementKey: "turn", Messages: m})
			return err
		}
	}
	if e, ok := s.engine.(core.AfterTurner); ok {
		ways["after turn"] = func(id core.SessionID, m []message.Message) error {
			return e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: id, Messages: m})
		}
	}
	if e, ok := s.engine.(core.Bootstrapper); ok {
		ways["bootstrap"] = func(id core.SessionID, m []message.Message) error {
			_, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: id, Transcript: &core.Transcript{Messages: m}})
			return err
		}
	}
	ways["ingest"] = func(id core.SessionID, m []message.Message) error {
		for i := range m {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m[i]}); err != nil {
				return err
			}
		}
		return nil
	}
	return ways
}

// knownAgain looks at what bootstrap says after a restart, and at a timer's turn then.
func (s *script) knownAgain() string {
	if !s.restarts() {
		return ""
	}
	t := s.transcript(6)
	if e, ok := s.engine.(core.Bootstrapper); ok {
		if _, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: s.id, Transcript: t}); err != nil {
			return fmt.Sprintf("bootstrap: error %v", err)
		}
	}
	s.reopen(true)
	if e, ok := s.engine.(core.Bootstrapper); ok {
		res, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: s.id})
		if err != nil || res.Known != 6 || res.Imported != 0 {
			return fmt.Sprintf("bootstrap of 6 messages after a restart: %+v, error %v", res, err)
		}
	}
	e, ok := s.engine.(core.TurnCommitter)
	if !ok {
		return ""
	}
	res, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: s.id, AdvancementKey: "tick", Messages: s.transcript(2).Messages, Heartbeat: true})
	if err != nil || res.Status != core.Committed || len(res.IDs) != 2 {
		return fmt.Sprintf("a timer's turn after a restart: %+v, error %v", res, err)
	}
	for _, id := range res.IDs {
		if entry, text := s.get(s.id, id); text != "" || entry.Type != core.TypeHeartbeat {
			return fmt.Sprintf("a timer's turn after a restart is stored as %q %s", entry.Type, text)
		}
	}
	return s.agentForgotten()
}

// agentForgotten erases what all sessions of an agent hold of a time.
func (s *script) agentForgotten() string {
	f, ok := s.engine.(engine.Forgetter)
	if !ok {
		return ""
	}
	s.env.Host.advance(time.Hour)
	from := s.env.Host.Now()
	var of []core.SessionID
	for _, name := range []string{"main", "forgotten too"} {
		id := core.SessionID{Agent: "agent-b", Session: name}
		if _, text := s.talk(id, 2, 4); text != "" {
			return text
		}
		of = append(of, id)
	}
	rec, err := f.Forget(s.ctx(), engine.ForgetRequest{Scope: core.Scope{Agent: "agent-b"}, From: from})
	if err != nil || rec.Entries != 4 || rec.Sessions != 2 {
		return fmt.Sprintf("forget of 4 entries in 2 sessions of an agent: %+v, error %v", rec, err)
	}
	for _, id := range of {
		for _, e := range s.held(id) {
			if e.Type != core.TypeErased && !e.Time.Before(from) {
				return fmt.Sprintf("entry %q of session %s outlived the erasure of its agent's", e.ID, id)
			}
		}
	}
	return ""
}
