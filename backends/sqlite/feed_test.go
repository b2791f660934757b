package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/sqlite"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// copyOf is what somebody who follows an agent's feed knows of it.
type copyOf struct {
	agent   string
	mark    core.Mark
	entries map[string]core.Entry
	anew    int
	// told copies hear of most appends at once, and say so to the feed.
	told bool
}

// tell gives a copy what was appended, if it is one that is told, except for some of it.
func (c *copyOf) tell(r *rand.Rand, batch []core.Entry) {
	for _, e := range batch {
		if c.told && e.Agent == c.agent && r.Intn(4) > 0 {
			if c.entries == nil {
				c.entries = map[string]core.Entry{}
			}
			c.entries[e.ID] = e
		}
	}
}

func (c *copyOf) knows(id string) bool {
	_, ok := c.entries[id]
	return ok
}

// follow reads the feed to its end, in pages of limit.
func (c *copyOf) follow(tb testing.TB, s core.ChangeFeed, limit int) {
	tb.Helper()
	for {
		q := core.ChangeQuery{Agent: c.agent, After: c.mark, Limit: limit}
		if c.told {
			q.Known = c.knows
		}
		page, err := s.Changes(tb.Context(), q)
		if errors.Is(err, core.ErrNotFound) && c.mark != "" {
			c.mark, c.entries = "", nil
			c.anew++
			continue
		}
		if err != nil {
			tb.Fatalf("Changes after %q: %v", c.mark, err)
		}
		if len(page.Changes) > limit || !c.told && len(page.Changes) == 0 && (page.Mark != c.mark || page.More) {
			tb.Fatalf("Changes: %d changes for a limit of %d, mark %q after %q, more %t", len(page.Changes), limit, page.Mark, c.mark, page.More)
		}
		if c.entries == nil {
			c.entries = map[string]core.Entry{}
		}
		for _, change := range page.Changes {
			if change.Entry == nil {
				delete(c.entries, change.ID)
				continue
			}
			if change.Entry.ID != change.ID {
				tb.Fatalf("a change of %q has entry %q", change.ID, change.Entry.ID)
			}
			c.entries[change.ID] = *change.Entry
		}
		c.mark = page.Mark
		if !page.More {
			return
		}
	}
}

// compare holds a copy against the store.
func (c *copyOf) compare(tb testing.TB, s core.Store) {
	tb.Helper()
	byID := func(a, b core.Entry) int { return strings.Compare(a.ID, b.ID) }
	want := slices.SortedFunc(slices.Values(all(tb, s, core.Scope{Agent: c.agent})), byID)
	if diff := differ(want, slices.SortedFunc(maps.Values(c.entries), byID)); diff != "" {
		tb.Fatalf("who follows agent %s knows other entries than there are (-want +got):\n%s", c.agent, diff)
	}
}

// TestWhoFollowsKnowsAll is a property: after any history over two connections, whoever follows the feed from any time on has what the
// store has.
func TestWhoFollowsKnowsAll(t *testing.T) {
	t.Parallel()
	base := int64(drawn.Seed(t))
	for i := range int64(number("FEED_CASES", 5)) {
		seed := base + i
		r := rand.New(rand.NewSource(seed))
		cfg := config(t)
		open2 := func() []*sqlite.Store {
			stores := []*sqlite.Store{open(t, cfg), open(t, cfg)}
			for _, s := range stores {
				s.ShortTail(1 + r.Int63n(20))
			}
			return stores
		}
		stores := open2()
		agents := []string{"ann", "bob", "cyd"}
		var copies []*copyOf
		for _, a := range agents {
			copies = append(copies, &copyOf{agent: a}, &copyOf{agent: a}, &copyOf{agent: a, told: true})
		}
		made := map[string][]string{}
		n := 0
		for range 60 {
			s := stores[r.Intn(2)]
			agent := agents[r.Intn(len(agents))]
			scope := core.Scope{Agent: agent}
			switch k := r.Intn(12); {
			case k < 6:
				var batch []core.Entry
				for range 1 + r.Intn(4) {
					id := core.SessionID{Agent: agent, Session: fmt.Sprint("s", r.Intn(2))}
					if r.Intn(4) == 0 {
						id.Agent = agents[r.Intn(len(agents))]
					}
					e := entry(id, n)
					n++
					batch = append(batch, e)
					made[id.Agent] = append(made[id.Agent], e.ID)
				}
				mustAppend(t, s, batch...)
				for _, c := range copies {
					c.tell(r, batch)
				}
			case k < 8 && len(made[agent]) > 0:
				m := message.New(message.User, fmt.Sprint("changed ", r.Int()))
				err := s.Update(t.Context(), scope, made[agent][r.Intn(len(made[agent]))], core.Change{Message: &m, Fingerprint: "f"})
				if err != nil && !errors.Is(err, core.ErrNotFound) {
					t.Fatal(err)
				}
			case k < 10 && len(made[agent]) > 0:
				var ids []string
				for range 1 + r.Intn(3) {
					ids = append(ids, made[agent][max(0, len(made[agent])-1-r.Intn(6))])
				}
				if r.Intn(8) == 0 {
					ids = made[agent] // all that the agent has
				}
				if _, err := s.Delete(t.Context(), scope, ids); err != nil {
					t.Fatal(err)
				}
			case k == 10:
				if err := s.Vacuum(t.Context()); err != nil {
					t.Fatal(err)
				}
			case k == 11 && r.Intn(4) == 0:
				for _, s := range stores {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				stores = open2()
			}
			for _, c := range copies {
				if r.Intn(5) == 0 {
					c.follow(t, stores[r.Intn(2)], 1+r.Intn(5))
					c.compare(t, stores[0])
				}
			}
		}
		for _, c := range append(copies, &copyOf{agent: "ann"}) {
			c.follow(t, stores[0], 3)
			c.compare(t, stores[0])
			if c.anew > 0 {
				t.Errorf("seed %d: who followed agent %s had to begin anew", seed, c.agent)
			}
		}
		if err := stores[0].Verify(t.Context()); err != nil {
			t.Error(err)
		}
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFeedSaysWhatHappened(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	q := core.ChangeQuery{Agent: "ann", Limit: 10}
	if page, err := s.Changes(t.Context(), q); err != nil || !cmp.Equal(page, core.ChangePage{}) {
		t.Errorf("Changes of an empty store = %+v, %v, want nothing", page, err)
	}
	mustAppend(t, s, entries(ann, 0, 3)...)
	page, err := s.Changes(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var want []core.EntryChange
	for _, e := range entries(ann, 0, 3) {
		want = append(want, core.EntryChange{ID: e.ID, Entry: &e})
	}
	if diff := cmp.Diff(want, page.Changes); diff != "" || page.More {
		t.Errorf("Changes (-want +got), more %t:\n%s", page.More, diff)
	}
	q.After = page.Mark
	mustAppend(t, s, entries(core.SessionID{Agent: "bob", Session: "b"}, 0, 3)...)
	mustAppend(t, s, entries(ann, 0, 3)...)
	if page, err := s.Changes(t.Context(), q); err != nil || len(page.Changes) > 0 || page.Mark != q.After {
		t.Errorf("Changes after what is no change of the agent = %+v, %v, want nothing and the same mark", page, err)
	}
	erased := message.New(message.User, "")
	change := core.Change{Message: &erased, Type: core.TypeErased, Key: "x", Fingerprint: "f", Meta: map[string]string{}}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-0", change); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), ann.Scope(), []string{"ann-one-2", "unknown"}); err != nil {
		t.Fatal(err)
	}
	page, err = s.Changes(t.Context(), q)
	if err != nil || len(page.Changes) != 2 || page.Changes[0].Entry == nil || page.Changes[0].Entry.Type != core.TypeErased ||
		page.Changes[1].ID != "ann-one-2" || page.Changes[1].Entry != nil {
		t.Errorf("Changes = %+v, %v, want an erased entry and a deleted one", page, err)
	}
	for name, q := range map[string]core.ChangeQuery{"no agent": {Limit: 1}, "no limit": {Agent: "a"}, "large limit": {Agent: "a", Limit: core.MaxPage + 1}} {
		if _, err := s.Changes(t.Context(), q); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Changes with %s = %v, want ErrInvalid", name, err)
		}
	}
	if err := s.Update(t.Context(), ann.Scope(), "ann-one-1", core.Change{Key: "x"}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("Update to the key of another entry = %v, want ErrConflict", err)
	}
}

// TestMarksOfAnotherPast checks that whoever knows more, or something else, than the file does begins anew.
func TestMarksOfAnotherPast(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 10)...)
	m := message.New(message.User, "other")
	update := func(s *sqlite.Store, n int) {
		t.Helper()
		if err := s.Update(t.Context(), ann.Scope(), entry(ann, n).ID, core.Change{Message: &m, Fingerprint: "f"}); err != nil {
			t.Fatal(err)
		}
	}
	early := copyOf{agent: "ann"}
	early.follow(t, s, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	// What happens after the copy was made, and how the numbers are given anew after it was put back.
	for name, tc := range map[string]struct{ lost, instead func(s *sqlite.Store) }{
		"appended": {func(s *sqlite.Store) { mustAppend(t, s, entries(ann, 10, 20)...) }, func(s *sqlite.Store) { mustAppend(t, s, entries(ann, 30, 60)...) }},
		"changed": {func(s *sqlite.Store) { mustAppend(t, s, entry(ann, 10)); update(s, 3) },
			func(s *sqlite.Store) { mustAppend(t, s, entry(ann, 11)); update(s, 3); update(s, 3) }},
		"deleted": {func(s *sqlite.Store) {
			if _, err := s.Delete(t.Context(), ann.Scope(), []string{entry(ann, 4).ID}); err != nil {
				t.Fatal(err)
			}
		}, func(s *sqlite.Store) { update(s, 4) }},
		"nothing since": {func(s *sqlite.Store) { mustAppend(t, s, entry(ann, 10)) }, func(*sqlite.Store) {}},
	} {
		t.Run(name, func(t *testing.T) {
			own := config(t)
			write(t, own.Path, old)
			s := open(t, own)
			tc.lost(s)
			late := copyOf{agent: "ann"}
			late.follow(t, s, 100)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			write(t, own.Path, old)
			s = open(t, own)
			tc.instead(s)
			late.follow(t, s, 100)
			late.compare(t, s)
			if late.anew != 1 {
				t.Errorf("who knew what was lost began anew %d times, want once", late.anew)
			}
			same := copyOf{agent: "ann", mark: early.mark, entries: map[string]core.Entry{}}
			maps.Copy(same.entries, early.entries)
			same.follow(t, s, 100)
			same.compare(t, s)
			if same.anew != 0 {
				t.Error("who knew no more than the copy had to begin anew")
			}
		})
	}
	other := open(t, config(t))
	mustAppend(t, other, entries(ann, 0, 10)...)
	for _, mark := range []core.Mark{early.mark, "x", "1.2.3", "1.2.3.4.5"} {
		if _, err := other.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: mark, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Changes of another file after %q = %v, want ErrNotFound", mark, err)
		}
	}
}
