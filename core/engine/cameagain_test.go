package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
)

// stays asks that nothing of what was erased is stored or shown, now and later, whoever looks.
func (f *fixture) stays(want string, others ...*fixture) {
	f.t.Helper()
	for range 2 {
		for _, g := range append(others, f) {
			if got := shown(g.assemble(1000)); got != want {
				g.t.Errorf("shown: %q, want %q", got, want)
			}
		}
		if got := f.traces(); got != nil {
			f.t.Errorf("it is stored in %q", got)
		}
		for _, entry := range entriesOf(f) {
			for n := range 3 {
				if fp := message.Fingerprint(ownID(n)); strings.Contains(entry.Key+entry.Fingerprint, fp) {
					f.t.Errorf("entry %q tells what it was", entry.ID)
				}
			}
		}
		f.restart()
	}
}

// TestErasedIsSaidAgainMeanwhile: what comes again while it is erased is erased, too, by whichever way and process it comes, and whatever the erasure is of.
func TestErasedIsSaidAgainMeanwhile(t *testing.T) {
	said := []message.Message{ownID(0), ownID(1), ownID(2)}
	ways := map[string]func(f *fixture) error{
		"ingested": func(f *fixture) error {
			_, err := f.engine.IngestBatch(f.t.Context(), core.IngestBatchRequest{Session: f.id, Messages: said})
			return err
		},
		"one by one": func(f *fixture) error {
			for _, m := range said {
				f.ingest(m)
			}
			return nil
		},
		"by the key of the call": func(f *fixture) error {
			_, err := f.engine.Ingest(f.t.Context(), core.IngestRequest{Session: f.id, Message: user(said[0].Text()), IdempotencyKey: "call"})
			return err
		},
		"without an id": func(f *fixture) error {
			f.ingest(user(said[0].Text()))
			return nil
		},
		"committed": func(f *fixture) error {
			_, err := f.engine.CommitTurn(f.t.Context(), core.CommitTurnRequest{Session: f.id, AdvancementKey: "k", Messages: said[:2]})
			return err
		},
		"after a turn": func(f *fixture) error {
			return f.engine.AfterTurn(f.t.Context(), core.AfterTurnRequest{Session: f.id, Messages: said})
		},
		"a transcript": func(f *fixture) error {
			_, err := f.engine.Bootstrap(f.t.Context(), core.BootstrapRequest{
				Session: f.id, Transcript: &core.Transcript{Messages: append([]message.Message{user("hello")}, said...)},
			})
			return err
		},
	}
	for name, again := range ways {
		for kind := range pausedStores {
			for _, who := range []string{"the same process", "another", "one that does not hold it"} {
				for _, all := range []bool{true, false} {
					if kind == "alone" && who != "the same process" {
						continue // it tells nobody what others did
					}
					t.Run(fmt.Sprintf("%s/%s/%s/all %v", name, kind, who, all), func(t *testing.T) {
						f, other, store := pausedFixture(t, kind)
						f.ingest(append([]message.Message{user("hello")}, said...)...)
						f.assemble(1000)
						by := f
						if who != "the same process" {
							by = other
						}
						if who == "another" {
							other.assemble(1000)
						}
						req := engine.ForgetRequest{Scope: f.id.Scope()}
						want := ""
						if !all {
							want = "hello"
							for _, m := range said {
								req.Entries = append(req.Entries, f.entry(m.Text()).ID)
							}
						}
						store.emptied = func() {
							store.emptied = func() {
								if err := again(f); err != nil {
									t.Error(err)
								}
							}
						}
						if rec := by.forget(req); rec.Entries < len(said) || rec.Left != nil {
							t.Errorf("receipt: %+v", rec)
						}
						if all && name == "a transcript" {
							want = shown(f.assemble(1000)) // whether the line before it came again is nobody's matter here
						}
						if by != f {
							f.stays(want, other)
						} else {
							f.stays(want)
						}
						if rec := by.forget(engine.ForgetRequest{Scope: f.id.Scope()}); all && rec.Entries != 0 && name != "a transcript" {
							t.Errorf("a second erasure found %d entries", rec.Entries)
						}
					})
				}
			}
		}
	}
}

// TestErasedIsSaidAgainAllTheTime: an erasure ends also while another process says again and again what it erases, at a cost for each time that does not grow.
func TestErasedIsSaidAgainAllTheTime(t *testing.T) {
	const times = 30
	f, other, store := pausedFixture(t, "views")
	f.ingest(append([]message.Message{user("hello")}, ownID(0))...)
	f.assemble(1000)
	other.assemble(1000)
	left := times
	var again func()
	again = func() {
		if left--; left > 0 {
			before := store.read
			f.ingest(user(ownID(0).Text()))
			store.read, store.swapping = before, again
		}
	}
	req := engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}}
	store.read = 0
	store.emptied = func() { store.swapping = again }
	if rec := other.forget(req); rec.Entries != times || rec.Left != nil {
		t.Errorf("receipt: %+v", rec)
	}
	if most := 10 * times; store.read > most {
		t.Errorf("%d entries were read, at most %d are allowed", store.read, most)
	}
	f.stays("hello", other)
}

// TestErasedBeforeItIsStored: a message that another process erases after a call for it looked, and before that stores it once more, is erased, also where the call
// ends before it notices.
func TestErasedBeforeItIsStored(t *testing.T) {
	for name, c := range map[string]struct {
		theirs []message.Message
		cut    bool
		want   string
	}{
		"at once":                     {nil, false, "hello"},
		"cut short":                   {nil, true, "hello"},
		"when its position was taken": {one(assistant("theirs")), false, "hello | theirs"},
	} {
		for _, kind := range []string{"views", "no views"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				f, other, store := pausedFixture(t, kind)
				f.ingest(user("hello"), ownID(1))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store.appending = func() {
					other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
					other.ingest(c.theirs...)
				}
				if c.cut {
					store.appended = cancel
				}
				res, err := f.engine.Ingest(ctx, core.IngestRequest{Session: f.id, Message: ownID(1)})
				if kind == "views" && c.cut != (err != nil) || !c.cut && len(res.IDs) != 1 {
					t.Errorf("Ingest = %+v, %v", res, err)
				}
				if c.cut && kind == "views" { // whoever looks first
					if got := shown(other.assemble(1000)); got != c.want {
						t.Errorf("shown: %q", got)
					}
				}
				f.assemble(1000) // without views it is the call's own process that has to look
				f.stays(c.want, other)
			})
		}
	}
}

// TestErasedBeforeTheSameCallStoresIt: a call that another process makes again, because its host got no answer, and that looked before the messages were erased and
// stores them afterwards, does not bring them back, whoever looks first and whatever the host knows the messages by.
func TestErasedBeforeTheSameCallStoresIt(t *testing.T) {
	plain := []message.Message{user("my code is " + secret), assistant("your code is " + secret)}
	for name, req := range map[string]core.IngestBatchRequest{
		"by the key of the call": {IdempotencyKey: "call", Messages: plain},
		"by ids":                 {Messages: []message.Message{ownID(0), ownID(1)}},
		"by both":                {IdempotencyKey: "call", Messages: []message.Message{ownID(0), plain[1]}},
	} {
		for _, kind := range []string{"views", "no views"} {
			for _, all := range []bool{true, false} {
				for _, who := range []string{"who erased", "who called", "a third"} {
					t.Run(fmt.Sprintf("%s/%s/all %v/%s looks first", name, kind, all, who), func(t *testing.T) {
						f, other, store := pausedFixture(t, kind)
						if req.Session = f.id; !all {
							other.ingest(user("hello"))
						}
						res, err := other.engine.IngestBatch(t.Context(), req)
						if err != nil {
							t.Fatal(err)
						}
						erase, want := engine.ForgetRequest{Scope: f.id.Scope()}, ""
						if !all {
							erase.Entries, want = res.IDs, "hello"
						}
						store.appending = func() { other.forget(erase) }
						if res, err := f.engine.IngestBatch(t.Context(), req); err != nil || len(res.IDs) != len(req.Messages) {
							t.Errorf("IngestBatch = %+v, %v", res, err)
						}
						first := map[string]*fixture{"who erased": other, "who called": f, "a third": f.second()}[who]
						if got := shown(first.assemble(1000)); got != want {
							t.Errorf("shown first: %q, want %q", got, want)
						}
						f.stays(want, other)
					})
				}
			}
		}
	}
}

// TestErasedWhereALateSummaryStood: a summary from before an erasure that is stored after it goes, and its position is given to nobody again: a call under way
// would store there what was erased, in front of where everybody goes on to read.
func TestErasedWhereALateSummaryStood(t *testing.T) {
	f, other, store := pausedFixture(t, "views")
	f.ingest(user("hello"), ownID(1))
	store.appending = func() {
		other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
		m := user("in short: " + secret)
		late := core.Entry{
			ID: "late", Agent: f.id.Agent, Session: f.id.Session, Seq: 2, Role: m.Role, Type: core.TypeSummary, Key: "c:late", Time: f.entry("hello").Time,
			Message: m, Fingerprint: message.Fingerprint(m), Tokens: 5,
		}
		if _, err := f.store.Append(t.Context(), []core.Entry{late}); err != nil {
			t.Error(err)
		}
		if got := shown(other.assemble(1000)); got != "hello" {
			t.Errorf("shown: %q", got)
		}
	}
	f.ingest(ownID(1))
	f.stays("hello", other)
	if rec := f.forget(engine.ForgetRequest{Scope: f.id.Scope()}); rec.Entries != 1 {
		t.Errorf("what is left of the summary was erased once more: %+v", rec)
	}
}

// TestPurgedIsSaidAgain: what was erased, and purged after that, comes back with the same call of another process.
func TestPurgedIsSaidAgain(t *testing.T) {
	for _, kind := range []string{"views", "no views"} {
		t.Run(kind, func(t *testing.T) {
			f, other, _ := pausedFixture(t, kind)
			req := core.IngestBatchRequest{Session: f.id, Messages: one(user("hello")), IdempotencyKey: "call"}
			for _, erase := range []engine.ForgetRequest{{Scope: f.id.Scope()}, {Scope: f.id.Scope(), Purge: true}} {
				if _, err := other.engine.IngestBatch(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				f.assemble(1000)
				f.forget(erase)
			}
			if _, err := other.engine.IngestBatch(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for _, g := range []*fixture{f, other} {
					if got := shown(g.assemble(1000)); got != "hello" {
						t.Errorf("shown: %q", got)
					}
				}
			}
		})
	}
}

// TestErasedBeforeTheFirstView: a message that another process erases when it is stored and its session has no view yet is gone, also from memory, and stays so.
func TestErasedBeforeTheFirstView(t *testing.T) {
	f, other, store := pausedFixture(t, "views")
	store.appended = func() {
		other.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry(secret).ID}})
	}
	f.ingest(ownID(1))
	f.stays("", other)
	f.ingest(ownID(1), user("hello"))
	f.stays("hello", other)
}

// TestSaidBeforeAnotherIsErased: what says the same as a message that is erased later, and comes without an id, or in another call, stays.
func TestSaidBeforeAnotherIsErased(t *testing.T) {
	for kind := range pausedStores {
		for _, by := range []string{"nothing", "ids", "calls"} {
			t.Run(fmt.Sprintf("%s/known by %s", kind, by), func(t *testing.T) {
				f, other, _ := pausedFixture(t, kind)
				yes := []message.Message{user("yes"), user("yes"), user("yes")}
				if by == "ids" {
					yes[0].ID, yes[1].ID, yes[2].ID = "1", "2", "3"
				}
				say := func(n int) {
					req := core.IngestRequest{Session: f.id, Message: yes[n]}
					if by == "calls" {
						req.IdempotencyKey = fmt.Sprint("call ", n)
					}
					if _, err := f.engine.Ingest(t.Context(), req); err != nil {
						t.Fatal(err)
					}
				}
				who := other
				if kind == "alone" {
					who = f
				}
				say(0)
				f.ingest(assistant("so?"))
				say(1)
				first := f.entry("yes").ID
				who.assemble(1000)
				say(2)
				who.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{first}})
				for range 2 {
					if got := shown(f.assemble(1000)); got != "so? | yes | yes" {
						t.Errorf("shown: %q", got)
					}
					f.restart()
				}
			})
		}
	}
}
