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
		f.assemble(1000, transcript("", append(before[:len(before):len(before)], user("ok"))...))
		stored := f.stored()
		res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: one(user("ok"), assistant("done"))})
		if err != nil || res.Status != core.Committed || f.stored() != stored+1 {
			t.Errorf("%s: %+v, error %v: %d entries are stored, and %d were", name, res, err, f.stored(), stored)
		}
		f.sound()
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
