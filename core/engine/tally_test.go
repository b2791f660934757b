package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// ticking is a host whose clock never stands still.
type ticking struct {
	core.NoHost
	mu  sync.Mutex
	now time.Time
}

func (h *ticking) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

// oneText recalls one entry, or fails.
type oneText struct {
	entry core.Entry
	fail  string
}

func (f *oneText) Retrieve(context.Context, core.Query) ([]core.Candidate, error) {
	if f.fail != "" {
		return nil, fmt.Errorf("%s", f.fail)
	}
	return []core.Candidate{{Entry: f.entry, Text: f.entry.Text(), Score: 1, Source: "finder"}}, nil
}

// TestEntriesNameTheArm: of what is stored at once the first entry names the session's arm, and so does every message of a user, so that each turn does; others
// need not say it again. Without an arm none does.
func TestEntriesNameTheArm(t *testing.T) {
	for _, arm := range []string{"new", ""} {
		f := newFixture(t)
		if _, err := f.engine.Arm(t.Context(), f.id, func(string) string { return arm }); err != nil {
			t.Fatal(err)
		}
		f.ingest(assistant("hello"), user("one"), assistant("two"), user("three"), assistant("four"))
		f.ingest(assistant("five"), assistant("six"))
		var got []string
		for _, e := range entriesOf(f) {
			if e.Meta["arm"] != "" {
				got = append(got, e.Text()+" "+e.Meta["arm"])
			}
		}
		want := []string{"hello new", "one new", "three new", "five new"}
		if arm == "" {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("entries that name the arm %q (-want +got):\n%s", arm, diff)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	store, find := memory.New(), &oneText{}
	cfg := engine.DefaultConfig()
	cfg.Recall.Gate, cfg.Recall.AcrossSessions = false, true
	e, err := engine.New(engine.Parts{Store: store, Compactor: steady{}, Retriever: find, Counter: wordCounter, Host: &ticking{now: time.Unix(5000, 0)}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	armed, plain := core.SessionID{Agent: "a", Session: "armed"}, core.SessionID{Agent: "a", Session: "plain"}
	if _, err := e.Arm(t.Context(), armed, func(string) string { return "new" }); err != nil {
		t.Fatal(err)
	}
	turn := func(id core.SessionID, ask, answer string) {
		t.Helper()
		if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.User, ask)}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: id, Prompt: ask, Budget: 2000}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Ingest(t.Context(), core.IngestRequest{Session: id, Message: message.New(message.Assistant, answer)}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(id core.SessionID) core.Tally {
		t.Helper()
		v, err := store.LoadView(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v.Tally
	}
	turn(plain, "hello there", "hi")
	if got := read(plain); got != (core.Tally{}) {
		t.Errorf("a session without an arm has %+v", got)
	}
	turn(armed, "hello there", "hi")
	first := read(armed)
	if first.Calls != 1 || first.Tokens == 0 || first.Cached != 0 || first.Took <= 0 || first.Recalled != 0 || first.Errors+first.Degraded != 0 {
		t.Errorf("after one call: %+v", first)
	}
	turn(armed, "and now?", "still here")
	if got := read(armed); got.Calls != 2 || got.Cached == 0 || got.Cached >= got.Tokens {
		t.Errorf("after two calls: %+v; the second begins as the first did", got)
	}
	for _, c := range []struct {
		text, ask, answer string
		used              bool
	}{
		{"the order ORD-7781 went to the old harbour", "what about it?", "it is ord-7781, I think", true},
		{"the order ORD-7782 went to the old harbour", "what about ORD-7782?", "ORD-7782 is on its way", false},
		{"the order of things is hard to tell", "where did the parcel go?", "As I said, the order of things is odd", true},
		{"the order of things is hard to tell now", "where is it?", "I do not know of the order", false},
	} {
		before := read(armed)
		elsewhere := core.SessionID{Agent: "a", Session: "elsewhere"}
		res, err := e.Ingest(t.Context(), core.IngestRequest{Session: elsewhere, Message: message.New(message.User, c.text)})
		if err != nil {
			t.Fatal(err)
		}
		said, err := store.Get(t.Context(), elsewhere.Scope(), res.IDs)
		if err != nil {
			t.Fatal(err)
		}
		find.entry = said[0]
		turn(armed, c.ask, c.answer)
		got := read(armed)
		if got.Recalled != before.Recalled+1 || (got.Used == before.Used+1) != c.used {
			t.Errorf("%q: recalled %d, used %d, before %d and %d; want used %v", c.answer, got.Recalled, got.Used, before.Recalled, before.Used, c.used)
		}
	}
	before := read(armed)
	find.fail = "down"
	turn(armed, "what is next?", "nothing")
	if got := read(armed); got.Degraded != before.Degraded+1 || got.Calls != before.Calls+1 {
		t.Errorf("after a retriever failed: %+v, before %+v", got, before)
	}
	if _, err := e.Assemble(t.Context(), core.AssembleRequest{Session: armed, Budget: 1}); err == nil {
		t.Fatal("a prompt in one token")
	}
	find.fail = ""
	turn(armed, "and then?", "nothing")
	if got := read(armed); got.Errors != 1 {
		t.Errorf("after a call that was not answered: %+v", got)
	}
}

// TestTallyOfAFailedCall: what legacy answered is counted as degraded, and what nobody answered as an error.
func TestTallyOfAFailedCall(t *testing.T) {
	t.Parallel()
	for _, policy := range []engine.FailurePolicy{engine.FailDegrade, engine.FailStrict} {
		broken := &failing{Store: memory.New()}
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) { c.Failure, p.Store = policy, broken })
		if _, err := f.engine.Arm(t.Context(), f.id, func(string) string { return "new" }); err != nil {
			t.Fatal(err)
		}
		req := core.AssembleRequest{Session: f.id, Budget: 100, Transcript: &core.Transcript{Messages: []message.Message{user("hi")}}, Prompt: "x"}
		broken.err = errors.New("disk on fire")
		_, _ = f.engine.Assemble(t.Context(), req)
		broken.err = nil
		if _, err := f.engine.Bootstrap(t.Context(), core.BootstrapRequest{Session: f.id}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.engine.Assemble(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		v, err := broken.LoadView(t.Context(), f.id)
		if err != nil {
			t.Fatal(err)
		}
		if degraded := policy == engine.FailDegrade; (v.Tally.Degraded == 1) != degraded || (v.Tally.Errors == 1) == degraded {
			t.Errorf("%s: %+v after a call that failed and one that did not", policy, v.Tally)
		}
	}
}
