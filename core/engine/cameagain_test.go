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

// TestSaidBeforeAnotherIsErased: what says the same as a message that is erased later, and comes without an id, stays.
func TestSaidBeforeAnotherIsErased(t *testing.T) {
	for kind := range pausedStores {
		for _, ids := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/ids %v", kind, ids), func(t *testing.T) {
				f, other, _ := pausedFixture(t, kind)
				yes := []message.Message{user("yes"), user("yes"), user("yes")}
				if ids {
					yes[0].ID, yes[1].ID, yes[2].ID = "1", "2", "3"
				}
				by := other
				if kind == "alone" {
					by = f
				}
				f.ingest(yes[0], assistant("so?"))
				f.ingest(yes[1])
				first := f.entry("yes").ID
				by.assemble(1000)
				f.ingest(yes[2])
				by.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{first}})
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
