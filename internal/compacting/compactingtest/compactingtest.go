// Package compactingtest has what tests of compactors need: a conversation of any length, and a Session that applies
// patches the way the engine does and says which promise one breaks.
package compactingtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/history"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// overhead is what a message costs besides its text.
const overhead = 6

// Count counts a token for every four bytes, rounded up.
func Count(text string) int { return (len(text) + 3) / 4 }

// Start is when conversations begin.
var start = time.Date(2031, 3, 4, 9, 0, 0, 0, time.UTC)

// Conversation returns turns of a question, two tool calls with their results, and an answer: five entries each, every seventh
// turn followed by a subagent's result.
func Conversation(turns int) []core.Entry {
	var out []core.Entry
	add := func(m message.Message, kind core.EntryType) {
		n := len(out)
		tokens := overhead
		for _, p := range m.Parts {
			tokens += Count(p.Text) + Count(p.Args) + Count(p.Name)
		}
		out = append(out, core.Entry{
			ID: fmt.Sprint("e", n), Agent: "ann", Session: "s", Seq: int64(n), Role: m.Role, Type: kind,
			Time: start.Add(time.Duration(n) * time.Minute), Tokens: tokens, Key: fmt.Sprint("k", n), Message: m,
		})
	}
	for t := range turns {
		id := func(n int) string { return fmt.Sprintf("call-%d-%d", t, n) }
		path := fmt.Sprintf("src/module_%d/handler.go", t)
		add(message.New(message.User, fmt.Sprintf("Please find out why request %d fails in %s.\nIt began on Monday.", 1000+t, path)), core.TypeMessage)
		add(message.Message{Role: message.Assistant, Parts: []message.Part{
			{Kind: message.Text, Text: "I will look at the file and run its tests."},
			{Kind: message.ToolCall, CallID: id(1), Name: "read", Args: `{"path":"` + path + `"}`},
			{Kind: message.ToolCall, CallID: id(2), Name: "bash", Args: `{"cmd":"go test ./src"}`},
		}}, core.TypeMessage)
		for n := 1; n <= 2; n++ {
			text := strings.Repeat(fmt.Sprintf("line of output %d about retryBudget\n", t), 8)
			add(message.Message{Role: message.Tool, Parts: []message.Part{
				{Kind: message.ToolResult, CallID: id(n), Text: text, IsError: n == 2 && t%3 == 0},
			}}, core.TypeMessage)
		}
		add(message.New(message.Assistant, fmt.Sprintf("Request %d failed because retryBudget was 0; I set it to %d.", 1000+t, t+3)), core.TypeMessage)
		if t%7 == 6 {
			add(message.New(message.User, fmt.Sprintf("The review of turn %d found nothing.", t)), core.TypeSubagent)
		}
	}
	return out
}

// Session is what the engine holds of a session while it is compacted. It is not safe for concurrent use.
type Session struct {
	core.Compaction
	// Published is the number of patches that came through Publish.
	Published int
	next      int
	refs      map[string]string
	stubbed   map[string]int
}

// New returns a session of these entries to be compacted to target, with the newest protected ones fixed.
func New(entries []core.Entry, target, protected int) *Session {
	s := &Session{Compaction: core.Compaction{
		Session: core.SessionID{Agent: "ann", Session: "s"}, Entries: entries, Protected: protected, Target: target,
		SummaryTokens: 500, Now: start.Add(1000 * time.Hour), Count: Count, Host: core.NoHost{},
	}}
	s.refresh()
	return s
}

// refresh counts again and returns what the session costs.
func (s *Session) refresh() int {
	s.Cost = nil
	s.Tokens = 0
	for _, e := range s.Entries {
		cost := e.Tokens
		if n, ok := s.stubbed[e.ID]; ok {
			cost = n
		}
		s.Cost = append(s.Cost, cost)
		s.Tokens += cost
	}
	for _, sum := range s.Summaries {
		s.Tokens += sum.Tokens
	}
	return s.Tokens
}

// Task returns the compaction as a compactor gets it. Publish applies to s.
func (s *Session) Task() core.Compaction {
	s.refresh()
	c := s.Compaction
	c.Entries, c.Summaries, c.Cost = slices.Clone(c.Entries), slices.Clone(c.Summaries), slices.Clone(c.Cost)
	c.Publish = func(ctx context.Context, p core.Patch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.Published++
		return s.Apply(p)
	}
	return c
}

// Apply applies a patch, or says which promise it breaks.
func (s *Session) Apply(p core.Patch) error {
	p.Stubs = maps.Clone(p.Stubs)
	for _, r := range p.Replace {
		if err := s.replace(r); err != nil {
			return err
		}
	}
	return s.stub(p.Stubs)
}

// stub takes over stubs: of entries that are live and not protected, and cheaper than they are.
func (s *Session) stub(stubs map[string]window.Stub) error {
	for i, e := range s.Entries {
		st, ok := stubs[e.ID]
		switch {
		case !ok:
			continue
		case i >= len(s.Entries)-s.Protected:
			return fmt.Errorf("entry %s is protected and gets a stub", e.ID)
		case st.Tokens >= s.Cost[i]:
			return fmt.Errorf("the stub of entry %s costs %d tokens, it costs %d", e.ID, st.Tokens, s.Cost[i])
		}
		if s.stubbed == nil {
			s.stubbed = make(map[string]int)
		}
		s.stubbed[e.ID] = st.Tokens
		delete(stubs, e.ID)
	}
	if len(stubs) > 0 {
		return fmt.Errorf("%d stubs are for entries that are not live", len(stubs))
	}
	s.refresh()
	return nil
}

func (s *Session) replace(r core.Replacement) error {
	before, n := s.Tokens, len(r.Entries)
	switch {
	case r.Text == "":
		return fmt.Errorf("the text is empty")
	case n == 0 && len(r.Summaries) == 0:
		return fmt.Errorf("it stands for nothing")
	case Count(r.Text)+overhead > s.SummaryTokens:
		return fmt.Errorf("a text of %d tokens, bound is %d", Count(r.Text), s.SummaryTokens)
	case n > len(s.Entries)-s.Protected:
		return fmt.Errorf("it takes %d entries, %d of %d are protected", n, s.Protected, len(s.Entries))
	}
	var msgs []message.Message
	for i, e := range s.Entries {
		msgs = append(msgs, e.Message)
		if i < n && e.ID != r.Entries[i] {
			return fmt.Errorf("entry %d is %s, the replacement names %s", i, e.ID, r.Entries[i])
		}
	}
	for _, g := range history.Groups(msgs) {
		if g.From < n && n < g.To {
			return fmt.Errorf("the cut at %d tears the group %v", n, g)
		}
	}
	for i, id := range r.Summaries {
		if to, ok := s.refs[id]; ok {
			r.Summaries = slices.Clone(r.Summaries)
			r.Summaries[i] = to
		}
	}
	s.next++
	if r.Ref != "" {
		if s.refs == nil {
			s.refs = make(map[string]string)
		}
		s.refs[r.Ref] = fmt.Sprint("s", s.next)
	}
	sum := core.Summary{ID: fmt.Sprint("s", s.next), Kind: r.Kind, Text: r.Text, Tokens: Count(r.Text) + overhead, Covers: n, Time: s.Now}
	var kept []core.Summary
	at := -1
	for _, old := range s.Summaries {
		if !slices.Contains(r.Summaries, old.ID) {
			kept = append(kept, old)
			continue
		}
		if at < 0 {
			at = len(kept)
		}
		sum.Covers += old.Covers
	}
	if len(kept) != len(s.Summaries)-len(r.Summaries) {
		return fmt.Errorf("it names summaries that are not there: %v", r.Summaries)
	}
	if n > 0 || at < 0 {
		at = len(kept)
	}
	s.Summaries = slices.Insert(kept, at, sum)
	s.Entries = s.Entries[n:]
	s.Left = max(0, s.Left-n)
	if after := s.refresh(); after >= before {
		return fmt.Errorf("%d tokens before, %d after", before, after)
	}
	return nil
}
