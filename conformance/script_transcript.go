package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// transcriptBudget is the budget of calls that hand over a transcript: more than any of these takes.
const transcriptBudget = 30000

// reads are the calls that take a transcript, as many of them as there are. A compaction that is passed on passes its transcript on.
func (s *script) reads() map[string]reading {
	out := map[string]reading{
		"assemble": func(id core.SessionID, t *core.Transcript) error {
			_, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: transcriptBudget, Transcript: t})
			return err
		},
	}
	if s.engine.Info().OwnsCompaction {
		out["compact"] = func(id core.SessionID, t *core.Transcript) error {
			_, err := s.engine.Compact(s.ctx(), core.CompactRequest{Session: id, Budget: transcriptBudget, Transcript: t})
			return err
		}
	}
	if e, ok := s.engine.(core.Bootstrapper); ok {
		out["bootstrap"] = func(id core.SessionID, t *core.Transcript) error {
			_, err := e.Bootstrap(s.ctx(), core.BootstrapRequest{Session: id, Transcript: t})
			return err
		}
	}
	return out
}

// reading is a call that takes a transcript.
type reading func(core.SessionID, *core.Transcript) error

// eachRead looks at each call that takes a transcript, in sessions of its own.
func (s *script) eachRead(looks ...func(core.SessionID, reading) string) string {
	reads := s.reads()
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		for n, look := range looks {
			if text := look(core.SessionID{Agent: fmt.Sprintf("transcript %d by %s", n, name), Session: "main"}, reads[name]); text != "" {
				return name + ": " + text
			}
		}
	}
	return ""
}

func scriptTranscript(s *script) string {
	return s.eachRead(s.readsMany, s.readsFillers, s.readsSlid, s.readsReset, s.readsRepeated, s.readsAlike, s.readsNewest)
}

func scriptWhole(s *script) string { return s.eachRead(s.readsWhole) }

// manyMessages are more than a page of most things holds.
const manyMessages = 130

// readsMany hands over a long transcript that nothing is known of.
func (s *script) readsMany(id core.SessionID, call reading) string {
	t := s.transcript(manyMessages)
	t.Messages = append([]message.Message{s.message(message.System, "be brief"), s.message(message.System, "be kind")}, t.Messages...)
	if err := call(id, t); err != nil {
		return fmt.Sprintf("a transcript of %d messages: error %v", len(t.Messages), err)
	}
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: transcriptBudget})
	if err != nil {
		return fmt.Sprintf("assemble after a transcript of %d messages: error %v", len(t.Messages), err)
	}
	if text := inOrder(res.Messages, t.Messages); text != "" {
		return "what is shown of a long transcript: " + text
	}
	return ""
}

// readsFillers hands over what nobody said.
func (s *script) readsFillers(id core.SessionID, call reading) string {
	turn := s.filledUp()
	for range 2 {
		if err := call(id, &core.Transcript{Messages: copiedMessages(turn)}); err != nil {
			return fmt.Sprintf("a transcript with a filler: error %v", err)
		}
		if text := s.spoken(id, turn); text != "" {
			return text
		}
	}
	return ""
}

// name gives a message a name of its own, as hosts do: a "key", an "id", a "time", or none.
func (s *script) name(m *message.Message, by string) {
	s.n++
	m.Key, m.ID, m.Time = "", "", time.Time{}
	switch by {
	case "key":
		m.Key = fmt.Sprint("key ", s.n)
	case "id":
		m.ID = fmt.Sprint("id ", s.n)
	case "time":
		m.Time = time.Unix(1_700_000_000+int64(s.n), 0).UTC()
	}
}

// readsSlid hands over lists that slide over messages which say the same and have names of their own.
func (s *script) readsSlid(id core.SessionID, call reading) string {
	for _, by := range []string{"key", "id", "time"} {
		for cut := range 3 { // a list that says what the last one did is that one
			id := core.SessionID{Agent: id.Agent, Session: fmt.Sprintf("slid by %d, named by %s", cut, by)}
			again := s.message(message.User, "go on").Text()
			said := func(m message.Message) message.Message { s.name(&m, by); return m }
			list := []message.Message{
				said(message.New(message.User, again)), said(s.message(message.Assistant, "one")),
				said(s.message(message.User, "more")), said(s.message(message.Assistant, "two")),
			}
			for n := range 4 {
				from := 0
				if n > 0 {
					list = append(list, said(message.New(message.User, again)))
					from = cut + n - 1
				}
				if err := call(id, &core.Transcript{Messages: copiedMessages(list[from:])}); err != nil {
					return fmt.Sprintf("a transcript: error %v", err)
				}
				if got := len(s.held(id)); got != len(list) {
					return fmt.Sprintf("of %d messages, some of which say the same under another name, those from %d on were handed over last: %d are stored", len(list), from+1, got)
				}
			}
		}
	}
	return ""
}

// readsReset hands over lists of a host that began anew, with the words that it began with before.
func (s *script) readsReset(id core.SessionID, call reading) string {
	for _, by := range []string{"key", "id", "time"} {
		id := core.SessionID{Agent: id.Agent, Session: "begun anew, named by " + by}
		greeting := s.message(message.User, "good morning").Text()
		said := func(m message.Message) message.Message { s.name(&m, by); return m }
		list := []message.Message{
			said(message.New(message.User, greeting)), said(s.message(message.Assistant, "one")),
			said(s.message(message.User, "more")), said(s.message(message.Assistant, "two")),
		}
		anew := []message.Message{
			said(message.New(message.User, greeting)), said(s.message(message.Assistant, "another one")), said(s.message(message.User, "something else")),
		}
		for n, list := range [][]message.Message{list, anew[:1], anew} {
			if err := call(id, &core.Transcript{Messages: copiedMessages(list)}); err != nil {
				return fmt.Sprintf("a transcript: error %v", err)
			}
			if got, want := len(s.held(id)), []int{4, 5, 7}[n]; got != want {
				return fmt.Sprintf("a session of 4 messages was begun anew with the words of its first one, under another %s: %d are stored, %d were said", by, got, want)
			}
		}
	}
	return ""
}

// readsRepeated hands over lists that go on, from within what is known, with words that were said before, under names of their own.
func (s *script) readsRepeated(id core.SessionID, call reading) string {
	words := make([]string, 3)
	for i := range words {
		words[i] = s.message(message.User, "so").Text()
	}
	for _, by := range []string{"key", "id", "time"} {
		for _, kept := range []int{2, 3} {
			for n, pattern := range [][]int{{2, 1, 2, 2}, {2, 2}, {1, 2, 2, 1}} {
				id := core.SessionID{Agent: id.Agent, Session: fmt.Sprintf("repeats %d behind %d, named by %s", n, kept, by)}
				say := func(list []message.Message, which ...int) []message.Message {
					list = slices.Clone(list)
					for _, which := range which {
						m := message.New([]message.Role{message.User, message.Assistant}[len(list)%2], words[which])
						s.name(&m, by)
						list = append(list, m)
					}
					return list
				}
				known := say(nil, 0, 1, 2, 2)
				if text := s.repeats(id, call, known, say(known[:kept], pattern...), kept); text != "" {
					return fmt.Sprintf("a list went on behind %d of %d messages with words said before, under another %s: %s", kept, len(known), by, text)
				}
			}
		}
	}
	return ""
}

// repeats hands over what is known, and then a list that begins with the same messages, as many as kept, and goes on with their words.
func (s *script) repeats(id core.SessionID, call reading, known, list []message.Message, kept int) string {
	for _, list := range [][]message.Message{known, list} {
		if err := call(id, &core.Transcript{Messages: copiedMessages(list)}); err != nil {
			return fmt.Sprintf("a transcript: error %v", err)
		}
	}
	held := s.held(id)
	if most := len(known) + len(list) - kept; len(held) > most {
		return fmt.Sprintf("%d are stored, %d were said", len(held), most)
	}
	for i, m := range list {
		n := 0
		for _, e := range held {
			if e.Message.Key == m.Key && e.Message.ID == m.ID && e.Message.Time.Equal(m.Time) {
				n++
			}
		}
		if n > 1 || i < kept && n == 0 {
			return fmt.Sprintf("message %d is stored %d times", i, n)
		}
	}
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: transcriptBudget})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	return inOrder(res.Messages, list)
}

// readsAlike hands over the newest messages of a turn whose calls give the same, behind its first one, behind a line, or alone: the ids of calls, or what they ask, tell them
// apart where the host has no names.
func (s *script) readsAlike(id core.SessionID, call reading) string {
	first, line := s.message(message.User, "look into all of them"), s.message(message.User, "cut here")
	for _, keeps := range []string{"first", "line", "none"} {
		for _, asks := range []string{"the same", "another"} {
			for _, newest := range []int{3, 6} {
				id := core.SessionID{Agent: id.Agent, Session: fmt.Sprintf("the newest %d, %s kept, asked %s", newest, keeps, asks)}
				list := []message.Message{first}
				lines := 0
				for n := range 6 {
					use, file := fmt.Sprintf("%s %d", keeps, n), "a"
					if asks == "another" {
						file = fmt.Sprint("file", n)
					}
					list = append(list,
						message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: use, Name: "read", Args: `{"path":"` + file + `"}`}}},
						message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: use, Name: "read", Text: "ok"}}})
					shown := list
					if len(list) > newest+1 {
						head := map[string][]message.Message{"first": list[:1], "line": {line}}[keeps]
						shown, lines = slices.Concat(head, list[len(list)-newest:]), len(head)
					}
					if err := call(id, &core.Transcript{Messages: copiedMessages(shown)}); err != nil {
						return fmt.Sprintf("a transcript: error %v", err)
					}
					want := len(list)
					if keeps == "line" {
						want += lines
					}
					if text := heldOnce(s.held(id), want, use); text != "" {
						return fmt.Sprintf("of %d messages, calls that ask %s and give the same, the newest %d were handed over (%s kept in front): %s", len(list), asks, newest, keeps, text)
					}
				}
			}
		}
	}
	return ""
}

// readsNewest hands over the newest messages of turns that say the same, by names of their own: each list has some in common with the last one.
func (s *script) readsNewest(id core.SessionID, call reading) string {
	for _, by := range []string{"key", "id", "time"} {
		for _, skips := range []bool{false, true} {
			id := core.SessionID{Agent: id.Agent, Session: fmt.Sprintf("the newest by %s, skipped %v", by, skips)}
			var list []message.Message
			say := func(role message.Role, text string) {
				m := message.New(role, text)
				s.name(&m, by)
				list = append(list, m)
			}
			for range 2 {
				say(message.User, "go on")
				say(message.Assistant, "done")
			}
			for range 4 {
				say(message.User, "go on")
				shown := list[len(list)-5:]
				t := &core.Transcript{Messages: shown}
				if skips {
					t = &core.Transcript{Skipped: 2, Digest: message.DigestOf(shown[:2]), Messages: shown[2:]}
				}
				err := call(id, t)
				if errors.Is(err, core.ErrNeedTranscript) && skips {
					err = call(id, &core.Transcript{Messages: shown})
				}
				if err != nil {
					return fmt.Sprintf("a transcript: error %v", err)
				}
				if n := len(s.held(id)); n != len(list) {
					return fmt.Sprintf("of %d messages that say the same and have each a name (%s), the newest 5 were handed over each time (skipped: %v): %d are stored", len(list), by, skips, n)
				}
				say(message.Assistant, "done")
			}
		}
	}
	return ""
}

// heldOnce says what is wrong with entries of which there should be so many, with a call of one id and its result among them, once each.
func heldOnce(held []core.Entry, want int, use string) string {
	calls, results := 0, 0
	for i := range held {
		for _, p := range held[i].Message.Parts {
			switch {
			case p.CallID != use:
			case p.Kind == message.ToolCall:
				calls++
			case p.Kind == message.ToolResult:
				results++
			}
		}
	}
	if len(held) != want || calls != 1 || results != 1 {
		return fmt.Sprintf("%d are stored, want %d; the newest call %d times, its result %d times", len(held), want, calls, results)
	}
	return ""
}

// readsSkipped leaves out what an engine knows, and what it does not know.
func (s *script) readsSkipped(id core.SessionID, call reading) string {
	list := s.transcript(5).Messages
	if err := call(id, &core.Transcript{Messages: list}); err != nil {
		return fmt.Sprintf("a transcript: error %v", err)
	}
	list = append(list, s.transcript(2).Messages...)
	short := &core.Transcript{Skipped: 4, Digest: message.DigestOf(list[:4]), Messages: list[4:]}
	err := call(id, short)
	if errors.Is(err, core.ErrNeedTranscript) {
		err = call(id, &core.Transcript{Messages: list})
	}
	if n := len(s.held(id)); err != nil || n != len(list) {
		return fmt.Sprintf("a transcript of %d messages of which 4 that are known were skipped: error %v, %d are stored", len(list), err, n)
	}
	for _, skipped := range [][]message.Message{s.transcript(3).Messages, list[1:5], append(slices.Clone(list), s.transcript(2).Messages...)} {
		unknown := &core.Transcript{Skipped: len(skipped), Digest: message.DigestOf(skipped), Messages: s.transcript(1).Messages}
		if err := call(id, unknown); !errors.Is(err, core.ErrNeedTranscript) {
			return fmt.Sprintf("a transcript of which %d messages were skipped that are not the first known ones: error %v, want ErrNeedTranscript", unknown.Skipped, err)
		}
		if n := len(s.held(id)); n != len(list) {
			return fmt.Sprintf("a transcript that could not be matched left %d new entries", n-len(list))
		}
	}
	return ""
}

// readsWhole hands over transcripts that begin with others than before, declared whole and not.
func (s *script) readsWhole(id core.SessionID, call reading) string {
	for _, whole := range []bool{true, false} {
		if whole && s.comb.ResetHistory {
			continue // what was taken back may be recalled
		}
		id := core.SessionID{Agent: id.Agent, Session: fmt.Sprintf("whole %v", whole)}
		t := s.transcript(6)
		now := &core.Transcript{Messages: slices.Concat(s.transcript(2).Messages, t.Messages[2:]), Whole: whole}
		for _, transcript := range []*core.Transcript{t, now} {
			if err := call(id, transcript); err != nil {
				return fmt.Sprintf("a transcript: error %v", err)
			}
		}
		if text := s.showsOf(id, now.Messages, t.Messages[:2], !whole); text != "" {
			return fmt.Sprintf("the transcript began with others, whole: %v; %s", whole, text)
		}
		if !whole {
			continue
		}
		// What is missing in the midst is only not shown, until the same list is said to be whole.
		some := slices.Concat(now.Messages[:1], now.Messages[3:])
		for _, whole := range []bool{false, true} {
			if err := call(id, &core.Transcript{Messages: some, Whole: whole}); err != nil {
				return fmt.Sprintf("a transcript without two messages: error %v", err)
			}
			if text := s.showsOf(id, some, now.Messages[1:3], !whole); text != "" {
				return fmt.Sprintf("the transcript left two messages out, whole: %v; %s", whole, text)
			}
		}
	}
	return ""
}

// showsOf says which of the messages that are in force is not shown, or which of others is not as wanted.
func (s *script) showsOf(id core.SessionID, force, others []message.Message, want bool) string {
	res, err := s.engine.Assemble(s.ctx(), core.AssembleRequest{Session: id, Budget: transcriptBudget})
	if err != nil {
		return fmt.Sprintf("assemble: error %v", err)
	}
	var all strings.Builder
	for _, m := range res.Messages {
		all.WriteString(m.Text() + "\n")
	}
	for i, m := range slices.Concat(force, others) {
		if want := i < len(force) || want; strings.Contains(all.String(), m.Text()) != want {
			return fmt.Sprintf("%q is in force: %v, want %v", m.Text(), !want, want)
		}
	}
	return ""
}
