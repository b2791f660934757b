package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

func (f *fixture) compact(budget int) core.CompactResult {
	f.t.Helper()
	res, err := f.engine.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: budget, Force: true})
	if err != nil {
		f.t.Fatal(err)
	}
	return res
}

// TestForgetTheOnlyLiveMessage: when all that a compaction left is erased, the window ends with the newest message that is not.
func TestForgetTheOnlyLiveMessage(t *testing.T) {
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "1", Name: "read", Args: "{}"}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "1", Name: "read", Text: "the file"}}}
	for name, c := range map[string]struct {
		before []message.Message
		want   string
	}{
		"the first":       {[]message.Message{user("one")}, "one"},
		"a message":       {[]message.Message{user("one"), assistant("two")}, "one | two"},
		"a tool's result": {[]message.Message{user("one"), call, result}, "one |  | the file"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.cfg.RecentMessages = 1
			f.restart()
			f.ingest(c.before...)
			f.ingest(user("my code is " + secret))
			f.assemble(1000)
			f.compact(1000)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			for range 2 {
				got := f.assemble(1000)
				if s := shown(got); s != c.want && s != "summary number 1 | "+c.want {
					t.Errorf("shown: %q, want %q behind at most a summary", s, c.want)
				}
				f.restart() // another process sees the same
			}
			f.ingest(user("three"), assistant("four"), user("five"))
			if s := shown(f.assemble(1000)); !strings.HasSuffix(s, c.want+" | three | four | five") {
				t.Errorf("later it shows %q", s)
			}
			if res := f.compact(1000); !res.OK {
				t.Errorf("later it compacts to %+v", res)
			}
			if s := shown(f.assemble(1000)); !strings.HasSuffix(s, "five") {
				t.Errorf("after another compaction it shows %q", s)
			}
		})
	}
}

// TestForgetTheMessageBeforeAResult: what a subagent handed back is no message of the conversation, and the window ends with none of it alone.
func TestForgetTheMessageBeforeAResult(t *testing.T) {
	f := newFixture(t)
	f.cfg.RecentMessages = 1
	f.restart()
	f.ingest(user("one"), assistant("two"), user("my code is "+secret))
	f.compact(1000)
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	child := core.SessionID{Agent: f.id.Agent, Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
		t.Fatal(err)
	}
	if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Result: "found it", Reason: "completed"}); err != nil {
		t.Fatal(err)
	}
	if s := shown(f.assemble(1000)); !strings.Contains(s, "one | two | ") || !strings.Contains(s, "found it") {
		t.Errorf("shown: %q", s)
	}
}

// TestForgetAfterTheHostCompacted: what the host compacted itself does not come back when all behind it is erased.
func TestForgetAfterTheHostCompacted(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("q1"), assistant("a1"), user("q2"))
	sum := user("the host's summary")
	sum.Type = message.CompactionSummary
	f.assemble(1000, transcript("now", sum, user("q2")))
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("q2").ID, f.entry("the host's").ID}})
	if s := shown(f.assemble(1000)); s != "" {
		t.Errorf("shown: %q", s)
	}
}

// TestRewindBehindASystemMessage: a cut that takes a summary back leaves what the older ones stand for to them, leading messages or not.
func TestRewindBehindASystemMessage(t *testing.T) {
	f := newFixture(t)
	f.parts.Compactor = steady{}
	f.restart()
	host := []message.Message{message.New(message.System, "be kind")}
	for i := range 20 {
		host = append(host, user(fmt.Sprintf("question %d", i)), assistant(fmt.Sprintf("answer %d", i)))
		if i%8 == 7 {
			f.assemble(1000, transcript("now", host...))
			f.compact(1000)
		}
	}
	got := shown(f.assemble(1000, transcript("now", host[:21]...)))
	if want := "be kind | [14 earlier] | question 7 | answer 7 | question 8 | answer 8 | question 9 | answer 9"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
}

// steady is a compactor that leaves the summaries it made before as they are.
type steady struct{}

func (steady) OwnsCompaction() bool { return true }

func (steady) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary"}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
	}
	r.Text = fmt.Sprintf("[%d earlier]", len(r.Entries))
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

// TestStoreLostTheOnlyLiveMessage: where the store lost all that a compaction left, and the session was mended, the window gives the newest messages back that
// there are. It says that it moved, once: what was sent before is no prefix of what is sent now.
func TestStoreLostTheOnlyLiveMessage(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.RecentMessages = 1 })
	f.ingest(user("one"), assistant("two"), user("three"))
	f.compact(1000)
	before := f.assemble(1000)
	if _, err := f.store.Delete(t.Context(), f.id.Scope(), []string{f.entry("three").ID}); err != nil {
		t.Fatal(err)
	}
	if n, err := f.engine.Mend(t.Context(), f.id); n != 1 || err != nil {
		t.Fatalf("Mend = %d, %v", n, err)
	}
	for n := range 2 {
		got := f.assemble(1000)
		if s := shown(got); s != "summary number 1 | one | two" {
			t.Errorf("window %d: shown %q", n, s)
		}
		if got.Stepped != (n == 0) || got.Epoch <= before.Epoch {
			t.Errorf("window %d: stepped %t, epoch %d, before %d", n, got.Stepped, got.Epoch, before.Epoch)
		}
	}
}

// TestForgetAllButAResult: a result whose call is erased is shown by no window, so that another message has to be.
func TestForgetAllButAResult(t *testing.T) {
	call := message.Message{Role: message.Assistant, Parts: []message.Part{{Kind: message.ToolCall, CallID: "1", Name: "read", Args: `{"of":"` + secret + `"}`}}}
	result := message.Message{Role: message.Tool, Parts: []message.Part{{Kind: message.ToolResult, CallID: "1", Name: "read", Text: "the file"}}}
	f := newFixture(t)
	f.cfg.RecentMessages = 1
	f.restart()
	f.ingest(user("one"), assistant("two"), user("three "+secret), call, result)
	f.compact(1000)
	var gone []string
	for entry, err := range core.All(t.Context(), f.store, f.id.Scope(), false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Type == core.TypeMessage && (strings.Contains(entry.Text(), secret) || entry.Message.HasCalls()) {
			gone = append(gone, entry.ID)
		}
	}
	if f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: gone}); len(gone) != 2 {
		t.Fatalf("%d entries are erased, want 2", len(gone))
	}
	for range 2 {
		if s := shown(f.assemble(1000)); !strings.HasSuffix(s, "two") {
			t.Errorf("shown: %q, want the newest answer at the end", s)
		}
		f.restart()
	}
}

// TestWindowReachesBackOverSummaries: all that a summary stands for is erased, and all behind it, so that what the summary before stands for is given back. Nothing of the
// rest gets lost: it is shown, left, or stood for, also when the host rewinds and when it is compacted again.
func TestWindowReachesBackOverSummaries(t *testing.T) {
	for name, rewinds := range map[string]bool{"rewound": true, "compacted": false} {
		t.Run(name, func(t *testing.T) {
			n := 0
			g := &greedy{propose: func(c core.Compaction) core.Patch {
				n++
				return core.Patch{Replace: []core.Replacement{{Kind: "summary", Text: fmt.Sprint("in short ", n), Entries: entryIDs(c.Entries[:len(c.Entries)-c.Protected])}}}
			}}
			f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.RecentMessages, p.Compactor = 1, g })
			var host []message.Message
			says := func(texts ...string) core.AssembleResult {
				for _, text := range texts {
					m := message.New([]message.Role{message.User, message.Assistant}[len(host)%2], text+" and some more words")
					m.ID = text
					host = append(host, m)
				}
				return f.assemble(1000, transcript("", host...))
			}
			says("alpha one", "alpha two", "alpha three", "alpha four", "beta one")
			f.compact(1000)
			says("beta two", "beta three", "beta four")
			f.compact(1000)
			var gone []string
			for _, m := range host[4:] {
				gone = append(gone, f.entry(m.Text()).ID)
			}
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: gone})
			says()
			if rewinds {
				host = host[:3]
				says()
			} else {
				says("gamma one", "gamma two", "gamma three")
				f.compact(1000)
			}
			for range 2 {
				res := says()
				d, err := f.engine.Describe(t.Context(), engine.DescribeRequest{Session: f.id})
				if err != nil {
					t.Fatal(err)
				}
				there := d.Shown + d.Left
				for _, sum := range d.Summaries {
					there += sum.Covers
				}
				if there != d.Entries {
					t.Errorf("shown: %q; of %d entries %d are shown, left, or stood for: %+v", shown(res), d.Entries, there, d)
				}
				f.restart()
			}
		})
	}
}

// TestCompactionTakesTheNewestPrompt: what the user asked for last stays in front when a compaction takes it out of the window, also where an older turn's message stood there.
func TestCompactionTakesTheNewestPrompt(t *testing.T) {
	f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.RecentMessages = 1 })
	say := func(text string) message.Message { return assistant(text + strings.Repeat(" word", 40)) }
	f.ingest(user("first question"))
	for range 6 {
		f.ingest(say("a step"))
	}
	if got := shown(f.assemble(200)); !strings.Contains(got, "first question") || !strings.Contains(got, "not shown") {
		t.Fatalf("shown: %q, want the question in front of a part of its turn", got)
	}
	f.ingest(user("second question"))
	for range 3 {
		f.ingest(say("another step"))
	}
	f.compact(200)
	if got := shown(f.assemble(200)); !strings.Contains(got, "second question") || strings.Contains(got, "first question") {
		t.Errorf("shown: %q, want the second question in front", got)
	}
	f.sound()
}

// TestPromptMergedIntoAGroup: a provider's rules merge prompts, also into the results or the answer in front of them. The newest stays when the rest has no room.
func TestPromptMergedIntoAGroup(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "google", "mistral", "openai", "openai-responses"} {
		for _, open := range []bool{false, true} {
			f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.History.Provider = provider })
			f.ingest(user("first question"), calling("c1"), resulting("c1", "found"))
			if open {
				f.ingest(calling("c2"))
			}
			f.ingest(user("aside"+strings.Repeat(" word", 100)), user("second question"+strings.Repeat(" word", 70)))
			f.ingest(calling("c3"), resulting("c3", "found more"), assistant("a step"))
			if got := shown(f.assemble(200)); !strings.Contains(got, "second question") {
				t.Errorf("%q, open %t: shown: %q, want the second question", provider, open, got)
			}
			f.sound()
		}
	}
}

// TestBlankIsNoPrompt: a user's message that says nothing, such as an image that the host took out, begins no turn: what the user asked stays, where the window steps
// and where a compaction comes.
func TestBlankIsNoPrompt(t *testing.T) {
	for _, provider := range []string{"", "anthropic", "google", "mistral", "openai", "openai-responses"} {
		for _, blank := range []string{"", " \n"} {
			f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.History.Provider, c.RecentMessages = provider, 1 })
			f.ingest(user("earlier"), assistant("before"), user("the question"+strings.Repeat(" word", 10)))
			f.assemble(150)
			for n := range 8 {
				if n == 3 {
					f.ingest(user(blank))
				}
				if n == 6 {
					f.compact(150)
				}
				id := fmt.Sprint("c", n)
				f.ingest(calling(id), resulting(id, "found"+strings.Repeat(" word", 30)))
				if got := shown(f.assemble(150, inLoop)); !strings.Contains(got, "the question") {
					t.Fatalf("%q, blank %q, step %d: shown: %q", provider, blank, n, got)
				}
			}
			f.sound()
		}
	}
}

// loseSummary compacts until the answer to a summary's append is lost.
func (f *fixture) loseSummary(store *struckStore) {
	f.t.Helper()
	for n := 1; store.what != "append"; n++ {
		store.at, store.lost = store.calls+n, true
		if _, err := f.engine.Compact(f.t.Context(), core.CompactRequest{Session: f.id, Budget: 200, Force: true}); err == nil {
			f.t.Fatal("no append failed: nothing is tested")
		}
	}
}

// TestPromptOfALostCompaction: the same, where the summary was stored and the answer lost.
func TestPromptOfALostCompaction(t *testing.T) {
	for _, restart := range []bool{false, true} {
		store := &struckStore{Store: memory.New()}
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
			c.RecentMessages, c.Failure, p.Store = 1, engine.FailStrict, store
		})
		f.ingest(user("the question"))
		for range 3 {
			f.ingest(assistant("a step" + strings.Repeat(" word", 40)))
		}
		f.assemble(1000)
		f.loseSummary(store)
		if restart {
			f.restart()
		}
		if got := shown(f.assemble(200)); !strings.Contains(got, "the question") || !strings.Contains(got, "summary") {
			t.Errorf("restart %v: shown: %q, want the summary and the question", restart, got)
		}
		f.sound()
	}
}

// TestPromptOfALostCompactionAndAnother: the same, where another compaction follows before the window is asked for.
func TestPromptOfALostCompactionAndAnother(t *testing.T) {
	for n := range 8 {
		restart, asked, between := n&1 != 0, n&2 != 0, n&4 != 0
		store := &struckStore{Store: memory.New()}
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
			c.RecentMessages, c.Failure, p.Store = 1, engine.FailStrict, store
		})
		steps := func() {
			for range 3 {
				f.ingest(assistant("a step" + strings.Repeat(" word", 40)))
			}
		}
		f.ingest(user("an older question"))
		steps()
		f.forceCompact(200)
		f.ingest(user("the question"))
		steps()
		if asked {
			f.assemble(400)
		}
		f.loseSummary(store)
		if restart {
			f.restart()
		}
		if between {
			f.assemble(400)
		}
		steps()
		f.forceCompact(200)
		got := shown(f.assemble(400))
		if !strings.Contains(got, "the question") {
			t.Errorf("restart %v, window asked for before %v and between %v: shown: %q, want the question", restart, asked, between, got)
		}
		f.sound()
	}
}
