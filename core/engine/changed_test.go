package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// remote is a store as a server is that several processes write to: it keeps no views, and counts what was changed and deleted of each agent.
type remote struct {
	viewless
	mu      sync.Mutex
	changes map[string]uint64
	// tail is what Tail fails with.
	tail error
	// storing is called before a summary is stored.
	storing func()
}

func newRemote() *remote {
	return &remote{viewless: viewless{memory.New()}, changes: make(map[string]uint64)}
}

func (s *remote) changed(agent string, by uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes[agent] += by
	return s.changes[agent]
}

func (s *remote) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if s.tail != nil {
		return core.Tail{}, s.tail
	}
	page, err := s.Scan(ctx, core.ScanQuery{Scope: id.Scope(), Reverse: true, Limit: 1})
	tail := core.Tail{View: s.changed(id.Agent, 0)}
	if len(page.Entries) > 0 {
		tail.Next = page.Entries[0].Seq + 1
	}
	return tail, err
}

func (s *remote) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if len(entries) > 0 && entries[0].Type == core.TypeSummary && s.storing != nil {
		s.storing()
	}
	return s.viewless.Append(ctx, entries)
}

func (s *remote) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	defer s.changed(scope.Agent, 1) // a server does both at once: nobody sees the count before the change
	return s.viewless.Update(ctx, scope, id, c)
}

func (s *remote) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	defer s.changed(scope.Agent, 1)
	return s.viewless.Delete(ctx, scope, ids)
}

// remoteFixture is a fixture over such a store, and what another process does there.
func remoteFixture(t *testing.T, change ...func(*engine.Config, *engine.Parts)) (f, other *fixture, store *remote) {
	t.Helper()
	store = newRemote()
	f = newFixture(t, append(change, func(_ *engine.Config, p *engine.Parts) { p.Store = store })...)
	other = newFixture(t, append(change, func(_ *engine.Config, p *engine.Parts) { p.Store = store })...)
	f.store, other.store = store.inner(t), store.inner(t)
	return f, other, store
}

// inner is the store without the network in front.
func (s *remote) inner(t *testing.T) *memory.Store {
	t.Helper()
	inner, ok := s.Store.(*memory.Store)
	if !ok {
		t.Fatal("no store in memory")
	}
	return inner
}

// TestOthersEraseWhereNoViewsAreKept: what another process erased or deleted in a store that keeps no views is gone at the next call from everything that a window
// is made of, and the rest stays.
func TestOthersEraseWhereNoViewsAreKept(t *testing.T) {
	talk := []message.Message{user("my code is " + secret), assistant("noted"), user("apple"), assistant("pear"), user("plum"), assistant("fig")}
	erase := func(f, other *fixture) {
		other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	}
	for name, c := range map[string]struct {
		compactor core.Compactor
		budget    int
		do        func(f, other *fixture)
		want      string
	}{
		"a message erased": {&halver{}, 0, erase, "noted | apple | pear | plum | fig"},
		"a message deleted": {&halver{}, 0, func(f, _ *fixture) {
			if _, err := f.parts.Store.Delete(f.t.Context(), f.id.Scope(), []string{f.entry(secret).ID, f.entry("pear").ID}); err != nil {
				f.t.Fatal(err)
			}
		}, "noted | apple | plum | fig"},
		"one message deleted": {&halver{}, 0, func(f, _ *fixture) {
			if _, err := f.parts.Store.Delete(f.t.Context(), f.id.Scope(), []string{f.entry("pear").ID}); err != nil {
				f.t.Fatal(err)
			}
		}, "my code is " + secret + " | noted | apple | plum | fig"},
		"erased behind a summary": {teller{}, 30, erase, "[A summary of earlier messages was erased; what else it stood for is stored but not shown.] | plum | fig"},
		"another one erased": {teller{}, 30, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("fig").ID}})
		}, secret + " noted apple pear  | plum"},
		"erased where it is shortened": {stubber{text: "it begins with " + secret}, 1000, erase, "noted | apple | pear | plum | fig"},
		"another one erased than the shortened": {stubber{text: "in short"}, 1000, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("plum").ID}})
		}, "in short | noted | apple | pear | fig"},
		"all purged": {teller{}, 30, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
		}, ""},
		"all purged, and said anew": {&halver{}, 0, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
			other.ingest(user("anew"), assistant("yes"))
		}, "anew | yes"},
		"all purged behind a summary, and less said anew": {teller{}, 30, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
			other.ingest(user("anew"), assistant("yes"), user("and"), assistant("so on"))
		}, "anew | yes | and | so on"},
		"all purged behind a summary, and more said anew": {teller{}, 30, func(f, other *fixture) {
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
			other.ingest(user("b0"), assistant("b1"), user("b2"), assistant("b3"), user("b4"), assistant("b5"), user("b6"), assistant("b7"))
		}, "b0 | b1 | b2 | b3 | b4 | b5 | b6 | b7"},
	} {
		t.Run(name, func(t *testing.T) {
			f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = c.compactor })
			f.ingest(talk...)
			if c.budget > 0 {
				f.compact(c.budget)
			}
			f.assemble(1000)
			other.assemble(1000)
			epoch := f.epoch()
			other.say(core.SessionID{Agent: "main", Session: "elsewhere"}, false, user("nothing to do with it"))
			other.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main", Session: "elsewhere"}})
			if f.assemble(1000); f.epoch() != epoch {
				t.Error("what was sent is not a prefix any more, and nothing of it was erased")
			}
			c.do(f, other)
			for range 2 {
				if got := shown(f.assemble(1000)); got != c.want {
					t.Errorf("shown: %q, want %q", got, c.want)
				}
			}
			if f.epoch() == epoch {
				t.Error("something was erased, and what was sent is said to be a prefix still")
			}
			f.ingest(user("further"))
			if got, want := shown(f.assemble(1000)), strings.TrimPrefix(c.want+" | further", " | "); got != want {
				t.Errorf("shown after another message: %q, want %q", got, want)
			}
			f.restart() // where no views are kept, what was shortened is as it was, and nothing stands for what a summary stood for
			for _, g := range []*fixture{f, other} {
				got := strings.ReplaceAll(shown(g.assemble(1000)), "my code is "+secret, "in short")
				if !strings.HasSuffix(got, "further") || strings.Contains(got, secret) && !strings.Contains(c.want, secret) {
					t.Errorf("shown by one that read it anew: %q", got)
				}
			}
		})
	}
}

// epoch is that of what the session was sent.
func (f *fixture) epoch() uint64 {
	f.t.Helper()
	d, err := f.engine.Describe(f.t.Context(), engine.DescribeRequest{Session: f.id})
	if err != nil {
		f.t.Fatal(err)
	}
	return d.Epoch
}

// TestOthersEraseTheTurnsPrompt: the prompt that stays in front of a long turn leaves when another process erased it, and stays when it erased something else.
func TestOthersEraseTheTurnsPrompt(t *testing.T) {
	for what, stays := range map[string]bool{"my code is": false, "step number 3 ": true} {
		t.Run(what, func(t *testing.T) {
			f, other, _ := remoteFixture(t)
			f.ingest(user("my code is " + secret))
			for n := range 60 {
				f.ingest(calling(fmt.Sprint("c", n)), resulting(fmt.Sprint("c", n), fmt.Sprintf("step number %d of a long turn", n)))
			}
			if got := shown(f.assemble(300)); !strings.Contains(got, secret) || strings.Contains(got, "step number 20 ") {
				t.Fatalf("shown: %q", got)
			}
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(what).ID}})
			for range 2 {
				if got := shown(f.assemble(300)); strings.Contains(got, secret) != stays || !strings.Contains(got, "step number 59 ") {
					t.Errorf("shown: %q", got)
				}
			}
		})
	}
}

// TestOthersEraseWhatAForkShows: a fork shows nothing of what another process erased in its parent, and goes on showing the rest.
func TestOthersEraseWhatAForkShows(t *testing.T) {
	for name, compact := range map[string]bool{"a message": false, "a summary": true} {
		t.Run(name, func(t *testing.T) {
			f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = teller{} })
			f.ingest(user("my secret is "+secret), assistant("noted"), user("b"), assistant("xyz c"))
			if compact {
				f.compact(30)
			}
			child := core.SessionID{Agent: "main", Session: "child"}
			inChild := func(r *core.AssembleRequest) { r.Session = child }
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
				t.Fatal(err)
			}
			f.say(child, false, user("task"))
			if got := shown(f.assemble(1000, inChild)); !strings.Contains(got, secret) || !strings.Contains(got, "task") {
				t.Fatalf("the fork shows %q", got)
			}
			other.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main", Session: "none"}, Reason: "nothing of it"})
			if got := shown(f.assemble(1000, inChild)); !strings.Contains(got, secret) || !strings.HasSuffix(got, "xyz c | task") {
				t.Errorf("when nothing of it is erased the fork shows %q", got)
			}
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("xyz c").ID}})
			if got := shown(f.assemble(1000, inChild)); !strings.Contains(got, secret) || !strings.HasSuffix(got, "task") || strings.Contains(got, "xyz c") {
				t.Errorf("when the newest message is erased the fork shows %q", got)
			}
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			for range 2 {
				if got := shown(f.assemble(1000, inChild)); strings.Contains(got, secret) || !strings.HasSuffix(got, "task") {
					t.Errorf("when what is left is erased the fork shows %q", got)
				}
			}
		})
	}
}

// TestOthersEraseWhatAForkOfAnotherAgentShows: what another process erased from the parent is not shown to a fork that belongs to another agent either, in a store
// that counts the changes of each agent apart.
func TestOthersEraseWhatAForkOfAnotherAgentShows(t *testing.T) {
	f, other, _ := remoteFixture(t)
	f.ingest(user("my code is "+secret), assistant("noted"))
	child := core.SessionID{Agent: "helper", Session: "child"}
	inChild := func(r *core.AssembleRequest) { r.Session = child }
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
		t.Fatal(err)
	}
	f.say(child, false, user("task"))
	f.assemble(1000, inChild)
	other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	for range 2 {
		if got, want := shown(f.assemble(1000, inChild)), "noted | task"; got != want {
			t.Errorf("the fork shows %q, want %q", got, want)
		}
		f.assemble(1000)
	}
	f.say(child, false, user("my code is "+secret))
	if got, want := shown(f.assemble(1000, inChild)), "noted | task"; got != want {
		t.Errorf("the fork shows %q, want %q", got, want)
	}
}

// TestOthersErasureIsHeldToOnceReadAnew: what another process erased stays erased once a session is read anew, in a store that keeps no views: in the session
// itself where nothing tells of it, and in a fork of another agent, of which the store counts apart, as long as the fork shows its parent's messages and after
// that.
func TestOthersErasureIsHeldToOnceReadAnew(t *testing.T) {
	for name, c := range map[string]struct {
		blind, fork bool
		later       time.Duration
	}{"a session": {blind: true}, "a fork": {fork: true}, "a fork that is on its own": {fork: true, later: 2 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			host := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			f, other, store := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Host = host })
			if c.blind {
				f.parts.Store = viewless{store}
				f.restart()
			}
			said := user("my code is " + secret)
			f.ingest(user("first"), said)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("first").ID}})
			id := f.id
			if c.fork {
				id = core.SessionID{Agent: "helper", Session: "child"}
				if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: id, Mode: core.SpawnFork, TTL: time.Hour}); err != nil {
					t.Fatal(err)
				}
			}
			f.say(id, false, user("task"))
			host.now = host.now.Add(c.later)
			f.assemble(1000, func(r *core.AssembleRequest) { r.Session = id })
			f.say(id, false, user("more"))
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			if err := f.engine.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.say(id, false, said)
			for e, err := range core.All(t.Context(), store, id.Scope(), false) {
				if err != nil || strings.Contains(e.Text(), secret) {
					t.Errorf("stored again: %q, %v", e.Text(), err)
				}
			}
		})
	}
}

// TestOthersEraseWhatIsQuoted: a recall block does not quote what another process erased in another session.
func TestOthersEraseWhatIsQuoted(t *testing.T) {
	p := &proposer{}
	f, other, _ := remoteFixture(t, func(c *engine.Config, parts *engine.Parts) { c.Recall.AcrossSessions, parts.Retriever = true, p })
	elsewhere := core.SessionID{Agent: "main", Session: "elsewhere"}
	f.say(elsewhere, false, user("my code is "+secret))
	f.everything(p, "main")
	f.ingest(user("hello"), assistant("hi"))
	if got := f.recalledFrom(f.id); !strings.Contains(got, secret) {
		t.Fatalf("recalled: %q", got)
	}
	other.forget(engine.ForgetRequest{Scope: elsewhere.Scope()})
	for _, prompt := range []string{"what was it?", "and then?"} {
		res := f.assemble(4000, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, prompt })
		if got := shown(res); strings.Contains(got, secret) || !strings.HasSuffix(got, "hi") && !strings.Contains(got, "hello | hi") {
			t.Errorf("shown: %q", got)
		}
	}
}

// TestTailThatFails: where a store cannot tell what others did, a strict engine says so; another one answers with what it has, and reports it.
func TestTailThatFails(t *testing.T) {
	fault := errors.New("no answer")
	for _, policy := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
		t.Run(string(policy), func(t *testing.T) {
			f, _, store := remoteFixture(t, func(c *engine.Config, _ *engine.Parts) { c.Failure = policy })
			f.ingest(user("a"), assistant("b"))
			f.assemble(1000)
			store.tail = fault
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, PromptMode: core.PromptNone})
			if policy == engine.FailStrict {
				if !errors.Is(err, fault) {
					t.Errorf("error %v, want that of the store", err)
				}
				return
			}
			if err != nil || shown(res) != "a | b" {
				t.Errorf("shown: %q, %v", shown(res), err)
			}
			if h := fmt.Sprint(f.engine.Info().Health); !strings.Contains(h, "store") || !strings.Contains(h, "no answer") {
				t.Errorf("health says %s", h)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := f.engine.Assemble(ctx, core.AssembleRequest{Session: f.id, Budget: 1000}); !errors.Is(err, context.Canceled) {
				t.Errorf("a call that was cancelled: %v", err)
			}
		})
	}
}

// TestOthersSayMoreOnceTheNewestSummaryIsErased: what another process says after it erased a summary that was the session's newest entry is shown once by whoever
// made the summary, in a store that keeps no views: its position is not given again.
func TestOthersSayMoreOnceTheNewestSummaryIsErased(t *testing.T) {
	talk := []message.Message{user("my code is " + secret), assistant("noted"), user("apple"), assistant("pear"), user("plum"), assistant("fig")}
	for name, c := range map[string]struct {
		compactions, said int
		transcript        bool
	}{
		"one message":                     {1, 1, false},
		"as many as there were summaries": {2, 2, false},
		"more":                            {1, 3, false},
		"less":                            {2, 1, false},
		"the host shows it":               {1, 1, true},
		"the host shows more":             {2, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, other, _ := remoteFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = teller{} })
			f.ingest(talk...)
			for range c.compactions {
				f.compact(30)
			}
			f.assemble(1000)
			other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
			host, want := slices.Clone(talk), ""
			for n := range c.said {
				m := user(fmt.Sprint("said ", n))
				other.ingest(m)
				host, want = append(host, m), want+" | "+m.Text()
			}
			for range 2 {
				for _, g := range []*fixture{f, other} {
					got := shown(g.assemble(1000, func(r *core.AssembleRequest) {
						if c.transcript {
							r.Transcript = &core.Transcript{Messages: host}
						}
					}))
					if !strings.HasSuffix(got, "fig"+want) || strings.Contains(got, secret) {
						t.Errorf("shown: %q, want it to end with %q", got, "fig"+want)
					}
				}
				f.ingest(user("further"))
				host, want = append(host, user("further")), want+" | further"
			}
			said := 0
			for e, err := range core.All(t.Context(), f.parts.Store, f.id.Scope(), false) {
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(e.Text(), "said ") {
					said++
				}
			}
			if said != c.said {
				t.Errorf("%d messages are stored, and %d were said", said, c.said)
			}
			f.restart()
			if got := shown(f.assemble(1000)); !strings.HasSuffix(got, "fig"+want) || strings.Contains(got, secret) {
				t.Errorf("shown by one that read it anew: %q", got)
			}
		})
	}
}
