package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/injected"
	"github.com/contextengine/contextengine/core/message"
)

const reminder = "<system-reminder>\nThe list of tasks is empty. 81234 tokens left.\n</system-reminder>"

func entriesOf(f *fixture) []core.Entry {
	f.t.Helper()
	var out []core.Entry
	for e, err := range core.All(f.t.Context(), f.store, f.id.Scope(), false) {
		if err != nil {
			f.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestWhatClientsPutInIsStoredAndNotSaid(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) {
		c.Injected = []injected.Rule{{Client: "mine", Tag: "weather"}}
	})
	result := message.Message{Role: message.Tool, Parts: []message.Part{
		{Kind: message.ToolResult, CallID: "c", Name: "bash", Text: "kestrel: 41 ok\n\n" + reminder},
		{Kind: message.Text, Text: reminder},
	}}
	rows := []struct {
		m    message.Message
		want string
	}{
		{user(reminder + "\nwhat did step 3 print?"), "what did step 3 print?"},
		{user("<weather>rain</weather>\nis it wet?"), "is it wet?"},
		{assistant(reminder), reminder},
		{result, "kestrel: 41 ok"},
		{message.Message{Role: message.Assistant, Parts: []message.Part{
			{Kind: message.Text, Text: "Let me look."},
			{Kind: message.ToolCall, CallID: "c", Name: "edit", Args: `{"path":"a/b.go","edits":[{"old":"one\n\ttwo"}],"times":2}`},
			{Kind: message.ToolCall, CallID: "d", Name: "bash", Args: `ls "cut off`},
		}}, "Let me look.\nedit\npath: a/b.go\nold: one\n\ttwo\ntimes: 2\nbash\nls \"cut off"},
		{message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "e", Name: core.ToolSearch, Args: `{"query":"kestrel"}`}}}, ""},
	}
	for _, r := range rows {
		f.ingest(r.m)
	}
	f.restart()
	for i, e := range entriesOf(f) {
		if got := e.Text(); got != rows[i].want {
			t.Errorf("entry %d: text %q, want %q", i, got, rows[i].want)
		}
		if got, want := e.Message.Text(), rows[i].m.Text(); got != want {
			t.Errorf("entry %d: stored %q, want %q", i, got, want)
		}
	}
}

// promptRetriever remembers what it was asked.
type promptRetriever struct{ prompts []string }

func (r *promptRetriever) Retrieve(_ context.Context, q core.Query) ([]core.Candidate, error) {
	r.prompts = append(r.prompts, q.Prompt)
	return nil, nil
}

func TestTheQueryIsWhatThePersonSaid(t *testing.T) {
	r := &promptRetriever{}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { p.Retriever, c.Recall.Gate = r, false })
	left := func(i int) string { return fmt.Sprintf("<my-budget>\n%d tokens left\n</my-budget>", 90000-i*711) }
	for i := range 3 {
		f.ingest(user(fmt.Sprintf("question %d\n\n%s", i, left(i))), assistant("answer"))
	}
	f.ingest(user(reminder))
	for _, row := range []struct{ prompt, want string }{
		{reminder + "\n" + left(9) + "\n\nwhat did step 3 print?", "what did step 3 print?"},
		{reminder, "question 2"}, // nobody said anything: what was said last
		{"", "question 2"},
	} {
		r.prompts = nil
		f.assemble(4000, func(req *core.AssembleRequest) { req.PromptMode, req.Prompt = core.PromptFull, row.prompt })
		if len(r.prompts) == 0 || r.prompts[0] != row.want {
			t.Errorf("prompt %q: asked %q, want %q", row.prompt, r.prompts, row.want)
		}
	}
}

func TestSpansOfAnotherTextAreNotTaken(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Injected = []injected.Rule{{Tag: "weather"}} })
	f.ingest(user("<weather>rain</weather>\nis it wet?"))
	e := entriesOf(f)[0]
	e.Message = user("a text that somebody put there later")
	if got := e.Text(); got != e.Message.Text() {
		t.Errorf("text %q", got)
	}
}

func TestRulesOfConfigurationAreChecked(t *testing.T) {
	cfg := engine.DefaultConfig()
	cfg.Injected = []injected.Rule{{Tag: "a"}, {Tag: "<b>"}}
	if err := cfg.Validate(); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "injected[1].tag") {
		t.Errorf("%v", err)
	}
}

// Who looks for something sees the window anyway: what stands there comes last, unless it is the identifier that is looked for.
func TestSearchPutsFirstWhatTheWindowDoesNotShow(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("the port of kestrel is 4711"), assistant("noted"))
	talk(f, 40)
	f.ingest(user("what is the port of kestrel?"), assistant("the port of kestrel? I look it up"))
	f.assemble(400)
	search := func(query string) []engine.Found {
		t.Helper()
		res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: query, Limit: 5})
		if err != nil || len(res.Found) < 3 {
			t.Fatalf("found %+v, %v", res.Found, err)
		}
		return res.Found
	}
	if got := search("what is the port of kestrel?"); got[0].Excerpt != "the port of kestrel is 4711" {
		t.Errorf("first: %q", got[0].Excerpt)
	}
	f.ingest(user("K-77 is the code, see kestrel"), assistant("K-7 it is not"))
	f.assemble(400)
	if res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: f.id, Query: "K-77"}); err != nil || len(res.Found) == 0 || !strings.Contains(res.Found[0].Excerpt, "K-77") {
		t.Errorf("found %+v, %v", res.Found, err)
	}
}

// Runs of the same tests differ in their numbers: one of them says it all.
func TestRecallSaysNothingTwice(t *testing.T) {
	r := &proposer{}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { p.Retriever, c.Recall.AcrossSessions = r, true })
	for i := range 4 {
		f.ingest(user(fmt.Sprintf("all packages passed: parser %dms, gateway %dms, billing %dms, scheduler %dms, exporter %dms", i*7, i*9, i*11, i*13, i*17)))
	}
	f.ingest(user("the port of gateway is 4711"), user("the port of gateway is 4712"))
	for _, e := range entriesOf(f) {
		r.candidates = append(r.candidates, core.Candidate{Entry: e, Score: 1})
	}
	other := core.SessionID{Agent: f.id.Agent, Session: "another"}
	res := f.assemble(8000, func(req *core.AssembleRequest) {
		req.Session, req.PromptMode, req.Prompt = other, core.PromptFull, "what passed?"
	})
	text := shown(res)
	if n := strings.Count(text, "all packages passed"); n != 1 {
		t.Errorf("recalled %d times: %s", n, text)
	}
	if !strings.Contains(text, "4711") || !strings.Contains(text, "4712") {
		t.Errorf("two facts of few words are not the same: %s", text)
	}
}
