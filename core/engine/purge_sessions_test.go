package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// thorough is a store that erases sessions as a whole, and counts what it is asked to delete besides.
type thorough struct {
	*wholesale
	deletes int
}

func (s *thorough) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	s.deletes++
	return s.wholesale.Delete(ctx, scope, ids)
}

// TestPurgeOfSeveralSessions: a purge of an agent erases each of its sessions once where the store erases sessions as a whole, and deletes entries besides only where
// something was left.
func TestPurgeOfSeveralSessions(t *testing.T) {
	for spares, deletes := range map[string]int{"": 0, "spared": 1} {
		store := &thorough{wholesale: &wholesale{Store: memory.New(), spares: spares}}
		f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
		f.store = store.Store
		for i := range 5 {
			text := "said"
			if i == 2 {
				text = "spared"
			}
			f.say(core.SessionID{Agent: f.id.Agent, Session: fmt.Sprint("s", i)}, false, user(text), assistant("done"))
		}
		rec := f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: f.id.Agent}, Purge: true})
		if rec.Entries != 10 || rec.Sessions != 5 || len(store.erased) != 5 || store.deletes != deletes {
			t.Errorf("spares %q: receipt %+v, erased %v, deleted %d times, want five sessions and %d", spares, rec, store.erased, store.deletes, deletes)
		}
		for entry, err := range core.All(t.Context(), store.Store, core.Scope{Agent: f.id.Agent}, false) {
			if err != nil {
				t.Fatal(err)
			}
			if !core.Reserved(entry.Session) {
				t.Errorf("spares %q: left over: %q of %q", spares, entry.Text(), entry.Session)
			}
		}
	}
}

// TestForgetOfNothingCostsNothing: an erasure of what is not there leaves what is in memory as it is: the next call asks the store no more than it did before. One
// that failed behind its beginning has all sessions read anew.
func TestForgetOfNothingCostsNothing(t *testing.T) {
	store := &struckStore{Store: memory.New()}
	f := newFixture(t, func(c *engine.Config, p *engine.Parts) { p.Store, c.Failure = store, engine.FailStrict })
	f.store = store.Store
	f.ingest(user("one"), assistant("two"))
	f.assemble(1000)
	count := func() int {
		store.calls = 0
		f.assemble(1000)
		return store.calls
	}
	usual := count()
	if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{"nobody's"}}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Forget = %v, want ErrNotFound", err)
	}
	if got := count(); got != usual {
		t.Errorf("%d calls behind an erasure of nothing, want %d", got, usual)
	}
	for _, req := range []engine.ForgetRequest{{Scope: f.id.Scope(), Entries: []string{f.entry("one").ID}}, {Scope: core.Scope{Agent: f.id.Agent, Session: "empty"}, Purge: true}} {
		store.calls, store.at = 0, 3
		if req.Purge {
			store.at = 2
		}
		_, err := f.engine.Forget(t.Context(), req)
		if store.at = 0; !errors.Is(err, errStruck) {
			t.Fatalf("Forget = %v", err)
		}
		if got := count(); got <= usual {
			t.Errorf("%d calls behind an erasure that failed, want more than %d", got, usual)
		}
	}
}
