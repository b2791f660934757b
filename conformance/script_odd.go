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

// scriptOdd tells a conversation of what is seldom by every call there is, of which each has a session of its own.
func scriptOdd(s *script) string {
	list := s.oddOnes()
	tell := s.tellings()
	for _, name := range slices.Sorted(maps.Keys(tell)) {
		s.id = core.SessionID{Agent: "odd by " + name, Session: "main"}
		if err := tell[name](s.id, copiedMessages(list)); err != nil {
			return fmt.Sprintf("%s: error %v", name, err)
		}
		held := s.held(s.id)
		var stored []message.Message
		for _, e := range held {
			stored = append(stored, e.Message)
		}
		if text := sameTexts(stored, list); text != "" {
			return fmt.Sprintf("%s: what is stored: %s", name, text)
		}
		res, err := s.assemble(8000, nil)
		if err != nil {
			return fmt.Sprintf("assemble of what came by %s: error %v", name, err)
		}
		if text := inOrder(res.Messages, list); text != "" {
			return fmt.Sprintf("%s: what is shown: %s", name, text)
		}
	}
	return ""
}

// tellings are the ways, and the calls that take a transcript and store what is new in it.
func (s *script) tellings() map[string]func(core.SessionID, []message.Message) error {
	out := s.ways()
	for name, call := range s.reads() {
		out[name+" with a transcript"] = func(id core.SessionID, list []message.Message) error {
			return call(id, &core.Transcript{Messages: list})
		}
	}
	return out
}

// oddOnes is a conversation that an engine shows otherwise which tells messages apart by what they say or calls by their ids, or puts them in order by times or
// roles.
func (s *script) oddOnes() []message.Message {
	bare := func(role message.Role, text string) message.Message { return message.New(role, text) }
	look := func(says string) []message.Message {
		call, result := bare(message.Assistant, "looks"), bare(message.Tool, "")
		call.Parts = append(call.Parts, message.Part{Kind: message.ToolCall, CallID: "call_1", Name: "look", Args: `{"at":"it"}`})
		result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "call_1", Name: "look", Text: says}}
		return []message.Message{call, result}
	}
	list := []message.Message{bare(message.User, "ok"), bare(message.User, "ok"), bare(message.Assistant, "done"), bare(message.User, "ok"), bare(message.Assistant, "done")}
	list = append(list, bare(message.User, "see"))
	list = append(list, look("the harbour is quiet")...)
	list = append(list, bare(message.Assistant, "it is quiet"), bare(message.User, "see"))
	list = append(list, look("the harbour is loud")...) // the same call, in a later turn
	list = append(list, bare(message.Assistant, "it is loud"), bare(message.System, "from now on be brief"), bare(message.User, "go on"), bare(message.Assistant, "well"))
	for i := range list[12:] {
		list[12+i].Time = s.env.Host.Now().Add(-time.Duration(i) * time.Hour) // clocks are set
	}
	return append(list, bare(message.User, "and"), bare(message.System, "from now on be kind"))
}

// inOrder looks whether a prompt shows what all of a list say, in its order. Rules of a provider may join messages, and give them other roles.
func inOrder(shown, list []message.Message) string {
	var all strings.Builder
	for _, m := range shown {
		all.WriteString(m.Text() + "\n")
	}
	rest := all.String()
	for i, m := range list {
		_, after, ok := strings.Cut(rest, m.Text())
		if !ok {
			return fmt.Sprintf("message %d of %d, %q (%s), is not there, or not in its place: %d messages are shown", i, len(list), m.Text(), m.Role, len(shown))
		}
		rest = after
	}
	return ""
}

// sameTexts compares lists of messages by role, texts, calls and results.
func sameTexts(got, want []message.Message) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("of %d messages %d are there, the first that is not says %q (%s)", len(want), len(got), want[i].Text(), want[i].Role)
		case i >= len(want):
			return fmt.Sprintf("%d messages are there instead of %d: %q (%s) comes after the last", len(got), len(want), got[i].Text(), got[i].Role)
		case message.Fingerprint(got[i]) != message.Fingerprint(want[i]):
			return fmt.Sprintf("message %d of %d is %q (%s), want %q (%s)", i, len(want), got[i].Text(), got[i].Role, want[i].Text(), want[i].Role)
		}
	}
	return ""
}

// ingestedToo ends a turn of which the host has ingested all but the last message. They say the same, and are known by one thing each time.
func (s *script) ingestedToo(e core.AfterTurner) string {
	for _, by := range []string{"keys", "ids", "times"} {
		id := core.SessionID{Agent: "agent-a", Session: "ingested with " + by}
		var list []message.Message
		for n := range 5 {
			m := message.New([]message.Role{message.User, message.Assistant}[n%2], "go on")
			switch by {
			case "keys":
				m.Key = fmt.Sprintf("key-%d", n)
			case "ids":
				m.ID = fmt.Sprintf("id-%d", n)
			default:
				m.Time = s.env.Host.Now().Add(time.Duration(n) * time.Second)
			}
			list = append(list, m)
		}
		for _, m := range list[:4] {
			if _, err := s.engine.Ingest(s.ctx(), core.IngestRequest{Session: id, Message: m}); err != nil {
				return fmt.Sprintf("ingest: error %v", err)
			}
		}
		for range 2 {
			if err := e.AfterTurn(s.ctx(), core.AfterTurnRequest{Session: id, Messages: copiedMessages(list), PrePrompt: 2}); err != nil {
				return fmt.Sprintf("after turn: error %v", err)
			}
			if n := len(s.held(id)); n != len(list) {
				return fmt.Sprintf("after a turn of which all but one message were ingested, with %s of their own, %d entries are stored, want %d", by, n, len(list))
			}
		}
	}
	return ""
}
