package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// wholesale is a store that erases sessions as a whole, but for what it was not told to be part of one.
type wholesale struct {
	*memory.Store
	erased []core.SessionID
	spares string
	err    error
}

func (s *wholesale) EraseSession(ctx context.Context, id core.SessionID) error {
	if s.err != nil {
		return s.err
	}
	s.erased = append(s.erased, id)
	var ids []string
	for e, err := range core.All(ctx, s.Store, id.Scope(), false) {
		if err != nil {
			return err
		}
		if s.spares == "" || !strings.Contains(e.Text(), s.spares) {
			ids = append(ids, e.ID)
		}
	}
	_, err := s.Delete(ctx, id.Scope(), ids)
	return err
}

// TestPurgeAtOnce: a purge erases everything of a session and counts it, whether the store takes an erasure of a whole session or one of each entry, and what it left
// over in passing; other sessions stay.
func TestPurgeAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		whole  bool
		spares string
	}{"one by one": {}, "at once": {whole: true}, "at once and some left": {whole: true, spares: "noted"}, "at once and one left": {whole: true, spares: "plum"}} {
		t.Run(name, func(t *testing.T) {
			store := &wholesale{Store: memory.New(), spares: c.spares}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) {
				p.Store, p.Compactor = store, teller{}
				if !c.whole {
					p.Store = store.Store
				}
			})
			f.store = store.Store
			elsewhere := core.SessionID{Agent: "main", Session: "elsewhere"}
			f.say(elsewhere, false, user("stays"))
			f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"), user("plum"), assistant("fig"))
			f.compact(30)
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("fig").ID}})
			rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
			if rec.Entries != 5 || rec.Sessions != 1 || rec.Summaries != 1 {
				t.Errorf("receipt %+v", rec)
			}
			if f.stored() != 0 || f.traces() != nil || len(store.erased) == 1 != c.whole {
				t.Errorf("%d entries are left, in %q; erased at once: %v", f.stored(), f.traces(), store.erased)
			}
			if got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Session = elsewhere })); got != "stays" {
				t.Errorf("the other session shows %q", got)
			}
			if rec := f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, Purge: true}); rec.Entries != 1 || rec.Sessions != 1 {
				t.Errorf("of the agent: %+v", rec)
			}
		})
	}
}

// TestPurgeThatFails: a store that cannot erase a session says so, and the same call again does the rest.
func TestPurgeThatFails(t *testing.T) {
	store := &wholesale{Store: memory.New(), err: errors.New("no answer")}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	f.store = store.Store
	f.ingest(user("my code is "+secret), assistant("noted"))
	req := engine.ForgetRequest{Scope: f.id.Scope(), Purge: true}
	if _, err := f.engine.Forget(t.Context(), req); !errors.Is(err, store.err) {
		t.Errorf("error %v, want that of the store", err)
	}
	store.err = nil
	if f.forget(req); f.stored() != 0 || f.traces() != nil {
		t.Errorf("%d entries are left, in %q", f.stored(), f.traces())
	}
	got, err := f.engine.Receipts(t.Context(), f.id.Agent)
	if err != nil || len(got) != 1 {
		t.Errorf("receipts %+v, %v, want one", got, err)
	}
}

// viewing is a store that counts how often each view is read, and may fail to delete one.
type viewing struct {
	*memory.Store
	loads map[core.SessionID]int
	err   error
}

func (s *viewing) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	s.loads[id]++
	return s.Store.LoadView(ctx, id)
}

func (s *viewing) DeleteView(ctx context.Context, id core.SessionID) error {
	if s.err != nil && id.Session == "b" {
		return s.err
	}
	return s.Store.DeleteView(ctx, id)
}

// TestPurgeTakesEveryView: a purge of an agent removes the views of all its sessions. Where one cannot be removed it says so, and the same call again removes
// those that are left.
func TestPurgeTakesEveryView(t *testing.T) {
	for _, fault := range []error{nil, errors.New("no answer")} {
		store := &viewing{Store: memory.New(), loads: make(map[core.SessionID]int)}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		for _, session := range []string{"a", "b", "c"} {
			f.say(core.SessionID{Agent: "main", Session: session}, false, user("hello"))
		}
		req := engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, Purge: true}
		if store.err = fault; fault != nil {
			if _, err := f.engine.Forget(t.Context(), req); !errors.Is(err, fault) {
				t.Errorf("error %v, want that of the store", err)
			}
			store.err = nil
		}
		f.forget(req)
		if left, err := store.ListViews(t.Context(), core.ViewQuery{Agent: "main", Limit: 10}); err != nil || len(left) > 0 {
			t.Errorf("after the fault %v the views of %v are left: %v", fault, left, err)
		}
	}
}

// TestForgetReadsEachViewAsOften: of more views than are listed at once an erasure reads none more often than the others.
func TestForgetReadsEachViewAsOften(t *testing.T) {
	store := &viewing{Store: memory.New(), loads: make(map[core.SessionID]int)}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	f.store, f.id.Session = store.Store, "zzz"
	f.ingest(user("my code is " + secret))
	for i := range 2*core.MaxPage + 1 {
		if err := store.SwapView(t.Context(), core.View{Session: core.SessionID{Agent: "main", Session: fmt.Sprintf("s%05d", i)}, Version: 1}); err != nil {
			t.Fatal(err)
		}
	}
	clear(store.loads)
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	first := store.loads[core.SessionID{Agent: "main", Session: "s00000"}]
	for id, n := range store.loads {
		if n != first && id != f.id {
			t.Errorf("the view of %s is read %d times, the first one %d times", id, n, first)
		}
	}
	if len(store.loads) != 2*core.MaxPage+2 {
		t.Errorf("%d views are read", len(store.loads))
	}
}

// interrupted is a store that tells when somebody has read the first of several pages of a session.
type interrupted struct {
	*memory.Store
	behind func()
}

func (s *interrupted) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	page, err := s.Store.Scan(ctx, q)
	if behind := s.behind; behind != nil && page.Next != "" {
		s.behind = nil
		behind()
	}
	return page, err
}

// TestForgetTakesWhatComesMeanwhile: an erasure of a whole session takes what comes in before it has read the session to its end, too.
func TestForgetTakesWhatComesMeanwhile(t *testing.T) {
	store := &interrupted{Store: memory.New()}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	f.store = store.Store
	long := make([]message.Message, core.MaxPage+1)
	for i := range long {
		long[i] = user(fmt.Sprint("message ", i))
	}
	f.ingest(long...)
	store.behind = func() { f.ingest(user("my code is " + secret)) }
	if rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope()}); rec.Entries != len(long)+1 || store.behind != nil {
		t.Errorf("%d entries are erased, want %d", rec.Entries, len(long)+1)
	}
	if got := f.traces(); got != nil {
		t.Errorf("still there: %q", got)
	}
}

// TestHostAfterAPurge: what a host still has after a purge is stored and shown again, as it says of purging.
func TestHostAfterAPurge(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("one"), assistant("two"), user("three"), assistant("four")}
	out := f.assemble(1000, transcript("now", host...)).Messages
	f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Purge: true})
	if got := shown(f.assemble(1000, transcript("now", out...), inLoop)); got != "one | two | three | four" || f.stored() != 4 {
		t.Errorf("shown: %q, %d entries are stored", got, f.stored())
	}
}

// delivering is a store in front of another one, and of traces on its medium.
type delivering struct {
	*memory.Store
	left         int
	drain, scrub error
}

func (s *delivering) Drain(context.Context) (int, error) { return s.left, s.drain }

func (s *delivering) Scrub(context.Context) error { return s.scrub }

// scrubbed is an index with traces of its own.
type scrubbed struct {
	told
	err error
}

func (s *scrubbed) Scrub(context.Context) error { return s.err }

// TestForgetSaysWhatIsLeft: a receipt names every part that an erasure could not reach, and how much waits for delivery; what a part cannot do at all is not left.
func TestForgetSaysWhatIsLeft(t *testing.T) {
	fault := errors.New("no answer")
	unable := fmt.Errorf("it cannot: %w", errors.ErrUnsupported)
	for name, c := range map[string]struct {
		store       delivering
		index       error
		undelivered int
		left        []string
	}{
		"nothing":             {},
		"delivered":           {store: delivering{drain: fault}},
		"waits":               {store: delivering{left: 3}, undelivered: 3},
		"waits and says why":  {store: delivering{left: 1, drain: fault}, undelivered: 1, left: []string{"remote store: no answer"}},
		"the store":           {store: delivering{scrub: fault}, left: []string{"store: no answer"}},
		"an index":            {index: fault, left: []string{"*engine_test.scrubbed: no answer"}},
		"they cannot":         {store: delivering{scrub: unable}, index: unable},
		"nothing was reached": {store: delivering{left: 2, drain: fault, scrub: fault}, index: fault, undelivered: 2, left: []string{"remote store: no answer", "store: no answer", "*engine_test.scrubbed: no answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.store.Store = memory.New()
			x := &scrubbed{told: told{there: map[string]string{}}, err: c.index}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Retriever = &c.store, x })
			f.ingest(user("my code is " + secret))
			rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope()})
			if diff := cmp.Diff(c.left, rec.Left); diff != "" || rec.Undelivered != c.undelivered {
				t.Errorf("%d wait, left (-want +got):\n%s", rec.Undelivered, diff)
			}
			kept, err := f.engine.Receipts(t.Context(), f.id.Agent)
			if err != nil || len(kept) != 1 || kept[0].Undelivered != c.undelivered || !slices.Equal(kept[0].Left, c.left) {
				t.Errorf("the receipt that is kept: %+v, %v", kept, err)
			}
		})
	}
}

// TestForgetTellsIndexes: an index knows nothing any more of what was erased, summaries included, and all the rest.
func TestForgetTellsIndexes(t *testing.T) {
	for name, req := range map[string]engine.ForgetRequest{"an entry": {}, "the session": {Scope: core.Scope{Agent: "main", Session: "s1"}}, "purged": {Scope: core.Scope{Agent: "main"}, Purge: true}} {
		t.Run(name, func(t *testing.T) {
			x := &told{there: map[string]string{}}
			store := &emptying{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Retriever, p.Compactor = store, x, teller{} })
			f.store = store.Store
			f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
			store.before = func() { f.compact(30) } // its summary comes while the erasure is under way
			if name == "an entry" {
				req.Scope, req.Entries = f.id.Scope(), []string{f.entry(secret).ID}
			}
			f.forget(req)
			want := map[string]string{}
			for _, e := range entriesOf(f) {
				if e.Type != core.TypeErased {
					want[e.ID] = e.Text()
				}
			}
			if diff := cmp.Diff(want, x.there); diff != "" {
				t.Errorf("it knows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForgetBounds: an erasure by time takes what was said from the first time on and before the second, each entry is counted once, and a second one finds nothing.
func TestForgetBounds(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		req  engine.ForgetRequest
		want string
	}{
		"from":    {engine.ForgetRequest{From: day(3)}, "day1 | day2"},
		"to":      {engine.ForgetRequest{To: day(3)}, "day3 | day4"},
		"between": {engine.ForgetRequest{From: day(2), To: day(4)}, "day1 | day4"},
		"all":     {engine.ForgetRequest{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for n := 1; n <= 4; n++ {
				m := user(fmt.Sprint("day", n))
				m.Time = day(n)
				f.ingest(m)
			}
			left := len(strings.Fields(strings.ReplaceAll(c.want, "|", "")))
			c.req.Scope = core.Scope{Agent: "main"}
			if rec := f.forget(c.req); rec.Entries != 4-left || rec.Sessions != 1 {
				t.Errorf("receipt %+v", rec)
			}
			if got := shown(f.assemble(1000)); got != c.want {
				t.Errorf("shown: %q, want %q", got, c.want)
			}
			if rec := f.forget(c.req); rec.Entries != 0 || rec.Sessions != 0 || rec.Views != 0 {
				t.Errorf("a second one: %+v", rec)
			}
			if got, err := f.engine.Receipts(t.Context(), "main"); err != nil || len(got) != 2 {
				t.Errorf("receipts: %+v, %v", got, err)
			}
		})
	}
	f := newFixture(t)
	f.ingest(user("a"), user("b"))
	id := f.entry("a").ID
	if rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{id, id}}); rec.Entries != 1 {
		t.Errorf("named twice: %+v", rec)
	}
}

// TestForgetReachesForksInUse: an erasure reaches a fork of any agent that is in use, its summaries and what it recalls; a purge leaves it with what it said itself.
func TestForgetReachesForksInUse(t *testing.T) {
	for _, agent := range []string{"main", "helper"} {
		for _, purge := range []bool{false, true} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, purge %t, restarted %t", agent, purge, restarted), func(t *testing.T) {
					f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Compactor = teller{} })
					f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"))
					child := core.SessionID{Agent: agent, Session: "child"}
					if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
						t.Fatal(err)
					}
					f.say(child, false, user("task"), assistant("done"), user("further"), assistant("done too"))
					parent := f.id
					f.id = child
					inChild := func(r *core.AssembleRequest) { r.Session = child }
					f.compact(50)
					if got := shown(f.assemble(1000, inChild)); !strings.Contains(got, secret) {
						t.Fatalf("the fork shows %q", got)
					}
					if restarted {
						f.restart()
					}
					req := engine.ForgetRequest{Scope: parent.Scope(), Purge: purge}
					f.forget(req)
					if got := f.traces(); got != nil {
						t.Errorf("of the fork's agent: %q", got)
					}
					for range 2 {
						got := shown(f.assemble(1000, inChild))
						if strings.Contains(got, secret) || !strings.HasSuffix(got, "further | done too") || purge && got != "task | done | further | done too" {
							t.Errorf("the fork shows %q", got)
						}
						f.restart()
					}
					f.id = parent
					if got := f.traces(); got != nil {
						t.Errorf("of the parent's agent: %q", got)
					}
				})
			}
		}
	}
}

// TestForgetWhatWasTakenBack: what a host took back before it was erased does not come back with a later transcript.
func TestForgetWhatWasTakenBack(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		f := newFixture(t)
		host := []message.Message{user("one"), assistant("two"), user("my code is " + secret), assistant("noted")}
		f.assemble(1000, transcript("", host...))
		f.assemble(1000, transcript("", host[0], host[1], user("other"), assistant("yes")))
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
		if restarted {
			f.restart()
		}
		if got := shown(f.assemble(1000, transcript("", host...))); strings.Contains(got, secret) || f.traces() != nil {
			t.Errorf("shown: %q, traces in %q", got, f.traces())
		}
	}
}

// TestForgetTheTurnsPrompt: the prompt that stays in front of a long turn leaves when it is erased, and stays when something else is.
func TestForgetTheTurnsPrompt(t *testing.T) {
	for what, stays := range map[string]bool{"my code is": false, "step number 3 ": true, "step number 59 ": true} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			f.ingest(user("my code is " + secret))
			for n := range 60 {
				f.ingest(calling(fmt.Sprint("c", n)), resulting(fmt.Sprint("c", n), fmt.Sprintf("step number %d of a long turn", n)))
			}
			if got := shown(f.assemble(300)); !strings.Contains(got, secret) || strings.Contains(got, "step number 20 ") {
				t.Fatalf("shown: %q", got)
			}
			f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(what).ID}})
			for range 2 {
				if got := shown(f.assemble(300)); strings.Contains(got, secret) != stays || !strings.Contains(got, "step number 58 ") || what != "my code is" && strings.Contains(got, what) {
					t.Errorf("shown: %q", got)
				}
				f.restart()
			}
		})
	}
}

// TestPurgeAnAgent: a purge of an agent removes every entry and every view of all its sessions, and nothing of another agent's.
func TestPurgeAnAgent(t *testing.T) {
	f := newFixture(t)
	other := core.SessionID{Agent: "other", Session: "s1"}
	ids := []core.SessionID{{Agent: "main", Session: "s1"}, {Agent: "main", Session: "s2"}, {Agent: "main", Session: "s3"}, other}
	for _, id := range ids {
		f.say(id, false, user("one"), assistant("two"))
	}
	rec := f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, Purge: true})
	if rec.Entries != 6 || rec.Sessions != 3 {
		t.Errorf("the receipt says %+v, want 6 entries of 3 sessions", rec)
	}
	views, err := f.store.ListViews(t.Context(), core.ViewQuery{Limit: core.MaxPage})
	if err != nil || !slices.Equal(views, []core.SessionID{other}) {
		t.Errorf("views %v, %v, want that of the other agent alone", views, err)
	}
	for _, id := range ids {
		want := 0
		if id == other {
			want = 2
		}
		n := 0
		for e, err := range core.All(t.Context(), f.store, id.Scope(), false) {
			if err != nil {
				t.Fatal(err)
			}
			if !core.Reserved(e.Session) {
				n++
			}
		}
		res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: id, Budget: 1000})
		if err != nil || n != want || len(res.Messages) != want {
			t.Errorf("%s: %d entries, %d messages, %v, want %d", id, n, len(res.Messages), err, want)
		}
	}
}
