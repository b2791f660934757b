package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/backends/postgres"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/drawn"
)

// follow reads a feed to its end and applies it to what is known.
func follow(tb testing.TB, s core.ChangeFeed, agent string, mark core.Mark, known map[string]core.Entry) core.Mark {
	tb.Helper()
	for {
		page, err := s.Changes(tb.Context(), core.ChangeQuery{Agent: agent, After: mark, Limit: 3})
		if err != nil {
			tb.Fatalf("Changes: %v", err)
		}
		for _, c := range page.Changes {
			if c.Entry == nil {
				delete(known, c.ID)
				continue
			}
			known[c.ID] = *c.Entry
		}
		mark = page.Mark
		if !page.More {
			return mark
		}
	}
}

// TestFeedKeepsUp follows a store that two writers change, and ends up with what is in it.
func TestFeedKeepsUp(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	a, b := open(t, cfg), open(t, cfg)
	known := map[string]core.Entry{}
	mark := follow(t, a, "ann", "", known)
	var wg sync.WaitGroup
	seed := drawn.Seed(t)
	for w, s := range []*postgres.Store{a, b} {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(w)))
			id := core.SessionID{Agent: "ann", Session: fmt.Sprint("w", w)}
			for n := range 40 {
				if _, err := s.Append(t.Context(), entries(id, n*3, n*3+3)); err != nil {
					t.Errorf("Append: %v", err)
				}
				which := fmt.Sprintf("ann-w%d-%d", w, rnd.IntN(n*3+3))
				if err := s.Update(t.Context(), id.Scope(), which, core.Change{Meta: map[string]string{"n": fmt.Sprint(n)}}); err != nil && !errors.Is(err, core.ErrNotFound) {
					t.Errorf("Update: %v", err)
				}
				if _, err := s.Delete(t.Context(), id.Scope(), []string{fmt.Sprintf("ann-w%d-%d", w, rnd.IntN(n*3+3)), "none"}); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
		})
	}
	for range 20 {
		mark = follow(t, b, "ann", mark, known)
	}
	wg.Wait()
	mark = follow(t, b, "ann", mark, known)
	want := map[string]core.Entry{}
	for _, e := range all(t, a, core.Scope{Agent: "ann"}) {
		want[e.ID] = e
	}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Errorf("what the feed told (-want +got):\n%s", diff)
	}
	page, err := a.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: mark, Limit: 5})
	if err != nil || len(page.Changes) != 0 || page.Mark != mark || page.More {
		t.Errorf("Changes at the end = %+v, %v, want none and the same mark", page, err)
	}
}

func TestFeedKnowsItsMarks(t *testing.T) {
	t.Parallel()
	cfg := fresh(t)
	s := open(t, cfg)
	mustAppend(t, s, entries(ann, 0, 5)...)
	early := follow(t, s, "ann", "", map[string]core.Entry{})
	mustAppend(t, s, entries(ann, 5, 9)...)
	late := follow(t, s, "ann", early, map[string]core.Entry{})
	other := open(t, fresh(t))
	mustAppend(t, other, entries(ann, 0, 9)...)
	for name, mark := range map[string]core.Mark{"garbled": "x.y", "of another store": follow(t, other, "ann", "", map[string]core.Entry{})} {
		if _, err := s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: mark, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("Changes after a mark that is %s: %v, want ErrNotFound", name, err)
		}
	}
	// As after restoring a backup made between the two marks, and going on from there.
	servers.Plain(t).Exec(t, cfg.DSN, fmt.Sprintf("DELETE FROM %[1]s.entries WHERE n > 5; UPDATE %[1]s.agents SET n = 5", cfg.Schema))
	if _, err := s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: early, Limit: 5}); err != nil {
		t.Errorf("Changes after a mark that was in the backup: %v, want none", err)
	}
	if _, err := s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: late, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Changes after a mark that was not: %v, want ErrNotFound", err)
	}
	mustAppend(t, s, entries(ann, 20, 30)...)
	if _, err := s.Changes(t.Context(), core.ChangeQuery{Agent: "ann", After: late, Limit: 5}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Changes after a mark whose place another change has: %v, want ErrNotFound", err)
	}
}
