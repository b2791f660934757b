package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

const secret = "xyzzy-4711"

// traces returns where the store or a view still holds the secret.
func (f *fixture) traces() []string {
	f.t.Helper()
	var out []string
	look := func(where string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.Contains(string(b), secret) || strings.Contains(string(b), message.Fingerprint(user("my code is "+secret))) {
			out = append(out, where)
		}
	}
	for entry, err := range core.All(f.t.Context(), f.store, core.Scope{Agent: f.id.Agent}, false) {
		if err != nil {
			f.t.Fatal(err)
		}
		look("entry "+entry.ID, entry)
		look("bytes of "+entry.ID, string(entry.Message.Raw))
	}
	ids, err := f.store.ListViews(f.t.Context(), core.ViewQuery{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, id := range ids {
		v, err := f.store.LoadView(f.t.Context(), id)
		if err != nil {
			f.t.Fatal(err)
		}
		look("view of "+id.Session, v)
	}
	return out
}

func (f *fixture) forget(req engine.ForgetRequest) engine.Receipt {
	f.t.Helper()
	rec, err := f.engine.Forget(f.t.Context(), req)
	if err != nil {
		f.t.Fatal(err)
	}
	return rec
}

func TestForgetEntryStaysForgotten(t *testing.T) {
	f := newFixture(t)
	host := []message.Message{user("hello"), assistant("hi"), user("my code is " + secret), assistant("noted")}
	f.assemble(1000, transcript("next", host...))
	rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}, Reason: "asked for"})
	if rec.Entries != 1 || rec.Sessions != 1 {
		t.Errorf("receipt = %+v", rec)
	}
	if got := f.traces(); got != nil {
		t.Errorf("still there: %q", got)
	}
	// The host still has it, hands it over whole, restarts, and goes on.
	for range 2 {
		res := f.assemble(1000, transcript("next", host...))
		if s := shown(res); strings.Contains(s, secret) || !strings.Contains(s, "noted") {
			t.Errorf("shown: %s", s)
		}
		host = append(host, user("go on"), assistant("so I do"))
		f.restart()
	}
	if got := f.traces(); got != nil {
		t.Errorf("back again: %q", got)
	}
	if n := f.stored(); n != 6 {
		t.Errorf("%d entries are stored, want 6: an empty place for what was erased", n)
	}
	receipts, err := f.engine.Receipts(t.Context(), "main")
	if err != nil || len(receipts) != 1 || receipts[0].ID != rec.ID || receipts[0].Request.Reason != "asked for" {
		t.Errorf("receipts = %+v, %v", receipts, err)
	}
}

// entry returns the stored entry that holds a text.
func (f *fixture) entry(text string) core.Entry {
	f.t.Helper()
	for entry, err := range core.All(f.t.Context(), f.store, f.id.Scope(), false) {
		if err != nil {
			f.t.Fatal(err)
		}
		if strings.Contains(entry.Text(), text) {
			return entry
		}
	}
	f.t.Fatalf("no entry holds %q", text)
	return core.Entry{}
}

func TestForgetReachesSummariesAndForks(t *testing.T) {
	f := newFixture(t)
	f.parts.Compactor = teller{}
	f.restart()
	f.ingest(user("my code is "+secret), assistant("noted"), user("b"), assistant("c"), user("d"), assistant("e"))
	f.assemble(100)
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	child := core.SessionID{Agent: "main", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
		t.Fatal(err)
	}
	if got := f.traces(); len(got) < 4 {
		t.Fatalf("the secret is in %q only: the test does not reach summaries and forks", got)
	}
	rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("code is").ID}})
	if rec.Entries != 1 || rec.Summaries != 1 || rec.Views != 2 {
		t.Errorf("receipt = %+v", rec)
	}
	if got := f.traces(); got != nil {
		t.Errorf("still there: %q", got)
	}
	if s := shown(f.assemble(100)); !strings.Contains(s, "was erased") {
		t.Errorf("shown: %s", s)
	}
	// A summary that is not concerned stays.
	f.ingest(user("f"), assistant("g"), user("h"), assistant("i"))
	if _, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 100, Force: true}); err != nil {
		t.Fatal(err)
	}
	if rec = f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("i").ID}}); rec.Summaries != 0 {
		t.Errorf("receipt = %+v", rec)
	}
}

// teller is a compactor whose summary repeats the first words of everything.
type teller struct{}

func (teller) OwnsCompaction() bool { return true }

func (teller) Compact(_ context.Context, c core.Compaction) (core.Patch, error) {
	r := core.Replacement{Kind: "summary"}
	for _, e := range c.Entries[:len(c.Entries)-c.Protected] {
		r.Entries = append(r.Entries, e.ID)
		words := strings.Fields(e.Text())
		r.Text += strings.Join(words[max(len(words)-1, 0):], " ") + " "
	}
	return core.Patch{Replace: []core.Replacement{r}}, nil
}

func TestForgetByTimeSessionAndAgent(t *testing.T) {
	f := newFixture(t)
	old := user("long ago " + secret)
	old.Time = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	f.ingest(old, assistant("then"), user("now"), assistant("yes"))
	if rec := f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, To: old.Time.Add(time.Hour)}); rec.Entries != 1 {
		t.Errorf("by time: %+v", rec)
	}
	if rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope()}); rec.Entries != 3 {
		t.Errorf("by session: %+v", rec)
	}
	if res := f.assemble(1000, transcript("hm", old, assistant("then"), user("now"), assistant("yes"))); len(res.Messages) != 0 {
		t.Errorf("a forgotten session shows %s", shown(res))
	}
	f.ingest(user("more "+secret), assistant("b"))
	rec := f.forget(engine.ForgetRequest{Scope: core.Scope{Agent: "main"}, Purge: true})
	if rec.Entries != 2 || f.stored() != 0 || f.traces() != nil {
		t.Errorf("by agent: %+v, %d entries stay, traces %q", rec, f.stored(), f.traces())
	}
	if _, err := f.store.LoadView(t.Context(), f.id); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("the view stays: %v", err)
	}
	f.ingest(user("anew"))
	if s := shown(f.assemble(1000)); !strings.Contains(s, "anew") {
		t.Errorf("shown: %s", s)
	}
}

func TestForgetRefuses(t *testing.T) {
	f := newFixture(t)
	f.ingest(user("a"))
	for name, c := range map[string]struct {
		req  engine.ForgetRequest
		want error
	}{
		"no agent":       {engine.ForgetRequest{}, core.ErrInvalid},
		"time reversed":  {engine.ForgetRequest{Scope: f.id.Scope(), From: time.Unix(9, 0), To: time.Unix(3, 0)}, core.ErrInvalid},
		"purge by entry": {engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{"x"}, Purge: true}, core.ErrInvalid},
		"unknown entry":  {engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("a").ID, "x"}}, core.ErrNotFound},
	} {
		if _, err := f.engine.Forget(t.Context(), c.req); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if f.entry("a").Type != core.TypeMessage {
		t.Error("a refused call erased something")
	}
}
