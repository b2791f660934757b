package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// chatter is a conversation in which nothing is asked for.
func chatter(from, to int) (out []message.Message) {
	for i := from; i < to; i++ {
		out = append(out, user("item "+strconv.Itoa(i)+" is on the list"), assistant("item "+strconv.Itoa(i)+" is written down"))
	}
	return out
}

// full is a call in which recall has its say.
func full(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }

// TestFirstTurnAfterAReset: it is given so many of the newest messages from before it, once, asked or not, and goes on being shown them until they leave the window.
func TestFirstTurnAfterAReset(t *testing.T) {
	system := message.New(message.System, "be brief")
	for _, tt := range []struct {
		name   string
		change func(*engine.Config)
		reset  []message.Message // what the host shows when it began anew
		want   []string
		not    string
		again  bool // restart in between
	}{
		{name: "none", change: func(c *engine.Config) { c.Recall.ResetMessages = 0 }, not: "item"},
		{name: "two", want: []string{"item 5 is on", "item 5 is written"}, not: "item 4"},
		{name: "behind the same system message", reset: []message.Message{system}, want: []string{"item 5 is on", "item 5 is written"}, not: "item 4"},
		{name: "in a new process", want: []string{"item 5 is on", "item 5 is written"}, not: "item 4", again: true},
		{name: "more than there is", change: func(c *engine.Config) { c.Recall.ResetMessages = 1000 }, want: []string{"item 0 is on", "item 5 is written"}},
		{name: "without recall", change: func(c *engine.Config) { c.Recall.Share = 0 }, want: []string{"item 5 is on", "item 5 is written"}, not: "item 4"},
		{name: "taken back in part", reset: append([]message.Message{system}, chatter(0, 3)...), want: []string{"item 2 is written"}, not: "<recalled>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
				c.Recall.ResetMessages, parts.Retriever = 2, &asking{}
				if tt.change != nil {
					tt.change(c)
				}
			})
			before := append([]message.Message{system}, chatter(0, 6)...)
			f.assemble(4000, full, transcript("now", before...))
			f.assemble(4000, full, transcript("We go on.", tt.reset...))
			if tt.again {
				f.restart()
			}
			first := shown(f.assemble(4000, full, transcript("We go on.", tt.reset...)))
			after := append(tt.reset, user("We go on."), assistant("Gladly."))
			second := shown(f.assemble(4000, full, transcript("And on.", after...)))
			for _, got := range []string{first, second} {
				for _, want := range tt.want {
					if strings.Count(got, want) != 1 {
						t.Errorf("%q stands %d times in %s", want, strings.Count(got, want), got)
					}
				}
				if tt.not != "" && strings.Contains(got, tt.not) {
					t.Errorf("%q is shown: %s", tt.not, got)
				}
			}
		})
	}
}

// TestCarriedIsNotRecalledToo: what the first turn after a reset is given of what was before is quoted once, also where a retriever proposes it for that turn.
func TestCarriedIsNotRecalledToo(t *testing.T) {
	p := &proposer{}
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.ResetMessages, c.Recall.ResetHistory, parts.Retriever = 2, true, p
	})
	f.assemble(4000, full, transcript("now", chatter(0, 3)...))
	f.everything(p, f.id.Agent)
	got := shown(f.assemble(4000, full, transcript("What is on the list?")))
	for _, m := range chatter(0, 3) {
		if n := strings.Count(got, m.Text()); n != 1 {
			t.Errorf("%q stands %d times in %s", m.Text(), n, got)
		}
	}
}

// TestSummaryAfterAReset: what had left the window is carried as its newest summary.
func TestSummaryAfterAReset(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
		c.Recall.ResetMessages, parts.Compactor, parts.Retriever = 1, teller{}, &asking{}
	})
	f.assemble(4000, full, transcript("now", append([]message.Message{user("my code is " + secret), assistant("noted")}, chatter(0, 4)...)...))
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	got := shown(f.assemble(4000, full, transcript("We go on.")))
	if !strings.Contains(got, secret) || strings.Count(got, "item 3 is written down") != 1 || strings.Contains(got, "item 3 is on") {
		t.Errorf("shown: %s", got)
	}
	if n := strings.Count(got, "item 2"); n > 1 {
		t.Errorf("what the summary says is said again: %s", got)
	}
	if strings.Count(got, "\n[summary #") != 1 {
		t.Errorf("the summary is quoted as somebody's words: %s", got)
	}
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("code is").ID}})
	if left := f.traces(); left != nil {
		t.Errorf("still there: %q", left)
	}
	if got := shown(f.assemble(4000, full, transcript("We go on."))); strings.Contains(got, secret) {
		t.Errorf("erased, and shown: %s", got)
	}
}

// TestSummaryOfWhatWasReset: what a summary says is found as long as what it stands for is: not after a reset, and not by a subagent that begins after it.
func TestSummaryOfWhatWasReset(t *testing.T) {
	for _, told := range []bool{false, true} {
		f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.ResetHistory, parts.Compactor = told, teller{} })
		f.assemble(4000, full, transcript("now", append([]message.Message{user("my code is " + secret), assistant("noted")}, chatter(0, 4)...)...))
		if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
			t.Fatal(err)
		}
		finds := func(id core.SessionID) (n int) {
			res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: id, Query: secret})
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range res.Found {
				if strings.Contains(found.Excerpt, secret) {
					n++
				}
			}
			return n
		}
		if finds(f.id) != 2 {
			t.Fatalf("before the reset %d entries are found, want the message and the summary", finds(f.id))
		}
		f.assemble(4000, full, transcript("We go on."))
		child := core.SessionID{Agent: "main", Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
			t.Fatal(err)
		}
		f.say(child, false, user("a task"))
		for _, id := range []core.SessionID{f.id, child} {
			if got := finds(id); (got > 0) != told {
				t.Errorf("resetHistory %t: %s finds %d entries", told, id, got)
			}
		}
	}
}

// TestResetAfterManyTools: calls of tools and their results do not count among the messages that a turn is given.
func TestResetAfterManyTools(t *testing.T) {
	for _, calls := range []int{0, 10, 400} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.ResetMessages = 2 })
		before := append(chatter(0, 2), user("the last prompt"))
		for i := range calls {
			call, result := message.New(message.Assistant, ""), message.New(message.Tool, "")
			call.Parts = []message.Part{{Kind: message.ToolCall, CallID: "c" + strconv.Itoa(i), Name: "f", Args: "{}"}}
			result.Parts = []message.Part{{Kind: message.ToolResult, CallID: "c" + strconv.Itoa(i), Name: "f", Text: "fine"}}
			before = append(before, call, result)
		}
		f.assemble(40000, full, transcript("now", append(before, assistant("the last answer"))...))
		got := shown(f.assemble(40000, full, transcript("We go on.")))
		if !strings.Contains(got, "the last prompt") || !strings.Contains(got, "the last answer") || strings.Contains(got, "item") {
			t.Errorf("%d calls: shown: %s", calls, got)
		}
	}
}

// TestCarriedIsNotShownTwice: where a host begins anew and goes back to what it said before, what was carried over is in the window and is not
// quoted beside it.
func TestCarriedIsNotShownTwice(t *testing.T) {
	old, anew := one(user("one word"), assistant("two words"), user("three of them"), assistant("four of these")), one(user("anew"))
	for name, back := range map[string][]message.Message{
		"the same again": old, "and more": join(old, one(user("five"))), "the reset behind it": join(old, anew), "its end in front of the reset": join(old[2:], anew),
	} {
		for _, prompt := range []string{"the same prompt", "another prompt"} {
			for _, restart := range []bool{false, true} {
				f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Recall.ResetMessages = 2 })
				f.assemble(1000, transcript("the same prompt", old...), full)
				if s := shown(f.assemble(1000, transcript("the same prompt", anew...), full)); !strings.Contains(s, "> four of these") {
					t.Fatalf("nothing is carried: %q", s)
				}
				if restart {
					f.restart()
				}
				s := shown(f.assemble(1000, transcript(prompt, back...), full))
				for _, m := range old {
					if strings.Count(s, m.Text()) > 1 {
						t.Errorf("%s, %s, restarts %t: %q is shown twice: %q", name, prompt, restart, m.Text(), s)
					}
				}
			}
		}
	}
}

// TestCarriedUntilTheGrantIsOver: a fork that began anew is given some of what was before, which was its parent's, and no longer than it may be shown.
func TestCarriedUntilTheGrantIsOver(t *testing.T) {
	for _, agent := range []string{"main", "other"} {
		for _, how := range []string{"ended", "over"} {
			for _, then := range []string{"the own output", "the same list", "another prompt", "a reset"} {
				for _, restart := range []bool{false, true} {
					host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
					f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Recall.ResetMessages, p.Host = 2, host })
					f.ingest(user("the lantern is in the harbour"), assistant("noted"))
					child := core.SessionID{Agent: agent, Session: "child"}
					if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
						t.Fatal(err)
					}
					in := func(r *core.AssembleRequest) { r.Session = child }
					first := f.assemble(1000, transcript("go", user("anew")), full, in)
					if !strings.Contains(shown(first), "lantern") {
						t.Fatalf("nothing is carried: %q", shown(first))
					}
					if how == "over" {
						host.now = host.now.Add(2 * time.Hour)
					} else if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Result: "so", Reason: "completed"}); err != nil {
						t.Fatal(err)
					}
					if restart {
						f.restart()
					}
					next := map[string]func(*core.AssembleRequest){
						"the own output": func(r *core.AssembleRequest) { transcript("", first.Messages...)(r); inLoop(r) },
						"the same list":  transcript("go", user("anew")), "another prompt": transcript("go on", user("anew")), "a reset": transcript("go", user("from the start")),
					}[then]
					if s := shown(f.assemble(1000, full, in, next)); strings.Contains(s, "lantern") {
						t.Errorf("agent %s, grant %s, restarts %t, then %s: shown %q", agent, how, restart, then, s)
					}
				}
			}
		}
	}
}
