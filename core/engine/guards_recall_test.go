package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// proposer is a retriever that proposes what it is given, whatever it is asked.
type proposer struct{ candidates []core.Candidate }

func (p *proposer) Retrieve(context.Context, core.Query) ([]core.Candidate, error) {
	return p.candidates, nil
}

// everything proposes all entries of some agents as they are now, and goes on doing so.
func (f *fixture) everything(p *proposer, agents ...string) {
	f.t.Helper()
	p.candidates = nil
	for _, agent := range agents {
		for entry, err := range core.All(f.t.Context(), f.store, core.Scope{Agent: agent}, false) {
			if err != nil {
				f.t.Fatal(err)
			}
			p.candidates = append(p.candidates, core.Candidate{Entry: entry, Score: 1, Source: "proposer"})
		}
	}
}

func (f *fixture) say(id core.SessionID, heartbeat bool, messages ...message.Message) {
	f.t.Helper()
	req := core.IngestBatchRequest{Session: id, Messages: messages, Heartbeat: heartbeat}
	if _, err := f.engine.IngestBatch(f.t.Context(), req); err != nil {
		f.t.Fatal(err)
	}
}

// recalledFrom is what the recall block of a session says, after a turn that leaves room for it.
func (f *fixture) recalledFrom(id core.SessionID) string {
	f.t.Helper()
	res := f.assemble(4000, func(r *core.AssembleRequest) { r.Session, r.PromptMode, r.Prompt = id, core.PromptFull, "what was it?" })
	if res.RecallLen == 0 {
		return ""
	}
	return res.Messages[res.RecallAt].Text()
}

// TestNothingElseIsRecalled: whatever a retriever proposes, only entries that the session may see and does not show reach the prompt.
func TestNothingElseIsRecalled(t *testing.T) {
	b := &believed{}
	p := &b.proposer
	for i := range 8 {
		reach := struct{ across, reset, believed bool }{i&1 > 0, i&2 > 0, i&4 > 0}
		across := reach.across
		f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
			if c.Recall.AcrossSessions, c.Recall.ResetHistory, parts.Retriever = across, reach.reset, p; reach.believed {
				parts.Retriever = b
			}
		})
		f.assemble(4000, transcript("next", user("before the reset")))
		f.assemble(4000, transcript("next", user("left the window "+strings.Repeat("word ", 20)), assistant("early answer")))
		f.say(f.id, true, user("a timer"))
		f.say(f.id, false, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "1", Name: core.ToolSearch, Args: `{"query":"looked up"}`}}},
			message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "1", Name: core.ToolSearch, Text: "looked up"}}})
		f.say(f.id, false, user("left too "+strings.Repeat("word ", 20)), assistant("middle answer"), user("shown question"), assistant("shown answer"))
		f.say(core.SessionID{Agent: "main", Session: "other"}, false, user("another session"))
		f.say(core.SessionID{Agent: "eve", Session: "s1"}, false, user("another agent"))
		f.compact(60)
		if err := f.engine.Score(t.Context(), engine.Outcome{Session: f.id, Name: "ok", Value: 1}); err != nil {
			t.Fatal(err)
		}
		if !reach.believed { // where something was erased nothing is
			f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main", Session: "nothing"}})
		}
		f.everything(p, "main", "eve")
		for i := range p.candidates {
			switch text := p.candidates[i].Entry.Text(); {
			case strings.HasPrefix(text, "shown"):
				p.candidates[i].Entry.Fingerprint = "" // it is known by its id all the same
			case core.Reserved(p.candidates[i].Entry.Session): // it could say anything
				p.candidates[i].Entry.Type, p.candidates[i].Entry.Role = core.TypeMessage, message.User
				p.candidates[i].Entry.Message = user("made up for a record")
			}
			if p.candidates[i].Entry.Text() == "" {
				p.candidates[i].Text = "made up for the " + string(p.candidates[i].Entry.Type) + " in " + p.candidates[i].Entry.Session
			}
		}
		nameless := f.entry("left the window")
		nameless.ID, nameless.Fingerprint, nameless.Message = "", "", user("without an id")
		p.candidates = append(p.candidates, core.Candidate{Entry: nameless, Score: 1})
		got := f.recalledFrom(f.id)
		if !strings.Contains(got, "left the window") {
			t.Errorf("%+v: nothing is recalled: %q", reach, got)
		}
		for text, may := range map[string]bool{
			"before the reset": reach.reset, "another session": across, "another agent": false, "a timer": false, "looked up": false, "shown answer": false,
			"summary number": false, "made up": false, "without an id": false,
		} {
			if strings.Contains(got, text) != may {
				t.Errorf("%+v: %q recalled is %v, want %v: %s", reach, text, !may, may, got)
			}
		}
	}
}

// TestWhatASubagentHandedBackIsRecalledOnce: its own session has the answer too, there with a call of a tool.
func TestWhatASubagentHandedBackIsRecalledOnce(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	parent, child := core.SessionID{Agent: "main", Session: "parent"}, core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child}); err != nil {
		t.Fatal(err)
	}
	call := message.Part{Kind: message.ToolCall, CallID: "1", Name: "read", Args: "{}"}
	f.say(child, false, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.Text, Text: "let me look"}, call}})
	f.say(child, false, user("let me look"))
	if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: parent, Child: child}); err != nil {
		t.Fatal(err)
	}
	f.say(f.id, false, user("first question"))
	f.everything(p, "main")
	if got := f.recalledFrom(f.id); strings.Count(got, "let me look") != 2 {
		t.Errorf("the answer and what a user said are to be recalled once each: %q", got)
	}
}

// TestTheSameFromAnotherSessionIsRecalledOnce: what a block of an earlier turn quotes is not quoted again from another session that has a copy of it.
func TestTheSameFromAnotherSessionIsRecalledOnce(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	f.say(core.SessionID{Agent: "main", Session: "copy"}, false, user("said in two sessions"))
	f.say(f.id, false, user("first question"))
	f.everything(p, "main")
	if got := f.recalledFrom(f.id); !strings.Contains(got, "said in two sessions") {
		t.Fatalf("nothing is recalled: %q", got)
	}
	f.say(core.SessionID{Agent: "main", Session: "original"}, false, user("said in two sessions"), user("said in two"))
	f.say(f.id, false, assistant("answer"), user("second question"))
	f.everything(p, "main")
	got := f.recalledFrom(f.id)
	if strings.Contains(got, "> said in two sessions") || !strings.Contains(got, "> said in two\n") {
		t.Errorf("the next turn's block says %q", got)
	}
}

// TestTheSameWithMoreIsRecalledOnce: of what a block of an earlier turn quotes, and another session says with a call behind it, the next block quotes the call alone.
func TestTheSameWithMoreIsRecalledOnce(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	parent, child := core.SessionID{Agent: "main", Session: "parent"}, core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child}); err != nil {
		t.Fatal(err)
	}
	call := message.Part{Kind: message.ToolCall, CallID: "1", Name: "read", Args: `{"path":"a file"}`}
	f.say(child, false, message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.Text, Text: "let me look"}, call}})
	if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: parent, Child: child}); err != nil {
		t.Fatal(err)
	}
	f.say(f.id, false, user("first question"))
	p.candidates = []core.Candidate{{Entry: f.entryOf(parent), Score: 1, Source: "proposer"}}
	if got := f.recalledFrom(f.id); !strings.Contains(got, "let me look") {
		t.Fatalf("nothing is recalled: %q", got)
	}
	f.say(f.id, false, assistant("answer"), user("second question"))
	p.candidates = []core.Candidate{{Entry: f.entryOf(child), Score: 1, Source: "proposer"}}
	for range 2 {
		if got := f.recalledFrom(f.id); strings.Contains(got, "let me look") || !strings.Contains(got, "a file") {
			t.Errorf("the next turn's block says %q", got)
		}
	}
}

// TestErasedIsNotRecalled: a retriever that goes on remembering what was erased does not bring it back, of this session or of another.
func TestErasedIsNotRecalled(t *testing.T) {
	for name, own := range map[string]bool{"own": true, "another session": false} {
		t.Run(name, func(t *testing.T) { testErasedIsNotRecalled(t, own) })
	}
}

func testErasedIsNotRecalled(t *testing.T, own bool) {
	t.Helper()
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	other := core.SessionID{Agent: "main", Session: "other"}
	code := user("my code is " + secret)
	if !own {
		code = user("my code is no secret")
	}
	f.say(f.id, false, code, user("and my name is Ann"), assistant("noted"), user("so"), assistant("yes"))
	f.say(other, false, user("here, too, it is "+secret), user("there is more"))
	f.compact(40)
	f.everything(p, "main")
	if got := f.recalledFrom(f.id); !strings.Contains(got, secret) {
		t.Fatalf("recalled: %s", got)
	}
	var ids []string
	for _, c := range p.candidates {
		if strings.Contains(c.Entry.Text(), secret) {
			ids = append(ids, c.Entry.ID)
		}
	}
	f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, Entries: ids})
	third := core.SessionID{Agent: "main", Session: "third"}
	f.say(third, false, user("a session that never showed it"))
	for range 2 {
		if got := f.recalledFrom(third); strings.Contains(got, secret) || !strings.Contains(got, "Ann") {
			t.Errorf("recalled elsewhere: %s", got)
		}
		if got := f.recalledFrom(f.id); strings.Contains(got, secret) || !strings.Contains(got, "Ann") || !strings.Contains(got, "more") {
			t.Errorf("recalled: %s", got)
		}
		f.restart()
	}
	f.forget(engine.ForgetRequest{Scope: other.Scope(), Purge: true})
	if got := f.recalledFrom(f.id); strings.Contains(got, "more") || !strings.Contains(got, "Ann") {
		t.Errorf("purged, recalled: %s", got)
	}
}

// TestPurgedIsNotRecalled: a session that was purged and goes on does not recall what it said before, whatever the retriever remembers: its positions are taken
// again.
func TestPurgedIsNotRecalled(t *testing.T) {
	for name, whole := range map[string]bool{"session": false, "agent": true} {
		t.Run(name, func(t *testing.T) {
			p := &proposer{}
			f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
			scope := f.id.Scope()
			if whole {
				scope.Session = ""
			}
			say := func(first string) {
				f.ingest(user(first), assistant("noted"), user("and my name is Ann"), assistant("hello"), user("so"), assistant("yes"))
				f.compact(40)
				f.everything(p, f.id.Agent)
			}
			say("my code is " + secret)
			if got := f.recalledFrom(f.id); !strings.Contains(got, secret) {
				t.Fatalf("recalled: %s", got)
			}
			remembered := p.candidates
			f.forget(engine.ForgetRequest{Scope: scope, Purge: true})
			say("nothing is hidden")
			p.candidates = append(remembered, p.candidates...)
			for range 2 {
				if got := f.recalledFrom(f.id); strings.Contains(got, secret) || !strings.Contains(got, "nothing is") {
					t.Errorf("purged, recalled: %s", got)
				}
				f.restart()
			}
		})
	}
}

// TestGrantEnds: a subagent recalls from its parent as long as its grant lasts, and no longer than it lives.
func TestGrantEnds(t *testing.T) {
	p := &proposer{}
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	child := core.SessionID{Agent: "helper", Session: "child"}
	for name, end := range map[string]func(f *fixture){
		"with the subagent": func(f *fixture) {
			if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Result: "found"}); err != nil {
				t.Fatal(err)
			}
		},
		"with its time": func(*fixture) { host.now = host.now.Add(2 * time.Hour) },
	} {
		for _, mode := range []core.SpawnMode{core.SpawnFork, core.SpawnIsolated} {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever, parts.Host = p, host })
				f.ingest(user("the parent's question"), assistant("the parent's answer"), user("so"), assistant("yes"))
				f.compact(40)
				req := core.SpawnRequest{Parent: f.id, Child: child, Mode: mode, TTL: time.Hour}
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				f.say(child, false, user("task"))
				f.say(core.SessionID{Agent: "main", Session: "other"}, false, user("another session"))
				f.everything(p, "main")
				if got := f.recalledFrom(child); strings.Contains(got, "another session") || !strings.Contains(got, "the parent's question") {
					t.Fatalf("recalled: %q", got)
				}
				end(f)
				for range 2 {
					res := f.assemble(4000, func(r *core.AssembleRequest) { r.Session, r.PromptMode = child, core.PromptFull })
					if s := shown(res); s != "task" {
						t.Errorf("shown: %s", s)
					}
					if got := f.recalledFrom(child); got != "" {
						t.Errorf("recalled: %s", got)
					}
					f.restart()
				}
			})
		}
	}
}

// TestWhatAParentSearchesIsNotRecalled: a parent may search what its subagent says; a retriever that proposes it does not bring it into the parent's prompt.
func TestWhatAParentSearchesIsNotRecalled(t *testing.T) {
	p := &proposer{}
	for _, agent := range []string{"main", "helper"} {
		f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
		f.ingest(user("left the window "+strings.Repeat("word ", 20)), assistant("early answer"), user("so"), assistant("yes"))
		f.compact(40)
		child := core.SessionID{Agent: agent, Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnIsolated}); err != nil {
			t.Fatal(err)
		}
		f.say(child, false, user("what the child said"))
		f.everything(p, "main", "helper")
		if got := f.recalledFrom(f.id); strings.Contains(got, "child") || !strings.Contains(got, "left the window") {
			t.Errorf("a child of %s: recalled: %q", agent, got)
		}
	}
}

// TestWhatIsSaidAfterTheSpawnIsNotRecalled: an isolated child recalls what was said before it was spawned, also where that was nothing.
func TestWhatIsSaidAfterTheSpawnIsNotRecalled(t *testing.T) {
	p := &proposer{}
	child := core.SessionID{Agent: "helper", Session: "child"}
	for _, before := range [][]message.Message{nil, {user("said before")}} {
		f := newFixture(t, func(_ *engine.Config, parts *engine.Parts) { parts.Retriever = p })
		f.ingest(before...)
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnIsolated}); err != nil {
			t.Fatal(err)
		}
		f.ingest(user("said after"), assistant("it was"))
		f.say(child, false, user("task"))
		f.everything(p, "main")
		if got := f.recalledFrom(child); strings.Contains(got, "said after") || strings.Contains(got, "said before") != (before != nil) {
			t.Errorf("recalled: %q", got)
		}
	}
}

// TestErasedElsewhere: what another process erased is not recalled, from the next call on, by an engine that has looked before and found nothing erased.
func TestErasedElsewhere(t *testing.T) {
	for name, purge := range map[string]bool{"erased": false, "purged": true} {
		t.Run(name, func(t *testing.T) {
			p := &proposer{}
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
			other := core.SessionID{Agent: "main", Session: "other"}
			f.say(other, false, user("my code is "+secret), user("my name is Ann"))
			f.say(core.SessionID{Agent: "main", Session: "third"}, false, user("there is more"))
			f.say(f.id, false, user("hello"))
			f.everything(p, "main")
			if got := f.recalledFrom(f.id); !strings.Contains(got, secret) {
				t.Fatalf("recalled: %s", got)
			}
			elsewhere, err := engine.New(f.parts, f.cfg)
			if err != nil {
				t.Fatal(err)
			}
			req := engine.ForgetRequest{Scope: other.Scope(), Entries: []string{p.candidates[0].Entry.ID}}
			if purge {
				req = engine.ForgetRequest{Scope: other.Scope(), Purge: true}
			}
			if got := p.candidates[0].Entry.Text(); !strings.Contains(got, secret) {
				t.Fatalf("the first candidate says %q", got)
			}
			if _, err := elsewhere.Forget(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			f.say(f.id, false, assistant("hi"), user("what is it?"))
			if got := f.recalledFrom(f.id); strings.Contains(got, secret) || !strings.Contains(got, "more") {
				t.Errorf("recalled: %s", got)
			}
		})
	}
}

// TestBlockOfALargerBudget: a recall block that was made for a large budget makes room for a short conversation when the next budget is small, and nothing else does.
func TestBlockOfALargerBudget(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.AcrossSessions, parts.Retriever = true, p
	})
	other := core.SessionID{Agent: f.id.Agent, Session: "other"}
	f.say(other, false, user("the answer is "+strings.Repeat("word ", 300)))
	f.everything(p, f.id.Agent)
	f.ingest(user("what was the answer?"))
	asking := func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was the answer?" }
	if res := f.assemble(16_000, asking); res.RecallLen == 0 {
		t.Fatal("nothing is recalled")
	}
	f.ingest(assistant("forty-two"), user("thanks"))
	p.candidates = nil
	if got, want := shown(f.assemble(300)), "what was the answer? | forty-two | thanks"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// TestRecalledBeforeLeavesFirst: what was recalled in earlier turns makes room for a conversation that was shown whole so far, and nothing else does when that is enough.
func TestRecalledBeforeLeavesFirst(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.AcrossSessions, parts.Retriever = true, p
	})
	other := core.SessionID{Agent: f.id.Agent, Session: "other"}
	f.say(other, false, user("the answer is "+strings.Repeat("word ", 70)))
	f.everything(p, f.id.Agent)
	f.ingest(user("what was the answer?"))
	asking := func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was the answer?" }
	if res := f.assemble(400, asking); res.RecallLen == 0 {
		t.Fatal("nothing is recalled")
	}
	p.candidates = nil
	said := "what was the answer?"
	for i := range 100 {
		text := fmt.Sprintf("part %d%s", i, strings.Repeat(" word", 14))
		f.ingest(assistant(text), user("on"))
		said += " | " + text + " | on"
		if got := shown(f.assemble(400)); got == said {
			return // the block left, and nothing else did
		} else if !strings.HasSuffix(got, said) {
			t.Fatalf("shown %q, want it to end with %q", got, said)
		}
	}
	t.Error("the block never left")
}
