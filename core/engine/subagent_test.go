package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// clock is a host whose time stands still.
type clock struct {
	core.NoHost
	now time.Time
}

func (c *clock) Now() time.Time { return c.now }

// TestSubagentWithoutAResult: a fork whose host has copies of what it inherited never hands its parent's words back as its own, also when the grant is over.
func TestSubagentWithoutAResult(t *testing.T) {
	parent := []message.Message{user("question"), assistant("done"), user("more"), assistant("parent's words")}
	for name, c := range map[string]struct {
		said []message.Message
		want string
	}{
		"nothing":                 {nil, ""},
		"an answer":               {[]message.Message{user("task"), assistant("found it")}, "found it"},
		"what the parent said":    {[]message.Message{user("task"), assistant("done")}, "done"},
		"an answer and a blank":   {[]message.Message{user("task"), assistant("found it"), assistant(" \n")}, "found it"},
		"a blank":                 {[]message.Message{user("task"), assistant(" \n")}, ""},
		"a question of the child": {[]message.Message{user("task")}, ""},
	} {
		for when, later := range map[string]time.Duration{"lasts": 0, "is over": 2 * time.Hour} {
			t.Run(name+", the grant "+when, func(t *testing.T) {
				host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
				f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
				f.assemble(1000, transcript("next", parent...))
				child := core.SessionID{Agent: "main", Session: "child"}
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
				host.now = host.now.Add(later)
				for range 2 { // in two processes
					f.assemble(1000, transcript("next", slices.Concat(parent, c.said)...), func(r *core.AssembleRequest) { r.Session = child })
					f.restart()
				}
				for _, nothing := range []string{"", " \t"} {
					if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Result: nothing, Reason: "completed"}); err != nil {
						t.Fatal(err)
					}
				}
				_, got, _ := strings.Cut(shown(f.assemble(1000)), "<subagent")
				if c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, "parent's words") {
					t.Errorf("handed back: %q, want %q", got, c.want)
				}
			})
		}
	}
}

// TestGrantEndsInsideATurn: what a fork showed shortened of its parent is the host's own once the grant is over, also inside a turn: it says it, and nobody else does.
func TestGrantEndsInsideATurn(t *testing.T) {
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
	long := user("begin " + strings.Repeat("word ", 2000) + "end")
	f.assemble(400, transcript("", long))
	child := core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	of := func(r *core.AssembleRequest) { r.Session = child }
	before := f.assemble(400, transcript("", message.New(message.System, "rules of the child"), long), of)
	if got := shown(before); !strings.Contains(got, "shortened") {
		t.Fatalf("the fork shows %q, want it shortened", got)
	}
	host.now = host.now.Add(2 * time.Hour)
	inside := func(r *core.AssembleRequest) { r.Session, r.Call = child, core.CallLoop }
	if got, want := shown(f.assemble(400, transcript("", before.Messages...), inside)), "begin"; !strings.Contains(got, want) {
		t.Errorf("when the grant is over %q is shown, want what the host handed over", got)
	}
}

// asking is a retriever that notes what it was asked and proposes what of that is open to the question.
type asking struct {
	proposer
	asked []core.Query
}

func (a *asking) Retrieve(ctx context.Context, q core.Query) ([]core.Candidate, error) {
	a.asked = append(a.asked, q)
	all, err := a.proposer.Retrieve(ctx, q)
	return slices.DeleteFunc(slices.Clone(all), func(c core.Candidate) bool {
		return !slices.ContainsFunc(append([]core.Scope{q.Scope}, q.Granted...), func(s core.Scope) bool { return s.Contains(c.Entry.SessionID()) })
	}), err
}

// TestIsolatedChild: a subagent that begins with nothing recalls what its task needs of its parent, although the task is no question, until its grant is over;
// the parent finds what the child said when it searches, and is told nothing of it unasked. With the key off neither does.
func TestIsolatedChild(t *testing.T) {
	for name, agent := range map[string]string{"of the agent": "main", "of another agent": "other"} {
		for _, on := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %t", name, on), func(t *testing.T) {
				host, p := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, &asking{}
				f := newFixture(t, func(c *engine.Config, parts *engine.Parts) {
					parts.Host, parts.Retriever, c.Subagents.Recall = host, p, on
				})
				f.ingest(user("the port of the gateway is 8471"), assistant("noted"))
				f.everything(&p.proposer, f.id.Agent)
				child := core.SessionID{Agent: agent, Session: "child"}
				sp, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, TTL: time.Hour})
				if err != nil || (sp.GrantID != "") != on {
					t.Fatalf("grant %q, error %v", sp.GrantID, err)
				}
				task := "write the configuration of the gateway with its port"
				f.say(child, false, user(task))
				f.ingest(assistant("the child's task: " + task + ", 8471"))
				f.everything(&p.proposer, f.id.Agent)
				of := func(r *core.AssembleRequest) { r.Session, r.Prompt, r.PromptMode = child, task, "" }
				if got := shown(f.assemble(2000, of)); strings.Contains(got, "8471") != on {
					t.Errorf("the child is shown %q", got)
				}
				if got := shown(f.assemble(2000, of)); strings.Count(got, "8471") > 1 {
					t.Errorf("the child is told twice: %q", got)
				}
				f.say(child, false, assistant("the child wrote 99 lines"))
				finds := func(id core.SessionID, what string) bool {
					t.Helper()
					res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: id, Query: what})
					if err != nil {
						t.Fatal(err)
					}
					return len(res.Found) > 0
				}
				if finds(child, "8471") != on || finds(f.id, "99 lines") != on {
					t.Errorf("the child finds what the parent said: %t, the parent what the child said: %t", finds(child, "8471"), finds(f.id, "99 lines"))
				}
				f.ingest(user("what did the child write?"))
				full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
				if f.assemble(2000, full); len(p.asked[len(p.asked)-1].Granted) > 0 {
					t.Error("the parent recalls from the child unasked")
				}
				f.restart()
				host.now = host.now.Add(time.Hour)
				if got := shown(f.assemble(2000, of)); strings.Contains(got, "8471") || finds(child, "8471") || finds(f.id, "99 lines") {
					t.Errorf("after the grant: %q", got)
				}
			})
		}
	}
}

// TestChildAndReset: a subagent is not told, and does not find, what its parent had taken back when it was spawned, unless that is recalled anyway.
func TestChildAndReset(t *testing.T) {
	for _, agent := range []string{"main", "other"} {
		for _, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
			for _, told := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, %t", agent, mode, told), func(t *testing.T) {
					p := &asking{}
					f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { parts.Retriever, c.Recall.ResetHistory = p, told })
					f.assemble(2000, transcript("now", user("the port of the gateway is 8471"), assistant("noted")))
					f.assemble(2000, transcript("now", user("the gateway listens on all addresses"), assistant("so be it")))
					f.everything(&p.proposer, f.id.Agent)
					child := core.SessionID{Agent: agent, Session: "child"}
					if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: mode, TTL: time.Hour}); err != nil {
						t.Fatal(err)
					}
					task := "write the configuration of the gateway with its port"
					f.say(child, false, user(task))
					of := func(r *core.AssembleRequest) { r.Session, r.Prompt, r.PromptMode = child, task, "" }
					got := shown(f.assemble(2000, of))
					if strings.Contains(got, "8471") != told || !strings.Contains(got, "all addresses") {
						t.Errorf("the child is shown %q", got)
					}
					for what, want := range map[string]bool{"8471": told, "addresses": true} {
						res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: child, Query: what})
						if err != nil || len(res.Found) > 0 != want {
							t.Errorf("the child finds %q: %d entries, error %v", what, len(res.Found), err)
						}
					}
				})
			}
		}
	}
}

// TestIsolatedChildUndone: a preparation that is taken back opens nothing, in neither direction.
func TestIsolatedChildUndone(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("the port of the gateway is 8471"), assistant("noted"))
	child := core.SessionID{Agent: "main", Session: "child"}
	sp, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child})
	if err != nil {
		t.Fatal(err)
	}
	if err := sp.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.say(child, false, user("the child wrote 99 lines"))
	for id, what := range map[core.SessionID]string{child: "8471", f.id: "99 lines"} {
		if res, err := f.engine.Search(t.Context(), engine.SearchRequest{Session: id, Query: what}); err != nil || len(res.Found) > 0 {
			t.Errorf("%s finds %d entries, error %v", id, len(res.Found), err)
		}
	}
}

// TestSubagentsPromptMode: the mode of a subagent's session is the configured one, unless its host names another; a session that is nobody's child is not concerned.
func TestSubagentsPromptMode(t *testing.T) {
	for configured, want := range map[core.PromptMode]bool{core.PromptNone: false, core.PromptMinimal: true, core.PromptFull: true} {
		p := &asking{}
		f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { parts.Retriever, c.Subagents.PromptMode = p, configured })
		f.ingest(user("the port of the gateway is 8471"))
		child := core.SessionID{Agent: "main", Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
			t.Fatal(err)
		}
		asks := func(id core.SessionID, mode core.PromptMode) bool {
			before := len(p.asked)
			f.say(id, false, user(fmt.Sprintf("which port does the gateway have, question %d?", before)))
			f.assemble(2000, func(r *core.AssembleRequest) { r.Session, r.PromptMode = id, mode })
			return len(p.asked) > before
		}
		if got := asks(child, ""); got != want {
			t.Errorf("%q: the child recalls: %t", configured, got)
		}
		if !asks(child, core.PromptFull) || asks(child, core.PromptNone) || !asks(f.id, "") {
			t.Errorf("%q: what the host names does not hold, or the mode holds for others", configured)
		}
	}
	c := engine.DefaultConfig()
	c.Subagents.PromptMode = "loud"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "subagents.promptMode") {
		t.Errorf("Validate = %v", err)
	}
}

// TestLateRollback: who takes an earlier preparation back, whose answer was lost, takes nothing from a child that a later one has launched.
func TestLateRollback(t *testing.T) {
	for _, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
		f := newFixture(t)
		f.ingest(user("the port of the gateway is 8471"), assistant("noted"))
		child := core.SessionID{Agent: "main", Session: "child"}
		var spawns []core.Spawn
		for range 2 {
			sp, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			spawns = append(spawns, sp)
		}
		f.say(child, false, user("task"))
		for n, want := range []int{1, 0} {
			if err := spawns[n].Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v, err := f.store.LoadView(t.Context(), child); err != nil || len(v.Grants) != want {
				t.Errorf("%s: rollback of preparation %d leaves %d grants, error %v, want %d", mode, n+1, len(v.Grants), err, want)
			}
		}
	}
}

// TestSpawnOfAUsedChild: a child that has said anything cannot be prepared, and a preparation that is taken back leaves a child that was used its conversation.
func TestSpawnOfAUsedChild(t *testing.T) {
	for _, on := range []bool{true, false} {
		f := newFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Subagents.Recall = on })
		f.ingest(user("parent question"), assistant("parent answer"))
		child := core.SessionID{Agent: "main", Session: "child"}
		in := func(r *core.AssembleRequest) { r.Session = child }
		prepare := func(mode core.SpawnMode) (core.Spawn, error) {
			return f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: mode})
		}
		for _, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
			sp, err := prepare(mode)
			if err != nil {
				t.Fatal(err)
			}
			f.assemble(1000, in)
			for range 2 {
				if err := sp.Rollback(t.Context()); err != nil {
					t.Errorf("%s: %v", mode, err)
				}
			}
			if got := shown(f.assemble(1000, in)); got != "" {
				t.Errorf("%s: when it is taken back the child shows %q", mode, got)
			}
		}
		sp, err := prepare(core.SpawnFork)
		if err != nil {
			t.Fatal(err)
		}
		f.say(child, false, user("task"))
		if _, err := prepare(core.SpawnFork); !errors.Is(err, core.ErrConflict) {
			t.Errorf("prepared again: %v, want ErrConflict", err)
		}
		if err := sp.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
		if v, err := f.store.LoadView(t.Context(), child); err != nil || v.Parent == nil || v.Next == 0 || len(v.Grants) != 0 {
			t.Errorf("a preparation that was used is taken back, or leaves something open: %+v, %v", v, err)
		}
		other := core.SessionID{Agent: "main", Session: "other"}
		f.say(other, false, user("one message"))
		child = other
		for _, mode := range []core.SpawnMode{core.SpawnIsolated, core.SpawnFork} {
			if _, err := prepare(mode); !errors.Is(err, core.ErrConflict) {
				t.Errorf("a child with one message: %v, want ErrConflict", err)
			}
		}
	}
}

// TestResultOfASubagent: what a subagent said last is handed back, however long ago that was; it goes to the parent that the host names, or else to the one that
// spawned it, and a host goes on as if nothing had come in between.
func TestResultOfASubagent(t *testing.T) {
	for name, kind := range map[string]core.Call{"its own list": core.CallPrompt, "what it was given": core.CallLoop} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			host := []message.Message{user("question"), assistant("I ask somebody")}
			out := f.assemble(1000, transcript("", host...)).Messages
			child := core.SessionID{Agent: "main", Session: "child"}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
				t.Fatal(err)
			}
			f.say(child, false, user("task"), assistant("found it"))
			for n := range 130 {
				f.say(child, false, user(fmt.Sprint("and then ", n)))
			}
			for range 2 {
				if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Reason: "completed"}); err != nil {
					t.Fatal(err)
				}
			}
			more := []message.Message{user("so?"), assistant("so it is")}
			if kind == core.CallPrompt {
				out = host
			}
			next := func(r *core.AssembleRequest) {
				r.Call, r.Transcript = kind, &core.Transcript{Skipped: len(out), Digest: message.DigestOf(out), Messages: more}
			}
			for range 2 {
				got := shown(f.assemble(1000, next))
				if strings.Count(got, "found it") != 1 || !strings.HasPrefix(got, "question | I ask somebody | ") || !strings.HasSuffix(got, " | so? | so it is") {
					t.Errorf("shown: %q", got)
				}
			}
			if n := f.stored(); n != 5 {
				t.Errorf("%d entries are stored, want 5", n)
			}
			other := core.SessionID{Agent: "main", Session: "other"}
			if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: child, Parent: other, Result: "for another one"}); err != nil {
				t.Fatal(err)
			}
			if got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Session = other })); !strings.Contains(got, "for another one") {
				t.Errorf("the parent that was named shows %q", got)
			}
			if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Child: core.SessionID{Agent: "main", Session: "nobody's"}, Result: "lost"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMaintain: what can wait is a compaction that is due, unless it is turned off or the runtime compacts; its failure is one.
func TestMaintain(t *testing.T) {
	fault := errors.New("disk on fire")
	for name, c := range map[string]struct {
		change  func(*engine.Config, *engine.Parts)
		long    bool
		fails   bool
		changed bool
		reason  string
	}{
		"due":            {nil, true, false, true, ""},
		"not due":        {nil, false, false, false, core.ReasonBelowThreshold},
		"turned off":     {func(c *engine.Config, _ *engine.Parts) { c.Compaction.Proactive = false }, true, false, false, "nothing to do"},
		"of the runtime": {func(_ *engine.Config, p *engine.Parts) { p.Compactor = runtimes{} }, true, false, false, "nothing to do"},
		"fails":          {nil, true, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			broken := &failing{Store: memory.New()}
			f := newFixture(t, func(cfg *engine.Config, p *engine.Parts) {
				if p.Store = broken; c.change != nil {
					c.change(cfg, p)
				}
			})
			f.store = broken.Store
			turns := 2
			if c.long {
				turns = 60
			}
			for n := range turns {
				f.ingest(user(fmt.Sprintf("question %d of several words", n)), assistant(fmt.Sprintf("answer %d of several words", n)))
				f.assemble(200)
			}
			if c.fails {
				broken.err = fault
			}
			res, err := f.engine.Maintain(t.Context(), core.MaintainRequest{Session: f.id, Budget: 200})
			if c.fails != errors.Is(err, fault) || !c.fails && err != nil || res.Changed != c.changed || !strings.HasPrefix(res.Reason, c.reason) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// runtimes is a compactor that leaves compacting to the runtime.
type runtimes struct{}

func (runtimes) OwnsCompaction() bool { return false }

func (runtimes) Compact(context.Context, core.Compaction) (core.Patch, error) {
	return core.Patch{Delegated: &core.CompactResult{OK: true, Compacted: true}}, nil
}

// TestSubagentEndsInsideATurn: a host that says by a digest alone that it begins with what it was sent is understood inside a turn, also when a subagent handed
// back its result meanwhile, which no host shows.
func TestSubagentEndsInsideATurn(t *testing.T) {
	f := newFixture(t)
	sent := f.assemble(200, transcript("", turns(20)...))
	if !strings.HasPrefix(shown(sent), "[") {
		t.Fatalf("shown: %q: nothing is tested", shown(sent))
	}
	child := core.SessionID{Agent: f.id.Agent, Session: "child"}
	if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Result: "found it", Reason: "completed"}); err != nil {
		t.Fatal(err)
	}
	n := len(sent.Messages)
	got := shown(f.assemble(200, loopCall, func(r *core.AssembleRequest) {
		r.Transcript = &core.Transcript{Skipped: n, Digest: message.DigestOf(sent.Messages), Messages: []message.Message{user("and?")}}
	}))
	if !strings.HasPrefix(got, shown(sent)) || !strings.Contains(got, "found it") || !strings.HasSuffix(got, " | and?") {
		t.Errorf("shown: %q", got)
	}
}

// TestResultThatWasRecalled: what a child said is recalled while it runs, in this turn or one before, and is not shown a second time beside what it hands back; what
// else was recalled may stay.
func TestResultThatWasRecalled(t *testing.T) {
	const said = "the zebra stands in the oven"
	full := func(r *core.AssembleRequest) { r.PromptMode = core.PromptFull }
	for name, c := range map[string]struct {
		result string
		later  bool // a turn later
		times  int
	}{
		"its last answer":               {"", false, 1},
		"the host's copy":               {said, false, 1},
		"a turn later":                  {said, true, 1},
		"something else":                {"nothing was found", false, 1},
		"its last answer, a turn later": {"", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &proposer{}
			f := newFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
			child := core.SessionID{Agent: "main", Session: "child"}
			f.say(f.id, false, user("send somebody to look for the zebra"))
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child}); err != nil {
				t.Fatal(err)
			}
			f.say(child, false, user("look for it"), assistant(said))
			f.everything(p, "main")
			f.say(f.id, false, user("where is the zebra by now?"))
			if got := shown(f.assemble(4000, full)); !strings.Contains(got, said) {
				t.Fatalf("shown: %q: nothing is recalled", got)
			}
			if c.later {
				f.say(f.id, false, assistant("it is looked for"), user("and now?"))
				f.assemble(4000, full)
			}
			for range 2 {
				if err := f.engine.OnSubagentEnded(t.Context(), core.SubagentEnded{Parent: f.id, Child: child, Reason: "completed", Result: c.result}); err != nil {
					t.Fatal(err)
				}
				if got := shown(f.assemble(4000, full)); strings.Count(got, said) != c.times {
					t.Errorf("shown %d times, want %d: %q", strings.Count(got, said), c.times, got)
				}
				f.restart()
			}
			f.sound()
		})
	}
}

// TestLeadersOfALapsedFork: the system messages that a fork's own transcript begins with lead on when what it inherited is closed, and give way to others; also where the
// disk had no room for the view that says so.
func TestLeadersOfALapsedFork(t *testing.T) {
	for name, c := range map[string]struct{ told, full, ingested bool }{
		"told before": {told: true}, "told after": {}, "no room for the view": {full: true}, "ingested": {ingested: true},
	} {
		t.Run(name, func(t *testing.T) {
			host, disk := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, &fullDisk{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host, p.Store = host, disk })
			f.store = disk.Store
			if c.ingested {
				f.ingest(system("parent's"))
			} else {
				f.assemble(1000, transcript("", system("parent's"), user("q"), assistant("a")))
			}
			child := core.SessionID{Agent: f.id.Agent, Session: "child"}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
			tell := func(list ...message.Message) string {
				t.Helper()
				return shown(f.assemble(1000, transcript("", list...), func(r *core.AssembleRequest) { r.Session = child }))
			}
			if c.told {
				if got := tell(system("s1"), user("q"), assistant("a"), user("task")); got != "s1 | q | a | task" {
					t.Fatalf("window = %q: nothing is tested", got)
				}
			}
			if c.ingested {
				f.say(child, false, system("s1"), user("task"))
			}
			host.now = host.now.Add(2 * time.Hour)
			if disk.noViews = c.full; c.full {
				tell(system("s1"), user("task"))
				disk.noViews = false
				f.restart()
			}
			for _, s := range []string{"s1", "s2", "s3"} {
				if got, want := tell(system(s), user("task")), s+" | task"; got != want {
					t.Errorf("window = %q, want %q", got, want)
				}
			}
		})
	}
}

// TestForkBack: a session that a fork of its own gave its history to, after it had begun anew, shows none of that once it is closed, and what it shows stays as it is.
func TestForkBack(t *testing.T) {
	host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
	f.assemble(1000, transcript("", user("q"), assistant("a")))
	fork := func(parent, child core.SessionID) {
		t.Helper()
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: parent, Child: child, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	other := core.SessionID{Agent: f.id.Agent, Session: "other"}
	fork(f.id, other)
	f.say(other, false, user("in the fork"))
	if f.assemble(1000, transcript("")); f.known() != 0 {
		t.Fatalf("%d known: nothing is tested", f.known())
	}
	fork(other, f.id)
	if got := shown(f.assemble(1000)); got != "q | a | in the fork" {
		t.Fatalf("window = %q: nothing is tested", got)
	}
	host.now = host.now.Add(2 * time.Hour)
	epoch := f.assemble(1000).Epoch
	for range 2 {
		if res := f.assemble(1000); shown(res) != "" || res.Epoch != epoch {
			t.Errorf("window = %q in epoch %d, want nothing, in epoch %d", shown(res), res.Epoch, epoch)
		}
	}
}
