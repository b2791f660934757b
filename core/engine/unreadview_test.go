package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
)

// unread is a store that cannot read the view of a session for a while.
type unread struct {
	*memory.Store
	session string
}

func (s *unread) LoadView(ctx context.Context, id core.SessionID) (core.View, error) {
	if id.Session == s.session {
		return core.View{}, fmt.Errorf("unread: load view %q: %w", id, core.ErrUnavailable)
	}
	return s.Store.LoadView(ctx, id)
}

// TestForgetWhereAViewCannotBeRead: an erasure that cannot read a view says so, as of any other fault of the store: else what the view holds of it stays, and nobody knows.
func TestForgetWhereAViewCannotBeRead(t *testing.T) {
	for _, agent := range []string{"main", "kid"} {
		for _, purge := range []bool{false, true} {
			store := &unread{Store: memory.New()}
			f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
				p.Store, p.Compactor, c.Failure = store, retold{}, engine.FailStrict
			})
			f.store = store.Store
			f.ingest(user(strings.Repeat("word ", 40)+secret), assistant(strings.Repeat("word ", 40)+"b"), user("c"), assistant("d"))
			f.assemble(1000)
			child := core.SessionID{Agent: agent, Session: "child"}
			if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
				t.Fatal(err)
			}
			f.say(child, false, user("e"), assistant("f"))
			if res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: child, Budget: 60, Force: true}); err != nil || !res.Compacted {
				t.Fatalf("%+v, %v", res, err)
			}
			id := f.entry(secret).ID
			f.restart()
			store.session = "child"
			req := engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{id}}
			if purge {
				req = engine.ForgetRequest{Scope: f.id.Scope(), Purge: true}
			}
			if rec, err := f.engine.Forget(t.Context(), req); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("fork of %s, purge %t: Forget = %+v, %v, want that of the view", agent, purge, rec, err)
			}
			store.session = ""
			f.forget(req)
			if got := f.traces(); got != nil {
				t.Errorf("fork of %s, purge %t: it was erased once more, and there is still: %q", agent, purge, got)
			}
			res, err := f.engine.Assemble(t.Context(), core.AssembleRequest{Session: child, Budget: 1000})
			if err != nil || strings.Contains(shown(res), secret) {
				t.Errorf("fork of %s, purge %t: it shows %q, %v", agent, purge, shown(res), err)
			}
		}
	}
}
