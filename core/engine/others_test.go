package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// TestTurnThatBeginsBehindWhatIsNew: of a transcript in which all is new, the words at its end begin the turn; what stands in front of them in the same words was another
// turn's, and does not stand for this one.
func TestTurnThatBeginsBehindWhatIsNew(t *testing.T) {
	for name, before := range map[string][]message.Message{
		"a turn":                 {user("ok"), assistant("done")},
		"two turns":              {user("ok"), assistant("done"), user("ok"), assistant("done")},
		"an answer":              {assistant("done")},
		"known in part already":  {user("hello"), assistant("hi"), user("ok"), assistant("done")},
		"two words of somebody":  {user("ok"), assistant("done"), user("well")},
		"a timer's in its midst": nil,
	} {
		f := newFixture(t)
		if name == "known in part already" {
			f.assemble(1000, transcript("now", before[:2]...))
		}
		if before == nil {
			f.assemble(1000, transcript("now", user("ok"), assistant("done")))
			f.say(f.id, true, user("tick"))
			before = []message.Message{user("ok"), assistant("done")}
		}
		f.assemble(1000, transcript("", append(slices.Clip(before), user("ok"))...))
		stored := f.stored()
		res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: one(user("ok"), assistant("done"))})
		if err != nil || res.Status != core.Committed || f.stored() != stored+1 {
			t.Errorf("%s: %+v, error %v: %d entries are stored, and %d were", name, res, err, f.stored(), stored)
		}
		f.sound()
	}
}

// TestTurnWhosePromptIsAnother: what stands in front of the words that a transcript ends with is no part of the turn that they begin, also where that turn is accepted with
// another prompt, and has a call and its result again.
func TestTurnWhosePromptIsAnother(t *testing.T) {
	for _, c := range []struct{ stored, shown int }{{0, 1}, {0, 2}, {4, 2}, {5, 3}, {3, 2}} {
		f := newFixture(t)
		before := one(user("look"), calling("c1"), resulting("c1", "found"))
		ends := one(user("ok"), user("well"), user("so"))[:c.shown]
		if c.stored > 0 {
			f.ingest(append(before[:3:3], ends...)[:c.stored]...)
		}
		f.assemble(1000, transcript("", append(before, ends...)...))
		stored := f.stored()
		turn := one(user("now then"), calling("c1"), resulting("c1", "found"))
		if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: turn}); err != nil {
			t.Fatal(err)
		}
		if n := f.stored() - stored; n != len(turn) {
			t.Errorf("%d entries are stored for %d messages", n, len(turn))
		}
	}
}

// TestCommittedWithFillers: a turn that a transcript showed, and that is accepted with what the host put in for itself, is what the next transcript begins with: the host
// need not hand all of it over again.
func TestCommittedWithFillers(t *testing.T) {
	for n := range 4 {
		f := newFixture(t)
		turn := slices.Insert(one(user("ok"), assistant("looking"), assistant("done")), n, filler(message.User, "(continue)"))
		f.assemble(1000, transcript("", turn[:1]...))
		f.assemble(1000, inLoop, transcript("", turn[:2]...))
		if _, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: turn}); err != nil {
			t.Fatal(err)
		}
		rest := func(r *core.AssembleRequest) {
			r.Transcript = &core.Transcript{Skipped: len(turn), Digest: message.DigestOf(turn), Messages: one(user("next"))}
		}
		if got := shown(f.assemble(1000, rest)); got != "ok | looking | done | next" {
			t.Errorf("filler at %d: shown %q", n, got)
		}
	}
}

// refusing is a store in which positions of the engine's own sessions are always taken by others, of whom nothing is seen.
type refusing struct {
	*memory.Store
	session func(string) bool
	tries   int
	at      func(n int)
}

func (s *refusing) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if s.session != nil && s.session(entries[0].Session) {
		s.tries++
		s.at(s.tries)
		return core.AppendResult{}, core.ErrConflict
	}
	return s.Store.Append(ctx, entries)
}

// TestPositionThatIsNeverFree: where a position is always taken, and nobody is seen to take it, a call ends after thirteen tries with the conflict, or with its context.
func TestPositionThatIsNeverFree(t *testing.T) {
	for name, c := range map[string]struct {
		session func(string) bool
		call    func(ctx context.Context, f *fixture) error
	}{
		"a receipt": {core.Reserved, func(ctx context.Context, f *fixture) error {
			return second(f.engine.Forget(ctx, engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent, Session: "none"}}))
		}},
		"a message": {func(s string) bool { return !core.Reserved(s) }, func(ctx context.Context, f *fixture) error {
			return second(f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: user("mine")}))
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &refusing{Store: memory.New(), at: func(int) {}}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
			f.ingest(user("a"), assistant("b"))
			store.session = c.session
			if err := c.call(t.Context(), f); !errors.Is(err, core.ErrConflict) || store.tries != 13 {
				t.Errorf("%s: error %v after %d tries, want the conflict after 13", name, err, store.tries)
			}
			ctx, cancel := context.WithCancel(t.Context())
			store.tries, store.at = 0, func(n int) {
				if n == 5 {
					cancel()
				}
			}
			err := c.call(ctx, f)
			if !errors.Is(err, context.Canceled) || store.tries != 5 || !strings.Contains(err.Error(), "others keep") {
				t.Errorf("%s: error %v after %d tries, want that of its context after 5", name, err, store.tries)
			}
		})
	}
}

// TestOthersPurgeAParent: what another process purged of a parent is not shown by a fork any more, and what was sent is no prefix of what is sent then, in a store that keeps no
// views: also where something was said in the parent since.
func TestOthersPurgeAParent(t *testing.T) {
	for _, again := range []bool{false, true} {
		f, other, _ := remoteFixture(t)
		f.ingest(user("apple"), assistant("pear"), user("plum"))
		f.spawn(core.SessionID{Agent: "main", Session: "child"})
		f.ingest(user("task"))
		f.assemble(1000)
		epoch := f.epoch()
		other.forget(engine.ForgetRequest{Scope: other.id.Scope(), Purge: true})
		if again {
			other.ingest(user("anew"))
		}
		for range 2 {
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000, PromptMode: core.PromptNone})
			if err != nil || shown(res) != "task" || res.Epoch == epoch {
				t.Errorf("said again %t: shown %q, epoch %d after %d, error %v", again, shown(res), res.Epoch, epoch, err)
			}
		}
	}
}

// TestErasedBesideAFork: a fork whose parent has empty places goes on sending what it sent when something was erased that it does not show, in a store that keeps no views.
func TestErasedBesideAFork(t *testing.T) {
	for _, mode := range []core.SpawnMode{core.SpawnFork, core.SpawnIsolated} {
		f, other, _ := remoteFixture(t)
		f.ingest(user("my code is "+secret), assistant("noted"), user("apple"), assistant("pear"))
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
		f.assemble(1000)
		child := core.SessionID{Agent: "main", Session: "child"}
		if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: mode}); err != nil {
			t.Fatal(err)
		}
		f.id = child
		f.ingest(user("task"))
		before := f.assemble(1000)
		for n := range 2 {
			elsewhere := core.SessionID{Agent: "main", Session: fmt.Sprint("elsewhere ", n)}
			other.say(elsewhere, false, user("nothing to do with it"))
			other.forget(engine.ForgetRequest{Scope: elsewhere.Scope()})
			if now := f.assemble(1000); now.Epoch != before.Epoch || shown(now) != shown(before) {
				t.Errorf("%s: epoch %d after %d, shown %q after %q", mode, now.Epoch, before.Epoch, shown(now), shown(before))
			}
		}
	}
}

// TestNothingErasedIsLookedUp: where nothing was erased of a session, what it stored lately is not read again because something was erased elsewhere.
func TestNothingErasedIsLookedUp(t *testing.T) {
	counted := &countedStore{Store: memory.New()}
	store := &remote{viewless: viewless{counted}, changes: make(map[string]uint64)}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
	f.store = counted.Store
	other := f.second()
	f.assemble(1000)
	f.ingest(ownID(1), assistant("noted"))
	elsewhere := core.SessionID{Agent: "main", Session: "elsewhere"}
	other.say(elsewhere, false, user("nothing to do with it"))
	other.forget(engine.ForgetRequest{Scope: elsewhere.Scope()})
	counted.reset()
	if got := shown(f.assemble(1000)); !strings.Contains(got, secret) {
		t.Errorf("shown %q", got)
	}
	if n := counted.gets.Load(); n != 0 {
		t.Errorf("%d entries were looked up", n)
	}
}

// keeping is a store that refuses to change summaries.
type keeping struct {
	*remote
	refuses bool
	tries   int
}

func (s *keeping) Update(ctx context.Context, scope core.Scope, id string, c core.Change) error {
	if got, err := s.Get(ctx, scope, []string{id}); s.refuses && err == nil && got[0].Type == core.TypeSummary {
		s.tries++
		return fmt.Errorf("keeping: update: no right to write: %w", core.ErrUnavailable)
	}
	return s.remote.Update(ctx, scope, id, c)
}

// TestSummaryThatIsNotEmptied: a summary of what was erased, which the store refuses to empty, is shown by nobody; each call tries once more, and not in each of its parts, until it
// is empty.
func TestSummaryThatIsNotEmptied(t *testing.T) {
	store, making := newRemote(), func() {}
	keep := &keeping{remote: store}
	f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store, p.Compactor = keep, keeper{&making} })
	f.store = store.inner(t)
	other := f.second()
	f.ingest(user("so it is with "+secret), assistant("and we noted"), user("then came the apple"), assistant("then came the pear"), user("then came the plum"), assistant("then came the fig"))
	erased := duringCompaction("stored", &making, store, func() {
		other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	})
	f.compact(30)
	if !*erased {
		t.Fatal("nothing was compacted: nothing is tested")
	}
	keep.refuses = true
	f.restart()
	for n, c := range []struct {
		call  func()
		tries int
	}{
		{func() { f.assemble(1000) }, 1},
		{func() { f.assemble(1000) }, 1},
		{func() { f.ingest(user("more of it"), assistant("and more of that")) }, 1},
		{func() { f.compact(20) }, 2}, // before and behind what the compactor does
		{func() { f.assemble(1000) }, 1},
	} {
		before := keep.tries
		if c.call(); keep.tries != before+c.tries {
			t.Errorf("call %d tries %d times to empty it, want %d", n, keep.tries-before, c.tries)
		}
		if got := shown(f.assemble(1000)); strings.Contains(got, secret) {
			t.Errorf("call %d: shown %q", n, got)
		}
	}
	keep.refuses = false
	f.assemble(1000)
	if got := f.left(secret); got != nil {
		t.Errorf("left: %q", got)
	}
	keep.refuses = true
	if before := keep.tries; shown(f.assemble(1000)) == "" || keep.tries != before {
		t.Error("it is emptied again and again")
	}
}
