package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// viewsInJSON is a store that keeps its views as JSON, as a file or a server does.
type viewsInJSON struct {
	*memory.Store
	views map[core.SessionID][]byte
}

func (s viewsInJSON) LoadView(_ context.Context, id core.SessionID) (v core.View, err error) {
	text, ok := s.views[id]
	if !ok {
		return v, core.ErrNotFound
	}
	return v, json.Unmarshal(text, &v)
}

func (s viewsInJSON) SwapView(ctx context.Context, v core.View) error {
	old, err := s.LoadView(ctx, v.Session)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return err
	}
	if old.Version != v.Version-1 {
		return core.ErrConflict
	}
	s.views[v.Session], err = json.Marshal(v)
	return err
}

func newFixtureInJSON(t *testing.T) (*fixture, viewsInJSON) {
	t.Helper()
	store := viewsInJSON{Store: memory.New(), views: map[core.SessionID][]byte{}}
	return newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store }), store
}

func textsOf(messages []message.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Text())
	}
	return out
}

// TestNamesThatAreNoText: a session is what its name says to the last byte, also after a restart.
func TestNamesThatAreNoText(t *testing.T) {
	f, _ := newFixtureInJSON(t)
	names := []core.SessionID{
		{Agent: "caf\xe9", Session: "s"}, {Agent: "caf\xff", Session: "s"}, {Agent: "caf\ufffd", Session: "s"}, {Agent: "caf\x00", Session: "s"},
		{Agent: "a", Session: "caf\xe9"}, {Agent: "a", Session: "caf\ufffd"},
	}
	for round := range 3 {
		for i, id := range names {
			f.id = id
			f.ingest(user(fmt.Sprint("round ", round, " of session ", i)))
		}
		f.restart()
		for i, id := range names {
			f.id = id
			got := textsOf(f.assemble(1000).Messages)
			want := fmt.Sprint("round ", round, " of session ", i)
			if len(got) == 0 || got[len(got)-1] != want || slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, fmt.Sprint(i)) }) {
				t.Errorf("session %q shows %q, want up to %q", id, got, want)
			}
		}
	}
}

// TestRecordsOfNamesThatAreNoText: receipts and outcomes name the session that they are of.
func TestRecordsOfNamesThatAreNoText(t *testing.T) {
	f, _ := newFixtureInJSON(t)
	f.id = core.SessionID{Agent: "caf\xe9", Session: "s\xff"}
	f.ingest(user("one"))
	if err := f.engine.Score(t.Context(), engine.Outcome{Session: f.id, Name: "good", Value: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.engine.Forget(t.Context(), engine.ForgetRequest{Scope: f.id.Scope(), Reason: "caf\xe9"}); err != nil {
		t.Fatal(err)
	}
	outcomes, err := f.engine.Outcomes(t.Context(), f.id.Agent)
	if err != nil || len(outcomes) != 1 || outcomes[0].Session != f.id {
		t.Errorf("outcomes %+v, error %v, want one of %q", outcomes, err, f.id)
	}
	receipts, err := f.engine.Receipts(t.Context(), f.id.Agent)
	if err != nil || len(receipts) != 1 || receipts[0].Request.Scope != f.id.Scope() || receipts[0].Request.Reason != "caf\xe9" {
		t.Errorf("receipts %+v, error %v, want one of %q", receipts, err, f.id)
	}
}

// TestClippedBytesStay: what is clipped, and the keys of turns, are the same bytes after a restart.
func TestClippedBytesStay(t *testing.T) {
	f, _ := newFixtureInJSON(t)
	for _, key := range []string{"k\xff", "k\xfe", "k\ufffd", "k\x00"} {
		commit := func(want string) {
			res, err := f.engine.CommitTurn(t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: key, Messages: []message.Message{user("turn " + key)}})
			if err != nil || res.Status != want {
				t.Errorf("turn %q: %q, error %v, want %q", key, res.Status, err, want)
			}
		}
		commit(core.Committed)
		f.restart()
		commit(core.Duplicate)
	}
	f.ingest(user("go"), assistant(strings.Repeat("caf\xe9 \xff\n", 3000)), user("on"))
	was := textsOf(f.assemble(1000).Messages)
	f.restart()
	if now := textsOf(f.assemble(1000).Messages); !slices.Equal(now, was) || !strings.Contains(strings.Join(was, ""), "caf\xe9") {
		t.Errorf("shown before the restart %.200q, now %.200q", was, now)
	}
}

// TestViewOfAnotherSession: a view that is another session's, of a store that mixed them up, is not used; the session is read from its entries.
func TestViewOfAnotherSession(t *testing.T) {
	f, store := newFixtureInJSON(t)
	other, mine := core.SessionID{Agent: "other", Session: "s"}, f.id
	f.id = other
	f.ingest(user("a secret"), assistant("of another agent"))
	f.id = mine
	f.ingest(user("mine"))
	store.views[mine] = store.views[other]
	f.restart()
	for range 2 {
		if got := textsOf(f.assemble(1000).Messages); !slices.Equal(got, []string{"mine"}) {
			t.Errorf("shown %q, want what was said in the session", got)
		}
		f.restart()
	}
	f.ingest(assistant("more"))
	f.restart()
	if got := textsOf(f.assemble(1000).Messages); !slices.Equal(got, []string{"mine", "more"}) {
		t.Errorf("shown later %q, want what was said in the session", got)
	}
}
