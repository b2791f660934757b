package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// moreScriptChecks look at what takes more than a call or two to see.
var moreScriptChecks = []Check{
	{ID: "contract.shown", Promise: 2, Suite: SuiteEngine, script: scriptShown,
		Rule: "a message that is shown whole is the stored one in every field: bytes, ids, names, times, thinking, arguments and errors"},
	{ID: "contract.given", Suite: SuiteEngine, script: scriptGiven,
		Rule: "an engine changes nothing of a request, and writes nothing behind its lists"},
	{ID: "contract.long", Promise: 2, Suite: SuiteEngine, script: scriptLong,
		Rule: "of more than a thousand messages none is lost, and none comes in another place"},
	{ID: "contract.names", Promise: 8, Suite: SuiteEngine, script: scriptNames,
		Rule: "sessions whose names are alike share nothing: no message, no key and no window"},
	{ID: "contract.whole", Promise: 6, Suite: SuiteEngine, script: scriptWhole,
		Rule: "a transcript that is declared whole takes back what it leaves out; another one only does not show it, whatever call it comes with"},
	{ID: "contract.budget", Promise: 1, Suite: SuiteEngine, script: scriptBudget,
		Rule: "a call's budget bounds its prompt, whatever the last one was and whatever the settings say of a model; their words are the host's own"},
	{ID: "contract.odd", Promise: 5, Suite: SuiteEngine, script: scriptOdd,
		Rule: "messages that say the same, ids of calls used again, odd times and system messages in the middle and at the end stay where they were said, by whatever call they come"},
	{ID: "contract.digest", Promise: 6, Suite: SuiteEngine, script: scriptDigest,
		Rule: "a digest that cannot be matched is ErrNeedTranscript, whatever call it comes with, and the epoch stays while a host's conversation only grows"},
	{ID: "contract.transcript", Promise: 6, Suite: SuiteEngine, script: scriptTranscript,
		Rule: "every call that takes a transcript takes all of it, however long it is, also what says the same under another name than what is not shown any more and results that say the same, each once, but nothing of what nobody said"},
	{ID: "contract.atomic", Promise: 9, Suite: SuiteEngine, script: scriptAtomic,
		Rule: "what comes in one call is stored whole or not at all, however much it is, and after a failure the same call does what it would have done"},
	{ID: "contract.asked", Promise: 6, Suite: SuiteEngine, script: scriptAsked,
		Rule: "asking for the window, at whatever point, leaves what a later call shows as it would be"},
	{ID: "contract.maintain", Suite: SuiteEngine, script: scriptMaintain,
		Rule: "Maintain says whether it changed anything; where it would have, and the store fails or its context has ended, it is an error, as of any call"},
}

// everyField are messages with something in every field that hosts set.
func (s *script) everyField() []message.Message {
	args := `{"path": "a b",  "n":1e3}`
	call := s.message(message.Assistant, "reads it")
	call.Stop, call.Usage = "toolUse", message.Usage{Input: 5, Output: 3, CacheRead: 2, CacheWrite: 1}
	call.Parts = append([]message.Part{{Kind: message.Thinking, Text: "because", Signature: "c2ln"}}, call.Parts...)
	call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "call_1", Name: "read", Args: args})
	result := s.message(message.Tool, "")
	result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call_1", Name: "read", Text: markOf(0, 700) + " no such file", IsError: true}}
	named := s.message(message.User, "says kim \n")
	named.Name = "kim"
	answer := s.message(message.Assistant, "done")
	answer.Stop, answer.Usage = "stop", message.Usage{Input: 9, Output: 4}
	odd := s.message(message.User, "odd \xff\xfe bytes\x00 and \ufeff marks")
	last := s.message(message.Assistant, "well")
	list := []message.Message{named, call, result, answer, odd, last}
	for i := range list {
		list[i].Time = s.env.Host.Now()
	}
	return list
}

func scriptShown(s *script) string {
	list := s.everyField()
	for i, m := range list {
		if i == 0 || i == 3 { // as a host wrote them
			raw, err := message.Encode(m, message.FormatOpenAI)
			if err != nil {
				return err.Error()
			}
			m.Format, m.Raw = message.FormatOpenAI, slices.Concat([]byte(" "), raw, []byte("  "))
		}
		if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: m}); err != nil {
			return fmt.Sprintf("ingest: error %v", err)
		}
	}
	stored := s.held(s.id)
	res, err := s.assemble(8000, nil)
	if err != nil || len(res.Messages) != len(stored) {
		return fmt.Sprintf("assemble: %d messages, error %v, want %d", len(res.Messages), err, len(stored))
	}
	for i, m := range res.Messages {
		if d := differs(m, stored[i].Message); d != "" {
			return fmt.Sprintf("message %d that is shown, against the stored one: %s", i, d)
		}
	}
	return ""
}

// scriptAsked tells two sessions the same. Of one the window is asked for before each message, and of an empty session as well.
func scriptAsked(s *script) string {
	list := append([]message.Message{s.message(message.System, "be brief")}, s.everyField()...)
	list = append(list, s.message(message.System, "and kind"), s.message(message.User, "go on"))
	var windows []core.AssembleResult
	for _, id := range []core.SessionID{s.id, sessionOf(2)} {
		s.id = id
		for i := range list {
			if len(windows) == 0 {
				if _, err := s.assemble(8000, nil); err != nil {
					return fmt.Sprintf("assemble before message %d: error %v", i, err)
				}
			}
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: list[i]}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
		}
		res, err := s.assemble(8000, nil)
		if err != nil {
			return fmt.Sprintf("assemble: error %v", err)
		}
		for i := range res.Messages {
			res.Messages[i].Entry = "" // each has its own
		}
		windows = append(windows, res)
	}
	if d := differs(windows[0].Messages, windows[1].Messages); d != "" {
		return "what is shown where the window was asked for before each message, against one that was not: " + d
	}
	return ""
}

// beyond returns messages with another one behind the end of the list.
func beyond(list []message.Message) []message.Message {
	return append(slices.Clone(list), message.New(message.User, "beyond"))[:len(list)]
}

func scriptGiven(s *script) string {
	list := s.transcript(6).Messages
	list = append(list, s.everyField()...)
	for i := range list {
		if i%2 == 0 { // as a host wrote them
			raw, err := message.Encode(list[i], message.FormatOpenAI)
			if err != nil {
				return err.Error()
			}
			list[i].Format, list[i].Raw = message.FormatOpenAI, raw
		}
		for j := range list[i].Parts {
			list[i].Parts[j].Raw = []byte(`{"type": "text"}`)
		}
	}
	lists := map[string][]message.Message{}
	given := func(name string, from, to int) []message.Message {
		lists[name] = beyond(list[from:to])
		return lists[name]
	}
	// Those that a request points to.
	transcripts := map[string]*core.Transcript{}
	pointed := func(name string) *core.Transcript {
		transcripts[name] = &core.Transcript{Messages: given(name, 0, 12)}
		return transcripts[name]
	}
	memory := core.MemoryPrompt{AvailableTools: []string{"jotter", "b", "a"}, CitationMode: "on", Sections: []string{"The notes tool is called jotter.", "Be brief."}}
	calls := []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"ingest", func(ctx context.Context) error {
			_, err := s.engine.Ingest(ctx, core.IngestRequest{Session: s.id, Message: given("ingest", 0, 1)[0]})
			return err
		}},
		{"ingest batch", func(ctx context.Context) error {
			e, ok := s.engine.(core.BatchIngester)
			if !ok {
				return nil
			}
			_, err := e.IngestBatch(ctx, core.IngestBatchRequest{Session: s.id, Messages: given("ingest batch", 1, 4)})
			return err
		}},
		{"commit turn", func(ctx context.Context) error {
			e, ok := s.engine.(core.TurnCommitter)
			if !ok {
				return nil
			}
			_, err := e.CommitTurn(ctx, core.CommitTurnRequest{Session: s.id, AdvancementKey: "turn", Messages: given("commit turn", 4, 6)})
			return err
		}},
		{"after turn", func(ctx context.Context) error {
			e, ok := s.engine.(core.AfterTurner)
			if !ok {
				return nil
			}
			return e.AfterTurn(ctx, core.AfterTurnRequest{Session: s.id, Messages: given("after turn", 0, 10), PrePrompt: 6})
		}},
		{"bootstrap", func(ctx context.Context) error {
			e, ok := s.engine.(core.Bootstrapper)
			if !ok {
				return nil
			}
			_, err := e.Bootstrap(ctx, core.BootstrapRequest{Session: s.id, Transcript: pointed("bootstrap")})
			return err
		}},
		{"assemble", func(ctx context.Context) error {
			_, err := s.engine.Assemble(ctx, core.AssembleRequest{Session: s.id, Budget: 4000, Memory: memory, Transcript: pointed("assemble")})
			return err
		}},
		{"compact", func(ctx context.Context) error {
			_, err := s.engine.Compact(ctx, core.CompactRequest{Session: s.id, Budget: 400, Force: true, Transcript: pointed("compact")})
			return err
		}},
	}
	spans := map[string][2]int{"ingest": {0, 1}, "ingest batch": {1, 4}, "commit turn": {4, 6}, "after turn": {0, 10}, "bootstrap": {0, 12}, "assemble": {0, 12}, "compact": {0, 12}}
	want := copiedMessages(list)
	for _, c := range calls {
		_ = c.call(s.ctx()) // other checks say what may fail
		got := lists[c.name]
		if got == nil {
			continue
		}
		if d := differs(got, want[spans[c.name][0]:spans[c.name][1]]); d != "" {
			return fmt.Sprintf("%s changed the messages it was given: %s", c.name, d)
		}
		for i := range got {
			if got[i].Entry != "" { // which is not encoded
				return fmt.Sprintf("%s says of message %d that it was given that it shows the entry %q", c.name, i, got[i].Entry)
			}
		}
		if t := transcripts[c.name]; t != nil && (len(t.Messages) != len(got) || &t.Messages[0] != &got[0] || t.Skipped != 0 || t.Digest != "" || t.Whole) {
			return fmt.Sprintf("%s changed the transcript it was given: of %d messages it holds %d, skipped %d, digest %q, whole %v", c.name, len(got), len(t.Messages), t.Skipped, t.Digest, t.Whole)
		}
		if next := got[:len(got)+1][len(got)]; next.Text() != "beyond" {
			return fmt.Sprintf("%s wrote %q behind the messages it was given", c.name, next.Text())
		}
	}
	if d := differs(memory, core.MemoryPrompt{AvailableTools: []string{"jotter", "b", "a"}, CitationMode: "on", Sections: []string{"The notes tool is called jotter.", "Be brief."}}); d != "" {
		return "assemble changed what the host says of its memory: " + d
	}
	return ""
}

// copiedMessages copies messages as deep as an engine could reach.
func copiedMessages(list []message.Message) []message.Message {
	out := slices.Clone(list)
	for i := range out {
		out[i].Raw = slices.Clone(out[i].Raw)
		out[i].Parts = slices.Clone(out[i].Parts)
		for j := range out[i].Parts {
			out[i].Parts[j].Raw = slices.Clone(out[i].Parts[j].Raw)
		}
	}
	return out
}

// A suite of 100 cases ingests more than 200 messages one by one and more than 1000 together; one of fewer cases fewer.
const (
	singles  = 2
	together = 11
)

func scriptLong(s *script) string {
	var said []string
	take := func(m message.Message) message.Message {
		said = append(said, m.Text())
		return m
	}
	for i := range singles*s.cases + 5 {
		res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: s.id, Message: take(s.message([]message.Role{message.User, message.Assistant}[i%2], "of many"))})
		if err != nil || res.Ingested != 1 {
			return fmt.Sprintf("ingest of message %d: %+v, error %v", i+1, res, err)
		}
	}
	if e, ok := s.engine.(core.BatchIngester); ok {
		for i := range 16 {
			few := []message.Message{take(s.message(message.User, "of a few")), take(s.message(message.Assistant, "of a few"))}
			if res, err := e.IngestBatch(s.ctx(), core.IngestBatchRequest{Session: s.id, Messages: few}); err != nil || res.Ingested != 2 {
				return fmt.Sprintf("batch %d of 2: %+v, error %v", i+1, res, err)
			}
		}
		req := core.IngestBatchRequest{Session: s.id}
		for i := range together * s.cases {
			req.Messages = append(req.Messages, take(s.message([]message.Role{message.User, message.Assistant}[i%2], "of many")))
		}
		res, err := e.IngestBatch(s.ctx(), req)
		if n := len(req.Messages); err != nil || res.Ingested != n || len(res.IDs) != n {
			return fmt.Sprintf("a batch of %d: %d ingested, %d ids, error %v", n, res.Ingested, len(res.IDs), err)
		}
	}
	stored := s.held(s.id)
	for i := range min(len(stored), len(said)) {
		if d := differText("the text", stored[i].Text(), said[i]); d != "" || stored[i].Seq != int64(i) {
			return fmt.Sprintf("message %d of %d is stored at %d: %s", i, len(said), stored[i].Seq, d)
		}
	}
	if len(stored) != len(said) {
		return fmt.Sprintf("of %d messages %d are stored", len(said), len(stored))
	}
	res, err := s.assemble(2000, nil)
	if err != nil || len(res.Messages) == 0 || res.Messages[len(res.Messages)-1].Text() != said[len(said)-1] {
		return fmt.Sprintf("assemble after %d messages: %d messages, error %v, want the newest at the end", len(said), len(res.Messages), err)
	}
	return ""
}

func scriptNames(s *script) string {
	names := alikeNames()
	names = names[:min(len(names), 3+s.cases)]
	said := map[core.SessionID]string{}
	for _, id := range names {
		m := s.message(message.User, "in a session of its own")
		m.ID, m.Key = "m-1", "mk-1"
		said[id] = m.Text()
		if e, ok := s.engine.(core.TurnCommitter); ok {
			res, err := e.CommitTurn(s.ctx(), core.CommitTurnRequest{Session: id, AdvancementKey: "turn-1", Messages: []message.Message{m}})
			if err != nil || res.Status != core.Committed {
				return fmt.Sprintf("the first turn of session %q of agent %q: %+v, error %v", id.Session, id.Agent, res, err)
			}
			continue
		}
		if res, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil || res.Ingested != 1 {
			return fmt.Sprintf("the first message of session %q of agent %q: %+v, error %v", id.Session, id.Agent, res, err)
		}
	}
	for _, id := range names {
		res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: 4000})
		if err != nil || len(res.Messages) == 0 {
			return fmt.Sprintf("assemble of session %q of agent %q: %d messages, error %v", id.Session, id.Agent, len(res.Messages), err)
		}
		if got := res.Messages[len(res.Messages)-1].Text(); got != said[id] {
			return fmt.Sprintf("session %q of agent %q ends with %q, want %q", id.Session, id.Agent, got, said[id])
		}
		for i, m := range res.Messages {
			if res.RecallLen == 0 && m.Text() != said[id] {
				return fmt.Sprintf("message %d of session %q of agent %q is %q, %q was all that was said", i, id.Session, id.Agent, m.Text(), said[id])
			}
		}
	}
	return ""
}
