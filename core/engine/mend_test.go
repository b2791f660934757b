package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/edit"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// older is a store from before a position existed once: what twin puts into it shares the position of another entry. Every position takes several of the store
// behind it.
type older struct {
	*memory.Store
	twins int64
	// appends and deletes fail the next one, all says that they go on doing so.
	appends, deletes error
	all              bool
	// blind says that it cannot tell how far a session is.
	blind bool
}

const perPosition = 10

func (s *older) shown(entries []core.Entry) []core.Entry {
	for i := range entries {
		entries[i].Seq /= perPosition
	}
	return entries
}

func (s *older) Append(ctx context.Context, entries []core.Entry) (core.AppendResult, error) {
	if err := s.appends; err != nil {
		if !s.all {
			s.appends = nil
		}
		return core.AppendResult{}, err
	}
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Seq *= perPosition
	}
	return s.Store.Append(ctx, entries)
}

func (s *older) Get(ctx context.Context, scope core.Scope, ids []string) ([]core.Entry, error) {
	entries, err := s.Store.Get(ctx, scope, ids)
	return s.shown(entries), err
}

func (s *older) Scan(ctx context.Context, q core.ScanQuery) (core.Page, error) {
	q.FromSeq, q.ToSeq = q.FromSeq*perPosition, q.ToSeq*perPosition
	page, err := s.Store.Scan(ctx, q)
	s.shown(page.Entries)
	return page, err
}

func (s *older) Delete(ctx context.Context, scope core.Scope, ids []string) (int, error) {
	if err := s.deletes; err != nil {
		if !s.all {
			s.deletes = nil
		}
		return 0, err
	}
	return s.Store.Delete(ctx, scope, ids)
}

func (s *older) Tail(ctx context.Context, id core.SessionID) (core.Tail, error) {
	if s.blind {
		return core.Tail{}, errors.ErrUnsupported
	}
	tail, err := s.Store.Tail(ctx, id)
	if tail.Next > 0 {
		tail.Next = (tail.Next-1)/perPosition + 1
	}
	return tail, err
}

// twin stores a message at a position that is taken.
func (s *older) twin(t *testing.T, id core.SessionID, seq int64, m message.Message) string {
	t.Helper()
	s.twins++
	e := core.Entry{
		ID: fmt.Sprint("twin", s.twins), Key: fmt.Sprint("twin", s.twins), Agent: id.Agent, Session: id.Session, Seq: seq*perPosition + s.twins, Role: m.Role,
		Type: core.TypeMessage, Message: m, Fingerprint: message.Fingerprint(m), Tokens: wordCounter(m.Text()) + 4,
	}
	if _, err := s.Store.Append(t.Context(), []core.Entry{e}); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// olderFixture is a fixture over a store with six messages, of which the third and the fourth share their positions with one and with two others.
func olderFixture(t *testing.T, change ...func(*engine.Config, *engine.Parts)) (*fixture, *older) {
	t.Helper()
	store := &older{Store: memory.New()}
	f := newFixture(t, append(change, func(_ *engine.Config, p *engine.Parts) { p.Store = store })...)
	f.store = store.Store
	f.ingest(user("m0"), assistant("m1"), user("m2"), assistant("m3"), user("m4"), assistant("m5"))
	store.twin(t, f.id, 2, user("beside m2"))
	store.twin(t, f.id, 3, assistant("beside m3"))
	store.twin(t, f.id, 3, assistant("again beside m3"))
	f.restart()
	return f, store
}

const mended = "m0 | m1 | m2 | beside m2 | m3 | beside m3 | again beside m3 | m4 | m5"

// flaws are what is wrong with the sessions of a store.
func flaws(t *testing.T, s core.Store) (out []string) {
	t.Helper()
	for f, err := range engine.Flaws(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f.Session.Session+": "+f.Text)
	}
	return out
}

// told hears what becomes of entries, and finds what is there.
type told struct{ there map[string]string }

func (o *told) Retrieve(context.Context, core.Query) ([]core.Candidate, error) { return nil, nil }

func (o *told) Appended(_ context.Context, entries []core.Entry) error {
	for i := range entries {
		o.there[entries[i].ID] = entries[i].Text()
	}
	return nil
}

func (o *told) Updated(_ context.Context, e core.Entry) error {
	o.there[e.ID] = e.Text()
	return nil
}

func (o *told) Deleted(_ context.Context, _ core.Scope, ids []string) error {
	for _, id := range ids {
		delete(o.there, id)
	}
	return nil
}

// TestSharedPositionsAreMended: whatever a session whose entries share positions is used for first, all of them are shown where they belong, have a position each
// from then on, nothing is lost or stored twice, and an index knows what is there.
func TestSharedPositionsAreMended(t *testing.T) {
	var all []message.Message
	for n, text := range strings.Split(mended, " | ") {
		all = append(all, message.New([]message.Role{message.User, message.Assistant}[n%2], text))
	}
	all[3].Role, all[4].Role, all[6].Role, all[7].Role, all[8].Role = message.User, message.Assistant, message.Assistant, message.User, message.Assistant
	mend := func(want int) func(*fixture) {
		return func(f *fixture) {
			if n, err := f.engine.Mend(f.t.Context(), f.id); n != want || err != nil {
				f.t.Errorf("Mend = %d, %v, want %d", n, err, want)
			}
		}
	}
	for name, use := range map[string]func(f *fixture){
		"a prompt":          func(f *fixture) { f.assemble(1000) },
		"with a transcript": func(f *fixture) { f.assemble(1000, transcript("now", all...)) },
		"a compaction": func(f *fixture) {
			if res := f.compact(1000); !res.OK || !res.Compacted {
				f.t.Errorf("Compact = %+v", res)
			}
		},
		"being mended": mend(3),
	} {
		t.Run(name, func(t *testing.T) {
			heard := &told{there: map[string]string{"twin1": "beside m2", "twin2": "beside m3", "twin3": "again beside m3"}}
			f, store := olderFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Retriever = heard })
			if got := flaws(t, store); !slices.Equal(got, []string{"s1: 3 entries share a position with another one"}) {
				t.Errorf("before: %q", got)
			}
			use(f)
			if got := flaws(t, store); got != nil {
				t.Errorf("afterwards: %q", got)
			}
			mend(0)(f)
			for range 2 {
				if got := shown(f.assemble(1000)); got != mended && name != "a compaction" {
					t.Errorf("shown: %q, want %q", got, mended)
				}
				f.restart()
			}
			f.ingest(user("m6"))
			if got := shown(f.assemble(1000)); !strings.HasSuffix(got, "m4 | m5 | m6") {
				t.Errorf("after another message: %q", got)
			}
			there, said := map[string]string{}, map[string]int{}
			for _, e := range entriesOf(f) {
				there[e.ID] = e.Text()
				said[e.Text()]++
			}
			for _, m := range all {
				if said[m.Text()] != 1 {
					t.Errorf("%q is stored %d times", m.Text(), said[m.Text()])
				}
			}
			if diff := cmp.Diff(there, heard.there); diff != "" {
				t.Errorf("an index does not know what is stored (-stored +known):\n%s", diff)
			}
		})
	}
}

// TestMendThatFails: what the store refused halfway is an error that says so, and the next call does the rest: nothing is there twice.
func TestMendThatFails(t *testing.T) {
	refusal := errors.New("the disk is full")
	for name, fail := range map[string]func(*older){
		"a copy":     func(s *older) { s.appends = refusal },
		"a deletion": func(s *older) { s.deletes = refusal },
	} {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", name, blind), func(t *testing.T) {
				f, store := olderFixture(t)
				store.blind, store.all = blind, true
				fail(store)
				for what, call := range map[string]func() error{
					"mend": func() error { return second(f.engine.Mend(t.Context(), f.id)) },
					"assemble": func() error {
						return second(f.engine.Assemble(t.Context(), core.AssembleRequest{Session: f.id, Budget: 1000}))
					},
					"compact": func() error {
						return second(f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 1000, Force: true}))
					},
				} {
					if err := call(); !errors.Is(err, refusal) {
						t.Errorf("%s: %v, want what the store says", what, err)
					}
				}
				store.all = false
				fail(store)
				if err := second(f.engine.Mend(t.Context(), f.id)); !errors.Is(err, refusal) {
					t.Errorf("mend: %v, want what the store says", err)
				}
				got := strings.Split(shown(f.assemble(1000)), " | ")
				want := strings.Split(mended, " | ")
				slices.Sort(got)
				slices.Sort(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("shown (-want +got):\n%s", diff)
				}
				if n := f.stored(); n != len(want) {
					t.Errorf("%d entries are stored, want %d", n, len(want))
				}
				if got := flaws(t, store); got != nil {
					t.Errorf("flaws: %q", got)
				}
			})
		}
	}
}

// TestMendAndOwnOutput: what a host was given before a session was mended is known for what it is afterwards, too: nothing of it is stored, and nothing is left out.
func TestMendAndOwnOutput(t *testing.T) {
	for name, harm := range map[string]func(*fixture, *older){
		"shared": func(f *fixture, s *older) { s.twin(f.t, f.id, 3, assistant("beside m3")) },
		"gone": func(f *fixture, _ *older) {
			if _, err := f.store.Delete(f.t.Context(), f.id.Scope(), []string{f.entry("m1").ID}); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &older{Store: memory.New()}
			f := newFixture(t, func(_ *engine.Config, p *engine.Parts) { p.Store = store })
			f.store = store.Store
			host := []message.Message{user("m0"), assistant("m1"), user("m2"), assistant("m3")}
			out := f.assemble(1000, transcript("now", host...)).Messages
			harm(f, store)
			if n, err := f.engine.Mend(t.Context(), f.id); n != 1 || err != nil {
				t.Fatalf("Mend = %d, %v", n, err)
			}
			stored, want := f.stored(), shown(f.assemble(1000))
			if got := shown(f.assemble(1000, transcript("now", append(out, user("m4"))...), inLoop)); !strings.HasSuffix(got, "m3 | m4") && !strings.HasSuffix(got, "beside m3 | m4") {
				t.Errorf("shown: %q, before it was %q", got, want)
			}
			if n := f.stored(); n != stored+1 && name == "shared" {
				t.Errorf("%d entries are stored, want one more than %d", n, stored)
			}
		})
	}
}

// TestForkOfSharedPositions: a fork whose parent's entries share positions is used like any other, and the parent is mended.
func TestForkOfSharedPositions(t *testing.T) {
	f, store := olderFixture(t)
	child := core.SessionID{Agent: "helper", Session: "child"}
	if _, err := f.engine.PrepareSubagentSpawn(t.Context(), core.SpawnRequest{Parent: f.id, Child: child, Mode: core.SpawnFork}); err != nil {
		t.Fatal(err)
	}
	f.restart()
	f.say(child, false, user("task"))
	for range 2 {
		if got := shown(f.assemble(1000, func(r *core.AssembleRequest) { r.Session = child })); got != "m0 | m1 | m2 | m3 | m4 | m5 | task" {
			t.Errorf("the fork shows %q", got)
		}
	}
	if got := shown(f.assemble(1000)); got != mended {
		t.Errorf("the parent shows %q, want %q", got, mended)
	}
	if got := flaws(t, store); got != nil {
		t.Errorf("flaws: %q", got)
	}
}

// TestMendKeepsWhatIsShownShortened: an entry that was shown shortened, or stands in front because its turn began with it, is so under its new position too.
func TestMendKeepsWhatIsShownShortened(t *testing.T) {
	f, store := olderFixture(t)
	f.edit(edit.Stub{ID: "twin1", Stub: window.Stub{Kind: window.Clipped, Texts: map[int]string{0: "a shorter text"}}})
	f.edit(edit.Begin{Start: 4, Pinned: "twin1"})
	if got, want := shown(f.assemble(1000)), "[4 earlier messages are stored but not shown.] | a shorter text | [1 earlier steps of this turn are stored but not shown.] | m4 | m5"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if n, err := f.engine.Mend(t.Context(), f.id); n != 3 || err != nil {
		t.Errorf("Mend = %d, %v", n, err)
	}
	for range 2 {
		if got, want := shown(f.assemble(1000)), "[7 earlier messages are stored but not shown.] | a shorter text | [3 earlier steps of this turn are stored but not shown.] | m4 | m5"; got != want {
			t.Errorf("once it is mended: %q, want %q", got, want)
		}
		f.restart()
	}
	if got := flaws(t, store); got != nil {
		t.Errorf("flaws: %q", got)
	}
}
